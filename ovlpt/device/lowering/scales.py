"""Scales, shifts and intervals after a layer, in the form in which the plugin fuses each where it belongs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from ovlpt.device.int8_layers import is_int8_layer, negative_scale_after_relu
from ovlpt.device.lowering.kernels import falls_back_to_gemm, has_zero_point, is_pointwise
from ovlpt.device.lowering.links import (
    BEFORE_INTERVAL,
    POST_OPERATIONS,
    affine_links,
    block_fusion,
    first_by_channel,
    guard_output,
    is_in_f64,
    links_above,
    may_be_one_element,
    merged_target,
    only_reader,
    other_constant,
)
from ovlpt.device.lowering.rows import is_quantized_by_rows, varies_by_rows
from ovlpt.device.this_cpu import multiplies_groups_by_gemm, multiplies_groups_wrongly
from ovlpt.graph.constants import (
    constant,
    constant_above,
    converted,
    elementwise,
    is_constant_above,
    kept_apart,
    precision_of,
    same_operation,
)
from ovlpt.graph.consumers import consumers_of, readers_of, targets_of
from ovlpt.graph.dequantization import dequantization_below
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import has_older_kernels, is_relaxed, keeps_types
from ovlpt.graph.shapes import may_be_open, shape_of
from ovlpt.graph.weights import varies_along
from ovlpt.layer_transformation import insert_after, move_tensor_names, replace_output
from ovlpt.openvino_api import Node, Output, opset1
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import ACTIVATIONS, AFFINE, DECONVOLUTIONS, REARRANGES

_SAME_LEVEL = 1e-3  # of two levels that differ by roundings only
_WHOLE_IN_BF16 = 256  # up to which it holds all whole numbers
_BEFORE_BROADCAST = REARRANGES | {"ReduceMean", "ReduceSum"}  # of a layer's result


def constant_second(node: Node) -> Node | None:
    """``c + x`` as ``x + c``, which is where the other rules look for the constant, and before a FakeQuantize ``c - x`` as
    ``x * -1 + c``.
    """
    first, second = node.input_values()
    if not is_constant_above(first) or is_constant_above(second) or is_relaxed(node):
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
    reader = only_reader(node)
    while reader is not None and reader.get_type_name() in BEFORE_INTERVAL:
        reader = only_reader(reader)
    return reader is not None and reader.get_type_name() == "FakeQuantize"


def dequantize_before_broadcast(node: Node) -> Node | None:
    """``broadcast(y) * s + b == broadcast(y * s + b)`` for the scale and the shift of a layer, or of its sums

    The plugin moves them before the Broadcast: by channel they are then post-operations of the layer
    (`compute_scale_in_f64`) that no other rule has seen; with open sizes it computes those of the result anew, of
    the constants' shapes as well.
    """
    moved = [broadcast for broadcast in _broadcasts_below(node) if _is_dequantized_before(broadcast, node)]
    return node if moved else None


def dequantize_before_reshape(node: Node) -> Node | None:
    """``reshape(y) * s == reshape(y * s)`` for the scale of a convolution whose channels stay where they are, before floats.

    A FakeQuantize takes the scale in after the Reshape, too.
    """
    readers = [reader for reader in readers_of(node) if reader.get_type_name() != "ShapeOf"]
    reshape = readers[0] if len(readers) == 1 and readers[0].get_type_name() == "Reshape" else None
    if reshape is None or not _keeps_channels(reshape):
        return None
    found = dequantization_below(reshape)
    multiply, rank = found.multiply, len(shape_of(reshape.output(0)) or ())
    if multiply is None or found.subtract is not None or found.convert is not None:
        return None
    values = constant_above(multiply.input_value(1))
    if values is None or not varies_along(values, rank, (1,)):
        return None
    if any(reader.get_type_name() == "FakeQuantize" for reader in readers_of(multiply)):
        return None
    channels = shape_of(node.output(0)) or ()
    along = values.reshape((1, -1, *(1 for _ in channels[2:])))
    scaled = same_operation(multiply, [node.output(0), constant(along, "f32").output(0)])
    scaled.set_friendly_name(made_for(node.get_friendly_name(), Made.SCALE))
    reshape.input(0).replace_source_output(scaled.output(0))
    reshape.set_friendly_name(multiply.get_friendly_name())
    replace_output(multiply.output(0), reshape.output(0))
    return node


def _keeps_channels(reshape: Node) -> bool:
    """Whether the first two axes stay as they are, and the second is known."""
    before, after = shape_of(reshape.input_value(0)) or (), shape_of(reshape.output(0)) or ()
    if min(len(before), len(after)) < 2 or before[1] is None or before[1] != after[1]:
        return False
    if before[0] is not None or after[0] is not None:
        return before[0] == after[0]
    if None not in (*before[2:], *after[2:]):
        return math.prod(before[2:]) == math.prod(after[2:])
    asked = constant_above(reshape.input_value(1))
    return asked is not None and asked.flat[0] == 0 and bool(reshape.get_attributes()["special_zero"])


def _broadcasts_below(node: Node) -> Iterator[Node]:
    """The Broadcasts of a layer's result, or of its sums."""
    for reader in readers_of(node):
        while reader is not None and reader.get_type_name() in _BEFORE_BROADCAST:
            reader = only_reader(reader)
        if reader is not None and reader.get_type_name() == "Broadcast":
            yield reader


def _is_dequantized_before(broadcast: Node, node: Node) -> bool:
    """Whether the scale and the shift of a layer could be moved before the Broadcast."""
    found, name = dequantization_below(broadcast), node.get_friendly_name()
    links = [link for link in (found.subtract, found.multiply) if link is not None]
    constants = [before_broadcast(constant_above(link.input_value(1)), broadcast) for link in links]
    if not links or any(values is None for values in constants):
        return False
    value = broadcast.input_value(0)
    for link, values in zip(links, constants, strict=True):
        moved = same_operation(link, [value, constant(values, "f32").output(0)])
        moved.set_friendly_name(made_for(name, Made.ZERO_POINT if link is found.subtract else Made.SCALE))
        value = moved.output(0)
    broadcast.input(0).replace_source_output(value)
    broadcast.set_friendly_name(links[-1].get_friendly_name())
    replace_output(links[-1].output(0), broadcast.output(0))
    return True


def before_broadcast(values: np.ndarray | None, broadcast: Node) -> np.ndarray | None:
    """A constant for the data of a Broadcast, or Tile, that does to it what ``values`` does to the result: it varies along axes
    that stay as they are.
    """
    if values is None or values.size == 1:
        return values if values is None else values.reshape(())
    narrow, wide = shape_of(broadcast.input_value(0)), shape_of(broadcast.output(0))
    if narrow is None or wide is None or len(narrow) != len(wide):
        return None
    kept = [
        axis for axis, sizes in enumerate(zip(narrow, wide, strict=True)) if None not in sizes and sizes[0] == sizes[1]
    ]
    return values if varies_along(values, len(wide), kept) else None


def ask_for_shape_after_scale(node: Node) -> Node | None:
    """What asks for the shape of a layer's result, or of what follows from it by a scale and a shift, asks that of the last.

    Once known sizes are folded, the scale is all that reads the layer, and would be fused past what keeps the two apart.
    """
    asks, last = [], node
    while len(readers := consumers_of(last.output(0))) == 1 and not readers[0].get_index():
        link = readers[0].get_node()
        if link.get_type_name() not in AFFINE or other_constant(link) is None:
            break
        if link.get_output_partial_shape(0) != last.get_output_partial_shape(0):
            break
        asks += [target for target in targets_of(last.output(0)) if target.get_node().get_type_name() == "ShapeOf"]
        last = link
    for target in asks:
        target.replace_source_output(last.output(0))
    return node if asks else None


def compute_scale_in_f64(node: Node) -> Node | None:
    """Compute the scale of a layer, and the bias after it, in f64, which keeps both from fusions; a Clamp where no
    scale follows, a Floor where a Clamp goes wrong.

    A constant Multiply after a relaxed Convolution, GroupConvolution or MatMul would be fused into the integer weights
    and throw; an Add after it would be fused into the FakeQuantize and keep the layer from its bias. Both would then
    be per-channel post-operations, which the plugin computes wrongly for dynamic sizes of one element, and in a Subgraph:
    wrong numbers, no error. No fusion reaches through a Convert to f64, or through the one back. The plugin's change of
    f64 to f32 removes both, after the fusions: it has the same scales, biases and post-operations as with its own LPT.
    After a MatMul all that is fused into an interval is kept from it: with one thread, one by column is read wrongly.
    A product that stays in f32 for its zero point (`keep_product`) would not, with a scale fused: a Floor stands there, too.

    A per-channel factor of what is read elsewhere, too, would be fused for all readers where sizes are dynamic. A maximum
    with the least number stands before it. Where a Slice alone reads the layer, nothing is needed, nor where activations,
    quantizations and sums that differ read a transposed convolution: over one axis it runs in float, and a Clamp would be a layer.
    """
    links = affine_links(node)
    if keeps_types(node):
        return (
            node if guard_output(node, floor=any(each.get_type_name() in AFFINE for each in readers_of(node))) else None
        )
    if varies_by_rows(node) or _runs_in_gemm(node):
        return node if guard_output(node, floor=is_int8_layer(node)) else None
    targets = list(node.output(0).get_target_inputs())
    reader = targets[0].get_node() if len(targets) == 1 else None
    if reader is not None and (is_in_f64(reader) or reader.get_type_name() in ("Relu", "PRelu")):
        return None  # done before the model was saved; no fusion reaches through
    if not links and (_is_shortened(reader) or _is_read_apart(node)):
        return None
    if not links or links[0].get_type_name() != "Multiply" or is_quantized_by_rows(node, links):
        return node if guard_output(node, floor=_may_be_scaled_in_gemm(node)) else None
    if node.get_type_name() != "MatMul" or not _is_before_interval(links[-1]):
        links = links[: 2 if len(links) > 1 and links[1].get_type_name() == "Add" else 1]
    last, value = links[-1].output(0), converted(node.output(0), "f64").output(0)
    scale, shift = _scale_and_shift(links)
    value = elementwise("Multiply", value, constant(scale, "f64").output(0)).output(0)
    if shift is not None:
        value.get_node().set_friendly_name(links[0].get_friendly_name())
        value = elementwise("Add", value, constant(shift, "f64").output(0)).output(0)
    value.get_node().set_friendly_name(links[-1].get_friendly_name())
    targets, back = last.get_target_inputs(), converted(value, "f32")
    shared = len(targets) > 1 and may_be_open(node.output(0))
    scales = [target for target in targets if shared and _scales_by_channel(target)]
    move_tensor_names(last, value)
    insert_after(value, back.output(0), targets, [back])
    if scales:
        alone = kept_apart(back.output(0))
        for target in scales:
            target.replace_source_output(alone.output(0))
    # a reference to it would count among the readers of its data
    links[0].input(0).replace_source_output(links[0].input_value(1))
    return node


def _is_read_apart(node: Node) -> bool:
    """Whether several read a transposed convolution, none of which is fused into it."""
    if node.get_type_name() not in DECONVOLUTIONS or merged_target(node) is not None:
        return False
    return all(map(_reads_alone, readers_of(node)))


def _reads_alone(reader: Node) -> bool:
    """Whether a layer that something else reads, too, takes in nothing of what it computes."""
    if reader.get_type_name() == "Add":
        return not any(map(is_constant_above, reader.input_values()))
    return reader.get_type_name() in ACTIVATIONS | {"FakeQuantize", "PRelu", "Relu"}


def _is_shortened(reader: Node | None) -> bool:
    """Whether what alone reads a layer is a Slice that leaves less of its result, whatever the sizes: no fusion reaches
    through it.
    """
    if reader is None or reader.get_type_name() != "Slice":
        return False
    first, last = (constant_above(reader.input_value(port)) for port in (1, 2))
    return first is not None and last is not None and bool((first > 0).any() or (last < 0).any())


def _scale_and_shift(links: list[Node]) -> tuple[np.ndarray, np.ndarray | None]:
    """One scale and one shift, in f64, that do what ``links`` do."""
    scale, shift = np.ones((), np.float64), None
    for link in links:
        values = constant_above(link.input_value(1)).astype(np.float64)
        if link.get_type_name() == "Multiply":
            scale, shift = scale * values, None if shift is None else shift * values
        else:
            values = values if link.get_type_name() == "Add" else -values
            shift = values if shift is None else shift + values
    return np.asarray(scale), shift


def _scales_by_channel(target: Any) -> bool:
    """Whether the plugin would make a factor of what else the reader multiplies or divides by, after a constant that is added."""
    reader = target.get_node()
    while reader.get_type_name() in ("Add", "Subtract") and other_constant(reader) is not None:
        if (following := merged_target(reader)) is None:
            return False
        target, reader = following, following.get_node()
    if target.get_index() or reader.get_type_name() not in ("Divide", "Multiply"):
        return False
    values = constant_above(reader.input_value(1))
    return values is not None and values.size > 1


def scale_to_interval(node: Node) -> Node | None:
    """``FQ(x * s + b; low, high) == FQ(x * s * k + (b - low) * k; 0, n)`` with ``k = n / (high - low)``, ``n`` steps

    A per-channel interval after a layer is a per-channel post-operation, too (`compute_scale_in_f64`). Where one element
    of dynamic sizes may come, and after a 1x1 convolution of data with a zero point (`leave_amx_before_channels`), scale and
    bias of the layer are such that one interval does for all channels. A Relu or PRelu between lets the scale through, and no
    shift. What gives other real values per channel is for `compute_by_channel`.
    """
    links, quantize = affine_links(node)[:2], None
    is_product = node.get_type_name() == "MatMul"
    is_affine = [link.get_type_name() for link in links] in ([], ["Multiply"], ["Multiply", "Add"])
    if is_affine and (is_product or may_be_one_element(node) or (is_pointwise(node) and has_zero_point(node))):
        quantize = only_reader(links[-1] if links else node)
    if after_relu := quantize is not None and quantize.get_type_name() in ("Relu", "PRelu"):
        quantize = only_reader(quantize)
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


def scale_after_interval(product: Node, open_rows: bool = False) -> Node | None:
    """``FQ(x; low, high) == FQ(x; 0, n) * (high - low) / n + low`` with ``n`` steps, where that differs between columns.

    With one thread the plugin makes a Subgraph of two MatMuls of rank 2 and what lies between. There a MatMul of
    integers reads a per-column FakeQuantize, or one that becomes so, from elsewhere: wrong numbers, no error, with the
    plugin's own LPT, too. A maximum with the least number keeps apart what the plugin would fuse into the interval.
    ``open_rows``: where their number is not known, or else where it is. While it is not, there is no such Subgraph.
    """
    quantize = _quantize_after(product, open_rows)
    details = None if quantize is None else QuantizationDetails.of(quantize)
    if details is None:
        return None
    low, high = (end.astype(np.float64) for end in details.intervals[2:])
    if low.size == high.size == 1:
        last = first_by_channel(quantize)
        if last is None:
            return None
        block_fusion(last)
        return product
    if precision_of(quantize.output(0)) != "f32":
        return None
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


def scale_open_rows_after_interval(product: Node) -> Node | None:
    """`scale_after_interval` of a saved model, which may be reshaped to a few rows."""
    return scale_after_interval(product, open_rows=True)


def scale_before_interval(product: Node, open_rows: bool = False) -> Node | None:
    """``FQ(x; low, high) == FQ((x - low) * k; 0, n)`` with ``k = n / (high - low)``, as `scale_after_interval`, where it
    differs between columns after more than the scale and the bias of the MatMul (`scale_to_interval`).
    """
    quantize = _quantize_after(product, open_rows)
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
    elif not _is_moved_by_columns(source.get_node(), affine_links(product)):
        return None
    block_fusion(source.get_node())
    return product


def scale_open_rows_before_interval(product: Node) -> Node | None:
    """`scale_before_interval` of a saved model, which may be reshaped to a few rows."""
    return scale_before_interval(product, open_rows=True)


def _quantize_after(product: Node, open_rows: bool) -> Node | None:
    """The FakeQuantize that the kernel of a MatMul of rank 2 would fuse. What several operations read ends a Subgraph, in
    which it is right.
    """
    sizes = shape_of(product.output(0)) or ()
    reader = only_reader(product) if len(sizes) == 2 and (sizes[0] is None) == open_rows else None
    while reader is not None and reader.get_type_name() != "FakeQuantize":
        reader = only_reader(reader) if reader.get_type_name() in POST_OPERATIONS else None
    return None if reader is None or only_reader(reader) is None else reader


def part_float_products(product: Node) -> Node | None:
    """Two MatMuls of floats by weights, of rank 2, with a FakeQuantize and constants that differ between columns between them.

    In bf16 the Subgraph of both reads these from elsewhere, as with integers (`scale_after_interval`). A PRelu with a slope of
    one is part of the first MatMul's kernel, and of no such Subgraph.
    """
    if is_relaxed(product) or not is_constant_above(product.input_value(1)):
        return None
    quantize, by_column, node = None, False, only_reader(product)
    while node is not None and node.get_type_name() != "MatMul":
        constants = map(constant_above, node.input_values())
        by_column = by_column or any(values is not None and values.size > 1 for values in constants)
        if quantize is None and node.get_type_name() == "FakeQuantize":
            quantize = node
        node = only_reader(node)
    if node is None or quantize is None or not by_column or len(shape_of(product.output(0)) or ()) != 2:
        return None
    _part_by_slope(quantize.input_value(0), quantize)
    return product


def part_single_column(product: Node) -> Node | None:
    """A MatMul of floats by weights that gives one column, of rank 2, with another MatMul after it.

    With one thread compiling the Subgraph of both throws, of float networks, too. A PRelu as in `part_float_products`.
    """
    if is_relaxed(product) or not is_constant_above(product.input_value(1)):
        return None
    sizes, node = shape_of(product.output(0)) or (), only_reader(product)
    while node is not None and node.get_type_name() != "MatMul":
        node = only_reader(node)
    if node is None or len(sizes) != 2 or sizes[1] != 1:
        return None
    _part_by_slope(product.output(0), product)
    return product


def _part_by_slope(value: Output, named: Node) -> None:
    """A PRelu with a slope of one after ``value``, which is part of the kernel before it; called as what keeps ``named`` apart."""
    targets = value.get_target_inputs()
    whole = opset1.prelu(value, constant(np.ones(1), precision_of(value)))
    whole.set_friendly_name(made_for(named.get_friendly_name(), Made.ALONE))
    for target in targets:
        target.replace_source_output(whole.output(0))


def _is_moved_by_columns(node: Node, known: Collection[Node]) -> bool:
    """Whether the plugin takes something by column into the interval after ``node``, other than what is ``known``."""
    kept = {link.get_instance_id() for link in known}
    links = (link for link in links_above(node)[0] if link.get_instance_id() not in kept)
    return any((values := other_constant(link)) is not None and values.size > 1 for link in links)


def add_negative_shift(node: Node) -> Node | None:
    """A subtraction after a layer becomes an addition with the other sign, for the rules that follow. After common
    optimizations it already is one.
    """
    subtracted = [link for link in affine_links(node) if link.get_type_name() == "Subtract"]
    for link in subtracted:
        total = opset1.add(link.input_value(0), constant(-constant_above(link.input_value(1))))
        total.set_friendly_name(link.get_friendly_name())
        replace_output(link.output(0), total.output(0))
        # a reference to it would count among the readers of its data
        link.input(0).replace_source_output(link.input_value(1))
    return node if subtracted else None


def shift_after_scale(node: Node) -> Node | None:
    """``(x + b) * s + c + d`` after a layer as ``x * s + (b * s + c + d)``: its scale, and its bias.

    The plugin would do so at each load, but for what is computed in f64. Of two shifts it would read the second wrongly at
    dynamic sizes of one element.
    """
    links = affine_links(node)
    at = next((at for at, link in enumerate(links) if link.get_type_name() == "Multiply"), len(links))
    after = list(takewhile(lambda link: link.get_type_name() == "Add", links[at + 1 :]))
    if at == len(links) or (not at and len(after) < 2):
        return None
    if varies_by_rows(node) or is_quantized_by_rows(node, links) or keeps_types(node):
        return None
    multiply, scale = links[at], constant_above(links[at].input_value(1))
    before = [constant_above(link.input_value(1)) for link in links[:at]]
    shifts = [constant_above(link.input_value(1)) for link in after]
    shift, last = (sum(before) * scale, multiply) if before else (shifts[0], None)
    for link, more in list(zip(after, shifts, strict=True))[not before :]:
        if np.broadcast_shapes(shift.shape, more.shape) != shift.shape:
            break
        shift, last = shift + more, link
    if last is None:
        return None
    scaled = opset1.multiply(node.output(0), constant(scale))
    shifted = opset1.add(scaled, constant(shift))
    scaled.set_friendly_name(made_for(multiply.get_friendly_name(), Made.SCALE))
    shifted.set_friendly_name(last.get_friendly_name())
    replace_output(last.output(0), shifted.output(0))
    # a reference to it would count among the readers of its data
    links[0].input(0).replace_source_output(links[0].input_value(1))
    return node


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


def _has_groups_with_zero_point(node: Node) -> bool:
    """Whether groups of more than one channel read data less a zero point.

    Gemm runs them without VNNI. With AVX-512 it computes wrong numbers where a bias and an interval follow, with the
    plugin's own LPT too, and with AVX2 where a clip and a factor do: no error. A Floor leaves it without post-operations.
    """
    if node.get_type_name() != "GroupConvolution" or node.get_input_partial_shape(1).is_dynamic:
        return False
    groups, outputs, inputs = node.get_input_shape(1)[:3]
    return groups > 1 and outputs * inputs > 1 and has_zero_point(node)


def _may_be_scaled_in_gemm(node: Node) -> bool:
    """Where only intervals follow, a Floor would keep them from the layer."""
    if not _has_groups_with_zero_point(node) or not multiplies_groups_by_gemm():
        return False
    return any(target.get_node().get_type_name() != "FakeQuantize" for target in node.output(0).get_target_inputs())


def _runs_in_gemm(node: Node) -> bool:
    if has_older_kernels(node):
        return falls_back_to_gemm(node)
    return _has_groups_with_zero_point(node) and multiplies_groups_wrongly()
