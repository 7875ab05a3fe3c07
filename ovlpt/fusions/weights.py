"""Operations with weights, and weights that take a factor per output channel."""

from __future__ import annotations

import numpy as np

from ovlpt.fusions.channelwise import rank_of
from ovlpt.fusions.evaluation import is_constant
from ovlpt.graph.constants import constant, is_real, precision_of, values_of
from ovlpt.graph.shapes import order_of
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations import OPERATIONS, WEIGHTED
from ovlpt.trace import reject, reject_unless


def output_channel_axis(node: Node) -> int | None:
    """Where a weighted operation puts its output channels; None for everything else.

    Weighted: the operations that quantization lowers, and only with constant weights on input 1.
    """
    kind = node.get_type_name()
    if kind not in WEIGHTED:
        return None
    if not is_constant(node.input_value(1)):
        return None
    if kind != "MatMul":
        return 1
    rank, weights_rank = rank_of(node.output(0)), rank_of(node.input_value(1))
    return rank - 1 if rank is not None and weights_rank is not None and rank >= 2 <= weights_rank else None


def factor_for(node: Node, factor: np.ndarray) -> np.ndarray:
    """A factor per output channel, shaped to multiply the weights of ``node``."""
    shape = node.input_value(1).get_partial_shape()
    reject_unless(shape.is_static, "dynamic_weights", "the shape of the weights is not known")
    sizes = shape.to_shape()
    if node.get_type_name() == "MatMul":
        axes = (len(sizes) - (2 if node.get_attributes()["transpose_b"] else 1),)
    else:
        axes = OPERATIONS[node.get_type_name()].weights_axes
    if factor.size == 1:
        return factor.reshape((1,) * len(sizes))
    return factor.reshape([size if axis in axes else 1 for axis, size in enumerate(sizes)])


def scaled_weights(value: Output, factor: np.ndarray) -> Output:
    """``value * factor`` without a new Multiply where weights have a place for it.

    A Constant, also after a Convert between real types, is multiplied; a dequantization takes the factor
    into its scale, a FakeQuantize into its output interval (a negative factor reverses the interval, which its
    definition allows), Reshape and Transpose pass it on. ``factor`` broadcasts against ``value``. New
    nodes only; raises `Rejected`.
    """
    node, kind = value.get_node(), value.get_node().get_type_name()
    precision = precision_of(value)
    if isinstance(node, Constant) and is_real(precision):
        return _named(constant(values_of(node).astype(np.float64) * factor, precision), node)
    if kind == "Convert":
        stored = node.input_value(0).get_node()
        if isinstance(stored, Constant) and is_real(precision_of(node.input_value(0))):
            return _named(constant(values_of(stored).astype(np.float64) * factor, precision), node)
        return _multiplied(value, factor)
    if kind == "Subtract":
        return _multiplied(value, factor)
    if kind == "Multiply":
        for port in (1, 0):
            scale = node.input_value(port)
            if scale.get_node().get_type_name() == "Convert":
                scale = scale.get_node().input_value(0)
            if isinstance(scale.get_node(), Constant) and is_real(precision_of(scale)):
                values = values_of(scale.get_node()).astype(np.float64) * factor
                return _named(opset1.multiply(node.input_value(1 - port), constant(values, precision)), node)
    if kind == "FakeQuantize":
        ends = []
        for port in (3, 4):
            end = node.input_value(port)
            reject_unless(
                isinstance(end.get_node(), Constant), "dynamic_intervals", "an interval bound is not a constant"
            )
            ends.append(constant(values_of(end.get_node()).astype(np.float64) * factor, precision_of(end)))
        inputs = [node.input_value(port) for port in (0, 1, 2)]
        return _named(opset1.fake_quantize(*inputs, *ends, int(node.get_attributes()["levels"])), node)
    if kind == "Transpose" and (order := order_of(node)) is not None:
        inner = scaled_weights(node.input_value(0), np.transpose(factor, np.argsort(order)))
        return _named(opset1.transpose(inner, node.input_value(1)), node)
    if kind == "Reshape":
        before = node.input_value(0).get_partial_shape()
        reject_unless(before.is_static, "dynamic_weights", "the shape of the weights is not known")
        spread = np.broadcast_to(factor, value.get_shape()).reshape(before.to_shape())
        special = node.get_attributes()["special_zero"]
        inner = scaled_weights(node.input_value(0), _without_repetition(spread))
        return _named(opset1.reshape(inner, node.input_value(1), special), node)
    reject("dynamic_weights", f"the weights come from {kind}, which has no place for a factor")


def _without_repetition(values: np.ndarray) -> np.ndarray:
    for axis in range(values.ndim):
        first = values.take([0], axis)
        if (values == first).all():
            values = first
    return values


def _multiplied(value: Output, factor: np.ndarray) -> Output:
    reject_unless(is_real(precision_of(value)), "dynamic_weights", f"the weights are {precision_of(value)}")
    return opset1.multiply(value, constant(factor, precision_of(value))).output(0)


def _named(new: Node, old: Node) -> Output:
    new.set_friendly_name(old.get_friendly_name())
    return new.output(0)
