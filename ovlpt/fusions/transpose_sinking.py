"""Activations and sums between channel-last Transposes."""

from __future__ import annotations

import numpy as np

from ovlpt.fusions.channelwise import rank_of
from ovlpt.fusions.evaluation import is_constant
from ovlpt.fusions.fusion import Fusion
from ovlpt.graph.consumers import is_output
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.shapes import order_of
from ovlpt.layer_transformation import move_tensor_names
from ovlpt.openvino_api import Node, Output, opset1

_ELEMENTWISE = ("Add", "Clamp", "Elu", "Multiply", "Relu", "Sigmoid", "Tanh")


class TransposeSinkingFusion(Fusion):
    """``f(transpose(x), transpose(y)) == transpose(f(x, y))`` for elementwise ``f``, from channels first to
    last.

    The Transpose then cancels with its inverse before the next convolution, so that the body of a network has neither.
    """

    operations = tuple(f"opset1.{name}" for name in _ELEMENTWISE)

    def concerns(self, node: Node) -> bool:
        rank, values = rank_of(node.output(0)), _data(node)
        if rank is None or rank < 3 or not values:
            return False
        return all(_moves_channels_last(value.get_node()) and rank_of(value) == rank for value in values)

    def transform(self, node: Node) -> None:
        value = node.output(0)
        readers, name, was_output = (
            list(value.get_target_inputs()),
            node.get_friendly_name(),
            is_output(value),
        )
        order = order_of(_data(node)[0].get_node())
        for port, source in enumerate(node.input_values()):
            if not is_constant(source):
                node.input(port).replace_source_output(source.get_node().input_value(0))
        node.validate_and_infer_types()
        transposed = opset1.transpose(node, np.array(order, np.int64))
        for reader in readers:
            reader.replace_source_output(transposed.output(0))
        move_tensor_names(value, transposed.output(0))
        if was_output:
            node.set_friendly_name(made_for(name, Made.CHANNELS_FIRST))
            transposed.set_friendly_name(name)


def _data(node: Node) -> list[Output]:
    """The operands that are not constant; none where a constant one is not a scalar."""
    values = []
    for value in node.input_values():
        if not is_constant(value):
            values.append(value)
        elif not (value.get_partial_shape().is_static and np.prod(value.get_shape()) == 1):
            return []
    return values


def _moves_channels_last(node: Node) -> bool:
    if node.get_type_name() != "Transpose":
        return False
    order = order_of(node)
    return order is not None and order == [0, *range(2, len(order)), 1]
