"""Transposes where plugins have them before their own LPT: around an Interpolate, after a FakeQuantize, and alone."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, same_operation, values_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.shapes import order_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node, NodeFactory, Output, opset1
from ovlpt.operations.families import RESHAPES

_TO_CHANNELS_LAST, _TO_CHANNELS_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
_SHUFFLED = 4  # axes of what a shuffle of channels is looked for in


def interpolated_in_nchw(node: Node) -> Node | None:
    """An Interpolate-4 of NHWC that only Transposes back to NCHW read, directly or after a per-tensor FakeQuantize,
    interpolates NCHW; None where it is not one.

    The plugin puts Transposes around it, so that all of them but one before it cancel out; once a dequantization stands
    between, they stay. The mode nearest, which runs on integers in any layout, is left alone where it reads them.
    """
    attributes, before = node.get_attributes(), node.input_value(0).get_node()
    readers = readers_of(node)
    quantizes = [reader for reader in readers if _quantizes_by_tensor(reader)]
    runs_in_any = attributes["mode"] == "nearest" and not quantizes
    if runs_in_any or any((*attributes["pads_begin"], *attributes["pads_end"])):
        return None
    direct = [reader for reader in readers if reader.get_type_name() == "Transpose"]
    backs = direct + [reader for quantize in quantizes for reader in readers_of(quantize)]
    if len(quantizes) + len(direct) < len(readers) or any(order_of(each) != _TO_CHANNELS_FIRST for each in backs):
        return None
    axes = node.input_value(3).get_node()
    if not isinstance(axes, Constant) or not set(values_of(axes).tolist()) <= {1, 2}:
        return None
    if order_of(before) == _TO_CHANNELS_LAST:
        data = before.input_value(0)
    else:
        data = opset1.transpose(node.input_value(0), constant(np.array(_TO_CHANNELS_FIRST), "i64")).output(0)
    inputs = [data, *node.input_values()[1:3], constant(values_of(axes) + 1, "i64").output(0)]
    moved = NodeFactory("opset4").create("Interpolate", inputs, attributes)
    moved.set_friendly_name(node.get_friendly_name())
    for quantize in quantizes:
        quantize.input(0).replace_source_output(moved.output(0))
        quantize.validate_and_infer_types()
    for back in backs:
        above = back.input_value(0)
        replace_output(back.output(0), moved.output(0) if _is(above.get_node(), node) else above)
    return moved


def quantized_before_transpose(node: Node) -> Node | None:
    """A per-tensor FakeQuantize of what only it reads out of a Transpose to NCHW quantizes what the Transpose reads.

    Plugins do so twice, MOC transformations once: before a scale between the two has gone into the interval.
    """
    transpose = node.input_value(0).get_node()
    if order_of(transpose) != _TO_CHANNELS_FIRST or len(readers_of(transpose)) > 1 or is_constant_path(transpose):
        return None
    if not _quantizes_by_tensor(node):
        return None
    inputs = [transpose.input_value(0), *node.input_values()[1:]]
    moved = same_operation(node, inputs)
    back = opset1.transpose(moved, transpose.input_value(1))
    moved.set_friendly_name(made_for(node.get_friendly_name(), Made.ALONE))
    back.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), back.output(0))
    return moved


def transposed_alone(node: Node) -> Node | None:
    """Reshape, Transpose and Reshape of four axes are one Transpose where the Reshapes only add and drop axes of one element.

    Common optimizations take the three for a shuffle of channels and throw where the number of channels is open, in a
    network of floats, too.
    """
    transpose = node.input_value(0).get_node()
    if (order := order_of(transpose)) is None or transpose.input_value(0).get_node().get_type_name() not in RESHAPES:
        return None
    data = transpose.input_value(0).get_node().input_value(0)
    before, between, after = (_sizes(each) for each in (data, transpose.input_value(0), node.output(0)))
    if not len(before) == len(after) == _SHUFFLED or after[1] is not None or before.count(None) != 1:
        return None
    wide, kept = ([axis for axis, size in enumerate(sizes) if size != 1] for sizes in (before, between))
    moved = [axis for axis in order if axis in kept]
    same = [before[axis] for axis in wide] == [between[axis] for axis in kept]
    if not same or [between[axis] for axis in moved] != [size for size in after if size != 1]:
        return None
    axes = iter([wide[kept.index(axis)] for axis in moved])
    ones = iter([axis for axis in range(_SHUFFLED) if axis not in wide])
    new = opset1.transpose(data, constant(np.array([next(ones if size == 1 else axes) for size in after]), "i64"))
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0))
    return new


def _sizes(value: Output) -> list[int | None]:
    """Of each axis, None where it is open; none where even their number is."""
    shape = value.get_partial_shape()
    return [None if size.is_dynamic else size.get_length() for size in shape] if shape.rank.is_static else []


def _is(one: Node, other: Node) -> bool:
    return one.get_instance_id() == other.get_instance_id()


def _quantizes_by_tensor(node: Node) -> bool:
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    return details is not None and all(end.size == 1 for end in details.intervals)
