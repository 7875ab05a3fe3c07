"""Layers that common optimizations leave as they are, set aside while these run.

OpenVINO's optimizations take time for each node, and most nodes of a quantized network are its convolutions with what
dequantizes their weights and adds their bias. None of the optimizations changes a convolution of quantized data and
stored weights, unless constants are multiplied or added after it, or its data or result are moved. So a Parameter
stands for the result of such a layer meanwhile, and Results for what reads its data and computed constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ovlpt.graph.constants import is_constant_path, precision_of, values_of
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import move_tensor_names
from ovlpt.openvino_api import Constant, Model, Node, Output, opset1
from ovlpt.operations.families import CONVOLUTIONS
from ovlpt.precisions import INT4, INT8

# What may read the result. A constant that is added or multiplied could be fused into the layer.
_READERS = frozenset(("Add", "Clamp", "Concat", "FakeQuantize", "MaxPool", "Multiply", "Relu", "Sigmoid", "Swish"))
# What may give the data, besides a FakeQuantize. A Concat of what a Split gives may be folded into the weights.
_POOLS = frozenset(("AvgPool", "MaxPool"))
_STORED = frozenset((*INT8, *INT4))
_SMALLEST = np.finfo(np.float32).tiny  # the optimizations make 0 of a smaller number


@dataclass(frozen=True)
class _Layer:
    """``result``: what others read of the layer and its bias; ``reads``: its inputs that read what is optimized, the
    data first.
    """

    result: Output
    reads: list[Any]


class LayersAside:
    """Takes layers out of a model, and gives them to a clone of it that was optimized."""

    def __init__(self, model: Model):
        self._model = model
        nodes = model.get_ops()
        # what a shape is computed of is found by sizes that are equal whatever they are, on both sides of a layer
        open_sizes = all(node.get_type_name() != "ShapeOf" for node in nodes)
        self._layers = [layer for node in nodes if (layer := _layer(node, open_sizes)) is not None]
        if self._layers and _have_namesakes(nodes):
            self._layers = []  # the optimizations rename all but one of those with the same name
        self._from = len(model.get_parameters()), len(model.get_results())
        self._stand_ins, self._ends = [], []
        for layer in self._layers:
            stand_in = opset1.parameter(layer.result.get_partial_shape(), layer.result.get_element_type())
            _read_instead(layer.result, stand_in.output(0))
            self._stand_ins.append(stand_in)
            self._ends += [opset1.result(target.get_source_output()) for target in layer.reads]
        model.add_parameters(self._stand_ins)
        model.add_results(self._ends)

    def put_into(self, optimized: Model) -> bool:
        """False where something was done to what reads a layer or to its data; then the model itself has its layers
        again, and the clone is of no use.
        """
        parameter, result = self._from
        stand_ins = optimized.get_parameters()[parameter : parameter + len(self._stand_ins)]
        ends = optimized.get_results()[result:]
        as_before = all(map(_is_read_as_before, stand_ins)) and self._read_as_before(ends)
        of = zip(self._layers, stand_ins if as_before else self._stand_ins, strict=True)
        for layer, stand_in in of:
            _read_instead(stand_in.output(0), layer.result)
            move_tensor_names(stand_in.output(0), layer.result)
        for end in self._ends:
            self._model.remove_result(end)
        for stand_in in self._stand_ins:
            self._model.remove_parameter(stand_in)
        if as_before:
            reads = (target for layer in self._layers for target in layer.reads)
            for target, end in zip(reads, ends, strict=True):
                target.replace_source_output(end.input_value(0))
                optimized.remove_result(end)
            for stand_in in stand_ins:
                optimized.remove_parameter(stand_in)
        return as_before

    def _read_as_before(self, ends: list[Node]) -> bool:
        """Whether the data of each layer comes as before."""
        at = 0
        for layer in self._layers:
            if not _gives_data(ends[at].input_value(0).get_node()):
                return False
            at += len(layer.reads)
        return True


def _have_namesakes(nodes: list[Node]) -> bool:
    return len({node.get_friendly_name() for node in nodes}) < len(nodes)


def _read_instead(old: Output, new: Output) -> None:
    for target in old.get_target_inputs():
        target.replace_source_output(new)


def _is_read_as_before(stand_in: Node) -> bool:
    return all(_takes_any(target) for target in stand_in.output(0).get_target_inputs())


def _layer(node: Node, open_sizes: bool) -> _Layer | None:
    """A layer that is left as it is, if the node is one. ``open_sizes``: also where its sizes are dynamic."""
    if node.get_type_name() not in CONVOLUTIONS or (shape := shape_of(node.output(0))) is None:
        return None
    if None in shape and not open_sizes:
        return None
    if not _gives_data(node.input_value(0).get_node()):
        return None
    if (computed := _computed_of_weights(node.input_value(1))) is None or (result := _with_bias(node)) is None:
        return None
    last, bias = result
    if not all(map(_takes_any, last.get_target_inputs())):
        return None
    return _Layer(last, [node.input(0), *computed, *bias])


def _gives_data(node: Node) -> bool:
    """Whether a layer is left as it is where it reads the node."""
    kind = node.get_type_name()
    if kind == "FakeQuantize":
        return not isinstance(node.input_value(0).get_node(), Constant)
    if kind == "Concat":
        return all(value.get_node().get_type_name() in ("FakeQuantize", *_POOLS) for value in node.input_values())
    return kind in _POOLS


def _computed_of_weights(value: Output) -> list[Any] | None:
    """The inputs of computed constants in the dequantization of stored weights that only one layer reads; None where the
    weights are other ones.
    """
    shape, computed, node = shape_of(value), [], value.get_node()
    for kind in ("Multiply", "Subtract"):
        if node.get_type_name() == kind:
            if (found := _computed_constant(node, shape)) is None or len(node.output(0).get_target_inputs()) != 1:
                return None
            computed += found
            node = node.input_value(0).get_node()
    if node.get_type_name() != "Convert" or len(node.output(0).get_target_inputs()) != 1:
        return None
    stored = node.input_value(0)
    is_stored = isinstance(stored.get_node(), Constant) and precision_of(stored) in _STORED
    return computed if is_stored and len(stored.get_target_inputs()) == 1 else None


def _with_bias(layer: Node) -> tuple[Output, list[Any]] | None:
    """What is read of a layer and its bias, with the input of the bias where that is computed."""
    value = layer.output(0)
    targets = value.get_target_inputs()
    if len(targets) != 1:
        return value, []
    [target] = targets
    add = target.get_node()
    if target.get_index() != 0 or add.get_type_name() != "Add" or not _is_computed(add.input_value(1)):
        return value, []
    shape = shape_of(value)
    if shape[1] == 1 or shape_of(add.input_value(1)) != (1, shape[1], *[1] * (len(shape) - 2)):
        return None
    bias = _computed_constant(add, shape)
    return None if bias is None else (add.output(0), bias)


def _computed_constant(node: Node, shape: tuple[int | None, ...]) -> list[Any] | None:
    """Input 1 of a node, where that has to be computed; none for a Constant that stays, None for what may not stay."""
    value = node.input_value(1)
    source = value.get_node()
    stored = source.input_value(0).get_node() if source.get_type_name() == "Convert" else source
    if stored is not source and isinstance(stored, Constant) and precision_of(stored.output(0)) in _STORED:
        return [] if all(len(each.output(0).get_target_inputs()) == 1 for each in (source, stored)) else None
    if len(shape_of(value) or ()) != len(shape):
        return None  # the optimizations would write it with as many axes
    if isinstance(source, Constant):
        numbers = np.abs(values_of(source))
        return None if (numbers < _SMALLEST).any() and (numbers[numbers < _SMALLEST] > 0).any() else []
    return [node.input(1)] if is_constant_path(value.get_node()) else None


def _is_computed(value: Output) -> bool:
    """Of constants alone."""
    node = value.get_node()
    return isinstance(node, Constant) or is_constant_path(node)


def _takes_any(target: Any) -> bool:
    """Whether what reads a value is the same to the optimizations whatever makes the value."""
    node = target.get_node()
    kind = node.get_type_name()
    if kind in ("Add", "Multiply"):
        return not _is_computed(node.input_value(1 - target.get_index()))
    return kind in _READERS
