"""What is inserted between a layer with weights and the operations after it, so that the plugin fuses each where it belongs."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Any

import numpy as np

from ovlpt.device.int8_layers import is_depthwise_over_three_axes, is_int8_layer, negative_scale_after_relu
from ovlpt.device.lowering.kernels import falls_back_to_gemm, with_older_kernels
from ovlpt.device.this_cpu import multiplies_groups_by_gemm
from ovlpt.graph.constants import (
    constant,
    constant_above,
    converted,
    is_constant_above,
    precision_of,
    same_operation,
)
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.dequantization import dequantization_below
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import has_older_kernels, is_relaxed
from ovlpt.graph.shapes import may_be_open, shape_of
from ovlpt.graph.weights import folded_constant, varies_along
from ovlpt.layer_transformation import insert_after, move_tensor_names, replace_output
from ovlpt.openvino_api import Constant, Node, NodeFactory, Output, opset1
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import ACTIVATIONS, AFFINE, ARITHMETIC, CONVOLUTIONS, REARRANGES
from ovlpt.precisions import FLOAT8, INT8

# What the plugin folds into the interval of a FakeQuantize, or drops before one
BEFORE_INTERVAL = ARITHMETIC | {"Clamp", "Convert", "Floor", "Relu"}
# What the plugin fuses into a layer
POST_OPERATIONS = BEFORE_INTERVAL | ACTIVATIONS | {"Abs", "FakeQuantize", "PRelu", "Round", "Sqrt"}
# What a per-tensor operation is moved up through
MOVES_UP = REARRANGES | {
    "BatchToSpace", "Broadcast", "DepthToSpace", "Gather", "ReverseSequence", "Roll", "ShuffleChannels",
}  # fmt: skip
_SAME_LEVEL = 1e-3  # of two levels that differ by roundings only
_WHOLE_IN_BF16 = 256  # up to which it holds all whole numbers
_KEPT_TYPES = frozenset(("f32", "i32", "i8", "u8"))  # of outputs, without a Convert
FLOAT_MAX = float(np.finfo(np.float32).max)


def constant_second(node: Node) -> Node | None:
    """``c + x`` as ``x + c``, which is where the other rules look for the constant, and before a FakeQuantize ``c - x`` as
    ``x * -1 + c``.
    """
    first, second = node.input_values()
    if is_relaxed(node) or constant_above(first) is None or constant_above(second) is not None:
        return None
    if node.get_type_name() == "Subtract":
        if precision_of(first) != "f32" or not _is_before_interval(node):
            return None
        negative = opset1.multiply(second, constant(np.float32(-1)))
        negative.set_friendly_name(made_for(node.get_friendly_name(), Made.SCALE))
        total = opset1.add(negative, first)
        total.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), total.output(0))
        return total
    node.input(0).replace_source_output(second)
    node.input(1).replace_source_output(first)
    return node


def _is_before_interval(node: Node) -> bool:
    reader = _only_reader(node)
    while reader is not None and reader.get_type_name() in BEFORE_INTERVAL:
        reader = _only_reader(reader)
    return reader is not None and reader.get_type_name() == "FakeQuantize"


def dequantize_before_broadcast(node: Node) -> Node | None:
    """``broadcast(y) * s + b == broadcast(y * s + b)`` for a per-channel scale and shift

    The plugin moves them before the Broadcast, where they are per-channel post-operations of the layer
    (`compute_scale_in_f64`) that no other rule has seen.
    """
    broadcast, shape = _only_reader(node), shape_of(node.output(0))
    if shape is None or broadcast is None or broadcast.get_type_name() != "Broadcast":
        return None
    found, name = dequantization_below(broadcast), node.get_friendly_name()
    links = [link for link in (found.subtract, found.multiply) if link is not None]
    constants = [constant_above(link.input_value(1)) for link in links]
    by_channel = all(values is not None and varies_along(values, len(shape), (1,)) for values in constants)
    widened = shape_of(broadcast.output(0))
    if not links or not by_channel or shape[1] is None or widened is None or widened[1] != shape[1]:
        return None
    value = node.output(0)
    for link, values in zip(links, constants, strict=True):
        moved = same_operation(link, [value, constant(values, "f32").output(0)])
        moved.set_friendly_name(made_for(name, Made.ZERO_POINT if link is found.subtract else Made.SCALE))
        value = moved.output(0)
    broadcast.input(0).replace_source_output(value)
    broadcast.set_friendly_name(links[-1].get_friendly_name())
    replace_output(links[-1].output(0), broadcast.output(0))
    return node


def compute_scale_in_f64(node: Node) -> Node | None:
    """Compute the scale of a layer, and the bias after it, in f64, which keeps both from fusions; a Clamp where no
    scale follows, a Floor where a Clamp goes wrong.

    A constant Multiply after a relaxed Convolution, GroupConvolution or MatMul would be fused into the integer weights
    and throw; an Add after it would be fused into the FakeQuantize and keep the layer from its bias. Both would then
    be per-channel post-operations, which the plugin computes wrongly for dynamic sizes of one element, and in a Subgraph:
    wrong numbers, no error. No fusion reaches through a Convert to f64, or through the one back. The plugin's change of
    f64 to f32 removes both, after the fusions: it has the same scales, biases and post-operations as with its own LPT.

    A per-channel factor of what is read elsewhere, too, would be fused for all readers where sizes are dynamic. A maximum
    with the least number stands before it.
    """
    links = _affine_links(node)
    if _varies_by_rows(node) or _runs_in_gemm(node):
        return node if guard_output(node, floor=is_int8_layer(node)) else None
    targets = list(node.output(0).get_target_inputs())
    reader = targets[0].get_node() if len(targets) == 1 else None
    if reader is not None and (is_in_f64(reader) or reader.get_type_name() in ("Relu", "PRelu")):
        return None  # done before the model was saved; no fusion reaches through
    if not links or links[0].get_type_name() != "Multiply" or _is_quantized_by_rows(node, links):
        return node if guard_output(node) else None
    links = links[: 2 if len(links) > 1 and links[1].get_type_name() == "Add" else 1]
    last, value = links[-1].output(0), converted(node.output(0), "f64").output(0)
    for link in links:
        wide = same_operation(link, [value, constant(constant_above(link.input_value(1)), "f64").output(0)])
        wide.set_friendly_name(link.get_friendly_name())
        value = wide.output(0)
    targets, back = last.get_target_inputs(), converted(value, "f32")
    shared = len(targets) > 1 and may_be_open(node.output(0))
    scales = [target for target in targets if shared and _scales_by_channel(target)]
    move_tensor_names(last, value)
    insert_after(value, back.output(0), targets, [back])
    if scales:
        alone = opset1.maximum(back, constant(-FLOAT_MAX))
        for target in scales:
            target.replace_source_output(alone.output(0))
    # a reference to it would count among the readers of its data
    links[0].input(0).replace_source_output(links[0].input_value(1))
    return node


def _scales_by_channel(target: Any) -> bool:
    """Whether the plugin would make a factor of what else the reader multiplies or divides by."""
    reader = target.get_node()
    if target.get_index() or reader.get_type_name() not in ("Divide", "Multiply"):
        return False
    values = constant_above(reader.input_value(1))
    return values is not None and values.size > 1


def is_in_f64(link: Node) -> bool:
    """Whether it reads or gives f64, and no fusion reaches through (`compute_scale_in_f64`)."""
    return "f64" in (precision_of(link.input_value(0)), precision_of(link.output(0)))


def scale_to_interval(node: Node) -> Node | None:
    """``FQ(x * s + b; low, high) == FQ(x * s * k + (b - low) * k; 0, n)`` with ``k = n / (high - low)``, ``n`` steps

    A per-channel interval after a layer is a per-channel post-operation, too (`compute_scale_in_f64`). Where one element
    of dynamic sizes may come, scale and bias of the layer are such that one interval does for all channels. A Relu or PRelu
    between lets the scale through, and no shift. What gives other real values per channel is for `compute_by_channel`.
    """
    links, quantize = _affine_links(node)[:2], None
    is_product = node.get_type_name() == "MatMul"
    is_affine = [link.get_type_name() for link in links] in ([], ["Multiply"], ["Multiply", "Add"])
    if is_affine and (is_product or _may_be_one_element(node)):
        quantize = _only_reader(links[-1] if links else node)
    if after_relu := quantize is not None and quantize.get_type_name() in ("Relu", "PRelu"):
        quantize = _only_reader(quantize)
    details = None
    if quantize is not None and quantize.get_type_name() == "FakeQuantize":
        details = QuantizationDetails.of(quantize)
    if details is None or details.input_low.size == details.input_high.size == 1:
        return None
    if not details.output_low.size == details.output_high.size == 1:
        return None
    rank, steps = node.get_output_partial_shape(0).rank.get_length(), details.levels - 1
    scale, shift = np.ones(1), np.zeros(1)
    for link in links:
        values = constant_above(link.input_value(1)).astype(np.float64)
        scale, shift = (values, shift) if link.get_type_name() == "Multiply" else (scale, values)
    low, high = (end.astype(np.float64) for end in (details.input_low, details.input_high))
    axis = rank - 1 if is_product else 1
    by_channel = all(varies_along(values, rank, (axis,)) for values in (scale, shift, low, high))
    if not by_channel or (low >= high).any():
        return None
    factor = steps / (high - low)
    first = low * factor
    if np.ptp(first) > _SAME_LEVEL:
        if after_relu:
            return None
        first, shift = np.zeros(1), shift - low
    old = (links[-1] if links else node).output(0)
    targets, new = old.get_target_inputs(), opset1.multiply(node.output(0), constant(scale * factor))
    if shift.any():
        new.set_friendly_name(made_for(node.get_friendly_name(), Made.SCALE))
        new = opset1.add(new, constant(shift * factor))
    new.set_friendly_name(links[-1].get_friendly_name() if links else made_for(node.get_friendly_name(), Made.INTERVAL))
    for target in targets:
        target.replace_source_output(new.output(0))
    for link in links[:1]:  # a reference to it would count among the readers of its data
        link.input(0).replace_source_output(link.input_value(1))
    for port, end in ((1, first.flat[0]), (2, first.flat[0] + steps)):
        quantize.input(port).replace_source_output(constant(end).output(0))
    return node


def compute_by_channel(node: Node) -> Node | None:
    """What a layer computes per channel after its scale and bias, after an activation for instance, would be a
    post-operation by channel, too (`compute_scale_in_f64`). oneDNN's older kernels have the plugin's own form of it,
    which is right for one element; they are asked for by name. They take no longer, and no layer is added. Where they
    have no form of the layer, nothing is fused into it.
    """
    last = _first_by_channel([node, *_affine_links(node)][-1]) if _may_be_one_element(node) else None
    if last is None:
        return None
    if falls_back_to_gemm(node):
        block_fusion(last)
        return node
    return with_older_kernels(node)


def part_from_sum(node: Node) -> Node | None:
    """A depthwise layer of floats into which the sum with another tensor is fused reads what is per channel after it wrongly
    for one element, with the plugin's own LPT, too. That is not fused then.
    """
    link = [node, *_affine_links(node)][-1]
    last = _first_by_channel(link) if not is_relaxed(node) and _may_be_one_element(node) else None
    while last is not None and link is not last:
        link = merged_target(link).get_node()
        if link.get_type_name() == "Add" and other_constant(link) is None:
            block_fusion(last)
            return node
    return None


def part_by_column(product: Node) -> Node | None:
    """A MatMul of two tensors reads a per-column scale or interval beyond the end of its array: wrong numbers, or none
    at all, with the plugin's own LPT, too. So nothing is fused into it. A per-column shift is right.
    """
    if isinstance(product.input_value(1).get_node(), Constant):
        return None
    last = _first_by_channel(product, but=("Add", "Subtract"))
    if last is None:
        return None
    block_fusion(last)
    return product


def part_open_columns(product: Node) -> Node | None:
    """A MatMul with a dynamic number of columns throws where something per column is fused into it, in float, too. So
    nothing is.
    """
    shape = shape_of(product.output(0))
    last = _first_by_channel(product) if shape and shape[-1] is None else None
    if last is None:
        return None
    block_fusion(last)
    return product


def part_by_head(product: Node) -> Node | None:
    """A MatMul of four axes or more takes what is constant along its columns for a value of each column: wrong numbers, or
    it throws; with weights at dynamic sizes, with the plugin's own LPT, too, and with two tensors where it is added. So that
    is not fused, but for slopes, which are read rightly.
    """
    shape, last = shape_of(product.output(0)) or (0,), product
    if len(shape) < 4 or shape[-1] is None:
        return None
    while (last := _first_by_channel(last, but=("PRelu",))) is not None:
        target = merged_target(last)
        reader = target.get_node()
        others = [value for port, value in enumerate(reader.input_values()) if port != target.get_index()]
        constants = [values for values in map(constant_above, others) if values is not None and values.size > 1]
        by_head = any(varies_along(values, len(shape), (1,)) for values in constants)
        as_many = any(
            values.size == shape[-1] and not varies_along(values, len(shape), (len(shape) - 1,)) for values in constants
        )
        if by_head or as_many:
            if folded_constant(product.input_value(1)) is not None:
                return block_fusion(last) if None in shape else None
            return block_fusion(last) if by_head and reader.get_type_name() in ("Add", "Subtract") else None
        last = reader
    return None


def part_from_vector(product: Node) -> Node | None:
    """A factor after a float MatMul with a constant vector would be folded into the vector as a separate row: it throws."""
    reader = _only_reader(product)
    if is_relaxed(product) or not _has_rows_only(product) or reader is None or reader.get_type_name() != "Multiply":
        return None
    return block_fusion(product)


def part_from_broadcast(add: Node) -> Node | None:
    """The plugin fuses a convolution with the sum of its result and another tensor, and throws where one of the two
    turns out to be broadcast, with its own LPT, too: only known sizes keep it from that. Where a size of only one of
    the two is known, nothing is fused into the layer.
    """
    shapes = [shape_of(value) for value in add.input_values()]
    if None in shapes or len(shapes[0]) != len(shapes[1]):
        return None
    if any(constant_above(value) is not None for value in add.input_values()):
        return None
    if not any(None in sizes and max(filter(None, sizes), default=1) > 1 for sizes in zip(*shapes, strict=True)):
        return None
    layers = [value.get_node() for value in add.input_values()]
    layers = [last for last in layers if links_above(last, POST_OPERATIONS)[1].get_type_name() in CONVOLUTIONS]
    for last in layers:
        block_fusion(last)
    return add if layers else None


def scale_after_interval(product: Node) -> Node | None:
    """``FQ(x; low, high) == FQ(x; 0, n) * (high - low) / n + low`` with ``n`` steps, where that differs between columns.

    With one thread the plugin makes a Subgraph of two MatMuls of rank 2 and what lies between. There a MatMul of
    integers reads a per-column FakeQuantize, or one that becomes so, from elsewhere: wrong numbers, no error, with the
    plugin's own LPT, too. A maximum with the least number keeps apart what the plugin would fuse into the interval.
    """
    quantize = _quantize_after(product)
    details = None if quantize is None else QuantizationDetails.of(quantize)
    if details is None or precision_of(quantize.output(0)) != "f32":
        return None
    low, high = (end.astype(np.float64) for end in details.intervals[2:])
    if low.size == high.size == 1:
        last = _first_by_channel(quantize)
        if last is None:
            return None
        block_fusion(last)
        return product
    old, steps = quantize.output(0), details.levels - 1
    targets, scaled = old.get_target_inputs(), opset1.multiply(quantize, constant((high - low) / steps))
    if low.any():
        scaled = opset1.add(scaled, constant(low))
    scaled.set_friendly_name(quantize.get_friendly_name())
    quantize.set_friendly_name(made_for(scaled.get_friendly_name(), Made.INTERVAL))
    for target in targets:
        target.replace_source_output(scaled.output(0))
    move_tensor_names(old, scaled.output(0))
    for port, end in ((3, 0), (4, steps)):
        quantize.input(port).replace_source_output(constant(end).output(0))
    block_fusion(quantize)
    return product


def scale_before_interval(product: Node) -> Node | None:
    """``FQ(x; low, high) == FQ((x - low) * k; 0, n)`` with ``k = n / (high - low)``, as `scale_after_interval`, where it
    differs between columns after more than the scale and the bias of the MatMul (`scale_to_interval`).
    """
    quantize = _quantize_after(product)
    details = None if quantize is None else QuantizationDetails.of(quantize)
    if details is None:
        return None
    low, high = (end.astype(np.float64) for end in details.intervals[:2])
    source, steps = quantize.input_value(0), details.levels - 1
    if low.size > 1 or high.size > 1:
        if (low >= high).any():
            return None
        real = precision_of(source)
        source = opset1.subtract(source, constant(low, real))
        source = opset1.multiply(source, constant(steps / (high - low), real)).output(0)
        quantize.input(0).replace_source_output(source)
        for port, end in ((1, 0), (2, steps)):
            quantize.input(port).replace_source_output(constant(end, real).output(0))
    elif not _is_moved_by_columns(source.get_node(), _affine_links(product)):
        return None
    block_fusion(source.get_node())
    return product


def _quantize_after(product: Node) -> Node | None:
    """The FakeQuantize that the kernel of a MatMul of rank 2 would fuse."""
    reader = _only_reader(product) if len(shape_of(product.output(0)) or ()) == 2 else None
    while reader is not None and reader.get_type_name() != "FakeQuantize":
        reader = _only_reader(reader) if reader.get_type_name() in POST_OPERATIONS else None
    return reader


def _is_moved_by_columns(node: Node, known: Collection[Node]) -> bool:
    """Whether the plugin takes something by column into the interval after ``node``, other than what is ``known``."""
    kept = {link.get_instance_id() for link in known}
    links = (link for link in links_above(node)[0] if link.get_instance_id() not in kept)
    return any((values := other_constant(link)) is not None and values.size > 1 for link in links)


def _first_by_channel(last: Node, but: Collection[str] = ()) -> Node | None:
    """What the first post-operation after ``last`` reads that has a constant of several values, ``but`` for these kinds."""
    while (target := merged_target(last)) is not None and (
        kind := target.get_node().get_type_name()
    ) in POST_OPERATIONS:
        reader = target.get_node()
        if kind == "Subtract" and _is_zero_point(reader):
            return None
        others = [value for port, value in enumerate(reader.input_values()) if port != target.get_index()]
        constants = list(map(constant_above, others))
        if kind != "Add" and any(values is None for values in constants):
            return None  # of two tensors only a sum is a post-operation
        if kind not in but and any(values is not None and values.size > 1 for values in constants):
            return last
        last = reader
    return None


def _is_zero_point(subtract: Node) -> bool:
    """Whether only layers with integer weights read it, which fuse it as the zero point of their data."""
    readers = readers_of(subtract)
    return precision_of(subtract.input_value(0)) in INT8 and all(map(_takes_zero_point, readers))


def _takes_zero_point(node: Node) -> bool:
    return node.get_type_name() in WEIGHTED and is_relaxed(node) and not is_depthwise_over_three_axes(node)


def _only_reader(node: Node) -> Node | None:
    targets = list(node.output(0).get_target_inputs())
    return targets[0].get_node() if len(targets) == 1 else None


def merged_target(node: Node) -> Any:
    """The input that alone reads a result once the plugin has merged equal readers, or None."""
    target, *more = node.output(0).get_target_inputs() or [None]
    return target if all(_is_equal(target, each) for each in more) else None


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two inputs belong to operations that do the same to constants and to what both read there."""
    nodes = one.get_node(), other.get_node()
    if one.get_index() != other.get_index() or nodes[0].get_type_info() != nodes[1].get_type_info():
        return False
    if nodes[0].get_attributes() != nodes[1].get_attributes():
        return False
    for port in set(range(nodes[0].get_input_size())) - {one.get_index()}:
        first, second = (constant_above(node.input_value(port)) for node in nodes)
        if first is None or second is None or not np.array_equal(first, second):
            return False
    return True


def _may_be_one_element(node: Node) -> bool:
    """Whether dynamic sizes may leave one element a channel."""
    batch, _, *space = shape_of(node.output(0)) or (0, 0)
    if None not in (batch, *space) or not {batch, *space} <= {None, 1}:
        return False
    sizes = list(node.get_output_partial_shape(0))
    return all(size.get_min_length() <= 1 for size in (sizes[0], *sizes[2:]))


def add_negative_shift(node: Node) -> Node | None:
    """A subtraction after a layer becomes an addition with the other sign, for the rules that follow. After common
    optimizations it already is one.
    """
    subtracted = [link for link in _affine_links(node) if link.get_type_name() == "Subtract"]
    for link in subtracted:
        total = opset1.add(link.input_value(0), constant(-constant_above(link.input_value(1))))
        total.set_friendly_name(link.get_friendly_name())
        replace_output(link.output(0), total.output(0))
        # a reference to it would count among the readers of its data
        link.input(0).replace_source_output(link.input_value(1))
    return node if subtracted else None


def shift_after_scale(node: Node) -> Node | None:
    """``(x + b) * s + c`` after a layer as ``x * s + (b * s + c)``: its scale, and its bias.

    The plugin would do so at each load, but for what is computed in f64.
    """
    links = _affine_links(node)
    at = next((at for at, link in enumerate(links) if link.get_type_name() == "Multiply"), 0)
    if not at or _varies_by_rows(node) or _is_quantized_by_rows(node, links):
        return None
    multiply, bias = links[at], [link for link in links[at + 1 : at + 2] if link.get_type_name() == "Add"]
    scale = constant_above(multiply.input_value(1))
    before, after = ([constant_above(link.input_value(1)) for link in each] for each in (links[:at], bias))
    shift, last = sum(before) * scale, multiply
    if after and np.broadcast_shapes(shift.shape, after[0].shape) == shift.shape:
        shift, last = shift + after[0], bias[0]
    scaled = opset1.multiply(node.output(0), constant(scale))
    shifted = opset1.add(scaled, constant(shift))
    scaled.set_friendly_name(made_for(multiply.get_friendly_name(), Made.SCALE))
    shifted.set_friendly_name(last.get_friendly_name())
    replace_output(last.output(0), shifted.output(0))
    # a reference to it would count among the readers of its data
    links[0].input(0).replace_source_output(links[0].input_value(1))
    return node


def guard_output(node: Node, floor: bool = False) -> bool:
    """A Clamp after a node, or a Floor, which changes no integer, and which no post-operation passes. Whether there was none."""
    targets = node.output(0).get_target_inputs()
    if any(
        target.get_node().get_friendly_name() == made_for(node.get_friendly_name(), Made.GUARD) for target in targets
    ):
        return False
    guard = opset1.floor(node.output(0)) if floor else opset1.clamp(node.output(0), -FLOAT_MAX, FLOAT_MAX)
    guard.set_friendly_name(made_for(node.get_friendly_name(), Made.GUARD))
    for target in targets:
        target.replace_source_output(guard.output(0))
    move_tensor_names(node.output(0), guard.output(0))
    return True


def keep_negative_scale_after_relu(node: Node) -> Node | None:
    """A negative scale after a Relu or PRelu would be moved before it, into the layer's scale: wrong numbers, no
    error, with the plugin's own LPT too. A Clamp between the two keeps them apart.
    """
    relu = negative_scale_after_relu(node)
    return node if relu is not None and guard_output(relu) else None


def keep_shift_before_scale(node: Node) -> Node | None:
    """``(x - a) * b`` of a mask with a Clamp between, where the plugin would make ``x * b - a * b`` of it.

    It moves the multiplication up through operations that only move values, but not the difference where several nodes
    read that. Where floats run in bf16, the product is stored in bf16 between the two: it is rounded, or overflows.
    With the plugin's own LPT this happens in a float model.
    """
    shift = node.input_value(0).get_node()
    if shift.get_type_name() != "Subtract" or precision_of(shift.input_value(0)) != "f32":
        return None
    constants = [constant_above(each.input_value(1)) for each in (shift, node)]
    if any(values is None or values.size > 1 for values in constants):
        return None
    _, source = links_above(shift)
    if abs(np.prod([values.item() for values in constants])) <= _WHOLE_IN_BF16 or source.get_type_name() in WEIGHTED:
        return None
    return node if guard_output(shift) else None


def links_above(node: Node, kinds: Set[str] = BEFORE_INTERVAL) -> tuple[list[Node], Node]:
    """The operations of ``kinds`` from ``node`` up, and what stands above them; none that the plugin drops first, and no
    rounding to f8, which is a layer of its own and the only one that reads or gives f8.
    """
    links: list[Node] = []
    while (idle := _does_nothing(node)) or (node.get_type_name() in kinds and not _is_apart(node)):
        if not idle:
            links.append(node)
        node = node.input_value(0).get_node()
    return links, node


def _is_apart(node: Node) -> bool:
    """Whether what is computed from ``node`` on is no part of the layer above."""
    return is_in_f64(node) or precision_of(node.output(0)) in FLOAT8


def drop_idle(node: Node) -> Node | None:
    """What returns its data unchanged, unless it is an output of the model."""
    value, targets = node.output(0), node.output(0).get_target_inputs()
    if not _does_nothing(node) or any(target.get_node().get_type_name() == "Result" for target in targets):
        return None
    if precision_of(value) != precision_of(node.input_value(0)):
        return None
    for target in targets:
        target.replace_source_output(node.input_value(0))
    return node


def _does_nothing(node: Node) -> bool:
    """Whether it returns its data unchanged, which the shapes do not show where sizes are dynamic."""
    kind = node.get_type_name()
    if kind == "Pad":
        pads = [constant_above(node.input_value(port)) for port in (1, 2)]
        return all(values is not None and not values.any() for values in pads)
    order = constant_above(node.input_value(1)) if kind == "Transpose" else None
    if order is not None:
        return bool((order == np.arange(order.size)).all()) and order.size > 0
    return kind == "Concat" and node.get_input_size() == 1


def other_constant(link: Node) -> np.ndarray | None:
    """What an operation of `BEFORE_INTERVAL` computes with beside its data, where that is constant."""
    return constant_above(link.input_value(1)) if link.get_input_size() > 1 else None


def block_fusion(node: Node) -> Node:
    """The maximum of a result and the least number, which is not a post-operation, after it."""
    targets, dtype = node.output(0).get_target_inputs(), node.get_output_element_type(0).to_dtype()
    least = (np.finfo if dtype.kind == "f" else np.iinfo)(dtype).min
    alone = opset1.maximum(node.output(0), constant(least, precision_of(node.output(0))))
    alone.set_friendly_name(made_for(node.get_friendly_name(), Made.ALONE))
    insert_after(node.output(0), alone.output(0), targets, [])
    return node


def wait_for_branches(node: Node) -> Node | None:
    """``y == broadcast(y, shape_of(y))`` for each output of an If of dynamic sizes

    In the first inference the plugin prepares the operations after it before it has run, and they read what lay in memory;
    without LPT, too. Where a shape is computed from data it waits.
    """
    values = [value for value in node.outputs() if may_be_open(value) and not _is_waited_for(value)]
    for value in values:
        targets, shape = (
            value.get_target_inputs(),
            NodeFactory("opset3").create("ShapeOf", [value], {"output_type": "i64"}),
        )
        same = NodeFactory("opset3").create("Broadcast", [value, shape.output(0)], {"mode": "numpy"})
        same.set_friendly_name(made_for(node.get_friendly_name(), Made.ALONE))
        insert_after(value, same.output(0), targets, [])
    return node if values else None


def _is_waited_for(value: Output) -> bool:
    """Whether `wait_for_branches` has seen it, or an output of the model alone reads it, which waits; one of another type
    than the plugin computes in reads a Convert.
    """
    readers = {target.get_node().get_type_name() for target in value.get_target_inputs()}
    return readers <= {"Broadcast", "ShapeOf"} or (readers == {"Result"} and precision_of(value) in _KEPT_TYPES)


def quantize_rows_alone(quantize: Node) -> Node | None:
    """A MatMul of dynamic sizes, or of two tensors, also mistakes a per-row interval, or a zero point after it that no
    layer fuses, for a per-column one (`_varies_by_rows`); one after an activation, too, or an interval that takes in what
    varies by rows there.
    """
    details, source = QuantizationDetails.of(quantize), quantize.input_value(0).get_node()
    if details is None:
        return None
    intervals = () if details.is_by_tensor else details.intervals
    if not any(map(_has_rows, (*intervals, *_zero_point_after(quantize), *taken_after_activation(source)))):
        return None
    _, product = links_above(source, POST_OPERATIONS)
    if not _takes_rows_for_columns(product):
        return None
    block_fusion(source)
    return quantize


def taken_after_activation(source: Node) -> list[np.ndarray]:
    """The constants between a layer's activation and a FakeQuantize that reads ``source``, which the interval takes in."""
    links, above = links_above(source)
    if above.get_type_name() not in POST_OPERATIONS:
        return []
    return [values for link in links if (values := other_constant(link)) is not None]


def _zero_point_after(quantize: Node) -> list[np.ndarray]:
    """The zero point that is subtracted from the integers, where no layer fuses it."""
    target = merged_target(quantize)
    subtract = None if target is None else target.get_node()
    if subtract is None or subtract.get_type_name() != "Subtract" or _is_zero_point(subtract):
        return []
    zero_point = constant_above(subtract.input_value(1))
    return [] if zero_point is None else [zero_point]


def _is_quantized_by_rows(node: Node, links: list[Node]) -> bool:
    """Whether intervals that differ between rows follow a MatMul and its scale.

    After a MatMul whose result is quantized by rows the constants that `compute_scale_in_f64` keeps from the interval
    would be taken for constants of rows: wrong numbers, no error. A Clamp stands there.
    """
    if node.get_type_name() != "MatMul":
        return False
    ends: list[np.ndarray] = []
    above = [(links or [node])[-1]]
    while above:
        for target in above.pop().output(0).get_target_inputs():
            reader = target.get_node()
            details = QuantizationDetails.of(reader) if reader.get_type_name() == "FakeQuantize" else None
            ends += details.intervals if details is not None else ()
            above += [reader] if reader.get_type_name() in BEFORE_INTERVAL else ()
    return any(map(_has_rows, ends))


def _varies_by_rows(node: Node) -> bool:
    """Whether a constant after a MatMul of dynamic sizes, of two tensors, or by a vector, differs between rows or heads.

    The plugin mistakes such a constant for a per-column one, and throws or computes wrong numbers. A Floor is put
    before it.
    """
    if node.get_type_name() != "MatMul":
        return False
    constants = [constant_above(link.input_value(1)) for link in _affine_links(node)]
    if _has_rows_only(node):
        return any(values.size > 1 for values in constants)
    return _takes_rows_for_columns(node) and any(map(_has_rows, constants))


def _has_rows_only(node: Node) -> bool:
    """Whether a MatMul by a vector leaves no axis of columns."""
    return node.get_type_name() == "MatMul" and len(shape_of(node.input_value(1)) or (0, 0)) == 1


def _has_rows(values: np.ndarray) -> bool:
    """Whether values differ between rows or heads."""
    return max(values.shape[:-1], default=1) > 1


def _takes_rows_for_columns(node: Node) -> bool:
    """A MatMul of dynamic sizes, or of two tensors, as an attention ends with."""
    if node.get_type_name() != "MatMul":
        return node.get_type_name() == "ScaledDotProductAttention"
    return may_be_open(node.output(0)) or not isinstance(node.input_value(1).get_node(), Constant)


def _has_groups_with_zero_point(node: Node) -> bool:
    """Whether groups of more than one channel read data less a zero point.

    Gemm runs them with AVX-512 and no VNNI, and computes wrong numbers where a bias and an interval follow, with the
    plugin's own LPT too: no error. A Floor leaves it without post-operations.
    """
    if node.get_type_name() != "GroupConvolution" or node.get_input_partial_shape(1).is_dynamic:
        return False
    groups, outputs, inputs = node.get_input_shape(1)[:3]
    return groups > 1 and outputs * inputs > 1 and node.input_value(0).get_node().get_type_name() == "Subtract"


def _runs_in_gemm(node: Node) -> bool:
    if has_older_kernels(node):
        return falls_back_to_gemm(node)
    return _has_groups_with_zero_point(node) and multiplies_groups_by_gemm()


def _affine_links(node: Node) -> list[Node]:
    """The Multiply, Add and Subtract operations with float constants that follow, each the only consumer."""
    links: list[Node] = []
    while True:
        targets = node.output(0).get_target_inputs()
        if len(targets) != 1:
            return links
        (target,) = targets
        node = target.get_node()
        if node.get_type_name() not in AFFINE or target.get_index():
            return links
        value = node.input_value(1)
        if not is_constant_above(value) or precision_of(value) != "f32":
            return links
        links.append(node)
