"""Recurrent layers: how their data comes, and one direction each."""

from __future__ import annotations

import numpy as np

from ovlpt.device.lowering.fake_quantize import on_other_data
from ovlpt.fake_quantize import fake_quantize
from ovlpt.graph.constants import (
    constant,
    constant_above,
    is_constant_path,
    is_real,
    kept_apart,
    precision_of,
    values_of,
)
from ovlpt.graph.dequantization import dequantization_above
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import MOVES, in_both_directions
from ovlpt.graph.relaxed import same_on
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node, NodeFactory, Output, opset1

_DATA, _STATE = 0, 1  # inputs


def drop_grid_of_stored(quantize: Node) -> Node | None:
    """A FakeQuantize that changes none of the stored integers that only Broadcasts and moves bring to it."""
    source = quantize.input_value(0)
    while (kind := source.get_node().get_type_name()) in MOVES or kind == "Broadcast":
        source = source.get_node().input_value(0)
    if not isinstance(source.get_node(), Constant) or precision_of(source) != precision_of(quantize.output(0)):
        return None
    if is_real(precision_of(source)):
        return None
    values, details = values_of(source.get_node()).astype(np.float32), QuantizationDetails.of(quantize)
    if details is None or any(end.size > 1 for end in details.intervals):
        return None
    if not np.array_equal(np.rint(fake_quantize(values, *details.intervals, details.levels)), values):
        return None
    replace_output(quantize.output(0), quantize.input_value(0))
    return source.get_node()


def quantize_after_transpose(layer: Node) -> Node | None:
    """``transpose(FQ(x))`` as ``FQ(transpose(x))`` before a recurrent layer, where the ends are the same everywhere; with
    all else that moves the integers.

    The plugin's own LPT forms the quantized layer, and no longer finds a zero point beyond integers that are transposed.
    """
    changed = None
    for port in (_DATA, _STATE):
        value = source = dequantization_above(layer, port).data
        moves: list[Output] = []
        while source.get_node().get_type_name() in MOVES:
            moves.insert(0, source)
            source = source.get_node().input_value(0)
        quantize = source.get_node()
        is_transposed = any(each.get_node().get_type_name() == "Transpose" for each in moves)
        if not is_transposed or quantize.get_type_name() != "FakeQuantize":
            continue
        ends = map(constant_above, quantize.input_values()[1:])
        if any(values is None or values.size > 1 for values in ends):
            continue
        data = quantize.input_value(0)
        for each in moves:
            data = _again(each.get_node(), data).output(each.get_index())
        replace_output(value, _again(quantize, data).output(0))
        changed = layer
    return changed


def read_after_transpose(layer: Node) -> Node | None:
    """The maximum of integers and the least of them, where a recurrent layer with a zero point reads what was transposed.

    The plugin would move Convert and zero point up before the Transpose, where its own LPT no longer finds them. Of
    integers that a FakeQuantize gives `quantize_after_transpose` takes care, by fewer layers.
    """
    changed = None
    for port in (_DATA, _STATE):
        found = dequantization_above(layer, port)
        if found.convert is None or found.subtract is None or not found.is_low_precision:
            continue
        source = found.data
        while (kind := source.get_node().get_type_name()) in MOVES and kind != "Transpose":
            source = source.get_node().input_value(0)
        if kind == "Transpose":
            alone = kept_apart(found.data)
            alone.set_friendly_name(made_for(found.data.get_node().get_friendly_name(), Made.ALONE))
            found.convert.input(0).replace_source_output(alone.output(0))
            changed = layer
    return changed


def slice_data(layer: Node) -> Node | None:
    """A part of a VariadicSplit as a Slice, before a layer of other steps than the first part has."""
    value = dequantization_above(layer, _DATA).data
    split = value.get_node()
    if split.get_type_name() != "VariadicSplit":
        return None
    axis = constant_above(split.input_value(1))
    shapes = [output.get_partial_shape() for output in split.outputs()[: value.get_index() + 1]]
    if axis is None or shapes[0] == shapes[-1] or any(shape[int(axis)].is_dynamic for shape in shapes):
        return None
    *before, size = (shape[int(axis)].get_length() for shape in shapes)
    ends = (sum(before), sum(before) + size, 1, int(axis))
    inputs = [split.input_value(0), *(constant(np.array([end]), "i64").output(0) for end in ends)]
    part = NodeFactory("opset8").create("Slice", inputs)
    part.set_friendly_name(f"{split.get_friendly_name()}.{value.get_index()}")
    replace_output(value, part.output(0))
    return layer


def _again(node: Node, data: Output) -> Node:
    """The same on other data. What else reads the node goes on to do so."""
    is_quantization = node.get_type_name() == "FakeQuantize"
    new = on_other_data(node, data) if is_quantization else same_on(node, [data, *node.input_values()[1:]])
    if sum(len(output.get_target_inputs()) for output in node.outputs()) > 1:
        new.set_friendly_name(made_for(node.get_friendly_name(), Made.AGAIN))
    return new


def one_direction_each(node: Node) -> Node | None:
    """A bidirectional sequence as a forward and a reverse one, as the plugin would have it, each with a name."""
    if node.get_attributes()["direction"] != "bidirectional":
        return None
    joined = in_both_directions(node, _halves)
    for output, each in zip(node.outputs(), joined, strict=True):
        each.set_friendly_name(f"{node.get_friendly_name()}.{output.get_index()}")
        if output.get_target_inputs():
            replace_output(output, each.output(0))
    return joined[0]


def _halves(value: Output, axis: int) -> list[Output]:
    """Of weights the integers are halved, so that what dequantizes them stays next to the layer."""
    node = value.get_node()
    if not is_constant_path(node):
        return opset1.split(value, constant(np.array(axis), "i64"), 2).outputs()
    if isinstance(node, Constant):
        shape = list(value.get_shape())
        if len(shape) <= axis or shape[axis] == 1:
            return [value, value]
        parts = np.split(values_of(node), 2, axis)
        return [constant(np.ascontiguousarray(part), precision_of(value)).output(0) for part in parts]
    sources = [_halves(each, axis) for each in node.input_values()]
    return [same_on(node, list(inputs)).output(0) for inputs in zip(*sources, strict=True)]
