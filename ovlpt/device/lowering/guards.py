"""What keeps the plugin from fusing after a layer what it would compute wrongly there."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

import numpy as np

from ovlpt.canonicalize.factors_before_kernels import part_from_factor, takes_factor_by_position
from ovlpt.common_optimizations import group_normalization
from ovlpt.device.int8_layers import is_depthwise, is_int8_layer
from ovlpt.device.lowering.kernels import falls_back_to_gemm, with_kernels
from ovlpt.device.lowering.links import (
    OF_TWO,
    POST_OPERATIONS,
    affine_links,
    block_fusion,
    does_nothing,
    first_after_affine,
    first_by_channel,
    guard_output,
    links_above,
    may_be_one_element,
    merged_target,
    only_reader,
    other_constant,
)
from ovlpt.graph.constants import constant_above, is_constant_above, is_constant_path, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import BRGEMM, has_older_kernels, kernels_of
from ovlpt.graph.shapes import may_be_open, shape_of
from ovlpt.layer_transformation import insert_after, replace_output
from ovlpt.openvino_api import RELEASE, Constant, Node, NodeFactory, Output
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import AFFINE, ARITHMETIC, CONVOLUTIONS
from ovlpt.operations.values import is_scalar_like
from ovlpt.precisions import is_low

_KEPT_TYPES = frozenset(("f32", "i32", "i8", "u8"))  # of outputs, without a Convert
_IMAGE = 3  # channels
_VECTOR = 16  # channels
_FEW_WEIGHTS = 256  # with more, there are too many products for that kernel at one place of the result
_ROW = 16  # numbers: with as many, the kernel of a division by the root mean square stops
_COARSE = 64  # levels: half a step of more is less than 1 % of an interval


def compute_by_channel(node: Node) -> Node | None:
    """What a layer computes per channel after its scale and bias, after an activation for instance, would be a
    post-operation by channel, too (`compute_scale_in_f64`). oneDNN's older kernels have the plugin's own form of it,
    which is right for one element; they are asked for by name. They take no longer, and no layer is added. Where they
    have no form of the layer, or end the process (`leave_avx512`), nothing is fused into it.
    """
    last = first_after_affine(node) if may_be_one_element(node) else None
    if last is None:
        return None
    if falls_back_to_gemm(node) or kernels_of(node) == BRGEMM:
        block_fusion(last)
        return node
    return with_kernels(node)


def _part_by_channel(layer: Node, but: Collection[str] = ()) -> Node | None:
    """Fuse nothing by channel after a layer's scale and bias. The layer, or None where nothing is by channel there."""
    if (last := first_after_affine(layer, but)) is None:
        return None
    block_fusion(last)
    return layer


def part_from_gemm(layer: Node) -> Node | None:
    """What is by channel after an activation, slopes, or an interval by channel of floats, after groups whose channels are not
    in fours.

    With AMX the plugin has such post-operations of int8 layers only in older kernels. Gemm, which runs these groups there,
    and with a zero point on CPUs without AVX-512 and VNNI, reads them from elsewhere, with the plugin's own LPT, too: wrong
    numbers, of floats in bf16 also infinite ones, no error.
    """
    if not is_int8_layer(layer) or is_depthwise(layer) or not falls_back_to_gemm(layer):
        return None
    last = first_after_affine(layer)
    if last is None or is_low(precision_of(merged_target(last).get_node().output(0))):
        return None
    block_fusion(last)
    return layer


def part_open_floats_by_channel(convolution: Node) -> Node | None:
    """A convolution of floats whose open sizes may leave one element a channel: in bf16 it reads what is by channel after its
    bias wrongly there, with the plugin's own LPT and without any, too. That is not fused then.
    """
    if is_int8_layer(convolution) or not may_be_one_element(convolution):
        return None
    return _part_by_channel(convolution)


def part_from_slopes(layer: Node) -> Node | None:
    """Slopes by channel after a depthwise layer of u8 data without a zero point, by kernels before brgemm: dilated, over one
    axis, with those kernels asked for, and any in OpenVINO 2024.

    With AVX-512 and VNNI they read the slopes from elsewhere where the channels fill whole vectors, of few columns from 48
    channels on, with the plugin's own LPT, too: no error. A maximum with the least number keeps the PRelu from the layer.
    """
    weights, attributes = shape_of(layer.input_value(1)), layer.get_attributes()
    if not (is_int8_layer(layer) and is_depthwise(layer)) or precision_of(layer.input_value(0)) != "u8":
        return None
    is_older = len(attributes["strides"]) == 1 or set(attributes["dilations"]) != {1} or has_older_kernels(layer)
    if not (is_older or RELEASE < (2025, 0)) or (weights[0] is not None and weights[0] % _VECTOR):
        return None
    return _part_by_channel(layer, but=POST_OPERATIONS - {"PRelu"})


def part_from_sum(node: Node) -> Node | None:
    """A depthwise layer of floats into which the sum with another tensor is fused reads what is per channel after it wrongly
    for one element, with the plugin's own LPT, too. That is not fused then.
    """
    link = [node, *affine_links(node)][-1]
    last = first_by_channel(link) if not is_int8_layer(node) and may_be_one_element(node) else None
    while last is not None and link.get_instance_id() != last.get_instance_id():
        link = merged_target(link).get_node()
        if link.get_type_name() == "Add" and other_constant(link) is None:
            block_fusion(last)
            return node
    return None


def part_open_from_sum(convolution: Node) -> Node | None:
    """A convolution of floats of open sizes, where a sum with another tensor cannot be fused into it: nothing is fused then.

    With a tensor of integers, and quantized again, it throws in inference. One of up to three channels, or of one group of
    them, with few weights may give a result so small that the plugin takes an older kernel, and gives the other tensor alone,
    with its own LPT, too.
    """
    if is_int8_layer(convolution) or not may_be_open(convolution.output(0)):
        return None
    is_small, last = _has_few_weights(convolution), convolution
    while (target := merged_target(last)) is not None and (reader := target.get_node()).get_type_name() in AFFINE:
        if reader.get_type_name() == "Add" and all(constant_above(value) is None for value in reader.input_values()):
            other = precision_of(reader.input_value(1 - target.get_index()))
            return block_fusion(last) if is_small or (is_low(other) and _is_quantized(reader)) else None
        last = reader
    return None


def _has_few_weights(convolution: Node) -> bool:
    """For up to three channels, in one group."""
    weights = shape_of(convolution.input_value(1))
    if weights is not None and convolution.get_type_name() == "GroupConvolution":
        weights = weights[1:] if weights[0] == 1 else None
    return weights is not None and None not in weights and weights[1] <= _IMAGE and prod(weights) <= _FEW_WEIGHTS


def keep_factor_by_position(convolution: Node) -> Node | None:
    """A scale by row or column that low precision has left before a convolution of floats (`FactorsBeforeKernels`)."""
    if not takes_factor_by_position(convolution):
        return None
    part_from_factor(convolution)
    return convolution


def part_by_column(product: Node) -> Node | None:
    """A MatMul of two tensors reads a per-column scale or interval beyond the end of its array: wrong numbers, or none
    at all, with the plugin's own LPT, too. So nothing is fused into it. A per-column shift is right.
    """
    if isinstance(product.input_value(1).get_node(), Constant):
        return None
    last = first_by_channel(product, but=("Add", "Subtract"))
    if last is None:
        return None
    block_fusion(last)
    return product


def part_from_row(product: Node) -> Node | None:
    """A MatMul of two tensors, and a sum or product with one row, a mask of keys for instance, in one Subgraph of an attention.

    With AMX the kernel reads a row of known size from elsewhere, as with AVX-512 and VNNI between floats in bf16, or one element
    between integers; with the plugin's own LPT, too: wrong numbers, no error. A Clamp to all numbers is no post-operation of it.
    """
    if any(is_constant_path(value.get_node()) for value in product.input_values()):
        return None
    last = product
    while (target := merged_target(last)) is not None:
        if (reader := target.get_node()).get_type_name() not in POST_OPERATIONS | OF_TWO:
            return None
        are_rows = [_is_row(value) for port, value in enumerate(reader.input_values()) if port != target.get_index()]
        if reader.get_type_name() == "FakeQuantize":
            if any(are_rows[:2]):
                return None  # it is no part of a Subgraph
            if any(are_rows):
                return block_fusion(last)  # before a FakeQuantize the plugin drops a Clamp
        elif any(are_rows):
            if not guard_output(last):
                return None
            if _is_taken_into_interval(reader):
                block_fusion(reader.input_value(target.get_index()).get_node())
            return product
        last = reader
    return None


def _is_taken_into_interval(node: Node) -> bool:
    """Whether an operation with a constant becomes part of the interval of a FakeQuantize, before which a Clamp is dropped."""
    while node is not None and node.get_type_name() in ARITHMETIC and other_constant(node) is not None:
        node = only_reader(node)
    return node is not None and node.get_type_name() == "FakeQuantize"


def _is_row(value: Output) -> bool:
    """Whether a tensor of known size has elements along its last axis only, several or one that is not known."""
    *others, last = shape_of(value) or (1,)
    if last is None or any(size != 1 for size in others):
        return False
    return last > 1 or constant_above(value) is None


def part_open_columns(product: Node) -> Node | None:
    """A MatMul with a dynamic number of columns throws where something per column is fused into it, in float, too. So
    nothing is.
    """
    shape = shape_of(product.output(0))
    last = first_by_channel(product) if shape and shape[-1] is None else None
    if last is None:
        return None
    block_fusion(last)
    return product


def normalize_by_groups(node: Node) -> Node | None:
    """A GroupNormalization as an MVN with scale and bias. In one Subgraph with what computes the other tensor that it is
    added to or multiplied with, as after the Relu of a residual block, it makes the process end, in a float network, too.
    """
    normalized = group_normalization(node)
    if normalized is not None:
        normalized.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), normalized.output(0))
    return normalized


def part_from_clamp(quantize: Node) -> Node | None:
    """The plugin fuses a Clamp, with constants that are added or multiplied after it, into the interval of the FakeQuantize
    that follows. Where nothing that the Clamp leaves lies within it, in any channel, it cuts to the end of the Clamp in place
    of that of the interval, with its own LPT, too. The Clamp is not fused then.
    """
    value, links = quantize.input_value(0), []
    while (node := value.get_node()).get_type_name() in ARITHMETIC or does_nothing(node):
        port = int(node.get_input_size() > 1 and is_constant_above(node.input_value(0)))
        links += [(node, port)] if node.get_type_name() in ARITHMETIC else []
        value = node.input_value(port)
    if node.get_type_name() != "Clamp":
        return None
    ends = [constant_above(quantize.input_value(port)) for port in (1, 2)]
    if any(end is None for end in ends):
        return None
    attributes = node.get_attributes()
    left = [np.array(attributes[end], np.float64) for end in ("min", "max")]
    for link, port in reversed(links):
        other = constant_above(link.input_value(1 - port))
        if other is None:
            return None
        left = [_computed(link, *((end, other) if port == 0 else (other, end))) for end in left]
    if not ((np.maximum(*left) < np.minimum(*ends)) | (np.minimum(*left) > np.maximum(*ends))).any():
        return None
    block_fusion(node)
    return quantize


def part_from_negative_scale(quantize: Node) -> Node | None:
    """The plugin leaves a FakeQuantize after an AvgPool a layer of its own and fuses the scale between them into it: where a
    channel's scale is negative, all channels are multiplied with the first one's, with its own LPT, too. That is not fused
    then.
    """
    links, head = links_above(quantize.input_value(0).get_node())
    if head.get_type_name() != "AvgPool":
        return None
    for link in links:
        values = other_constant(link) if link.get_type_name() == "Multiply" else None
        if values is not None and not is_scalar_like(values) and (values < 0).any():
            block_fusion(link)
            return quantize
    return None


def _computed(link: Node, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    compute = {"Add": np.add, "Divide": np.divide, "Multiply": np.multiply, "Subtract": np.subtract}
    with np.errstate(all="ignore"):
        return compute[link.get_type_name()](np.asarray(first, np.float64), np.asarray(second, np.float64))


def part_from_broadcast(add: Node) -> Node | None:
    """The plugin fuses a convolution with the sum of its result and another tensor, and throws where one of the two
    turns out to be broadcast, with its own LPT, too: only known sizes keep it from that. Where a size of only one of
    the two is known, nothing is fused into the layer.
    """
    if any(map(is_constant_above, add.input_values())):
        return None
    shapes = [shape_of(value) for value in add.input_values()]
    if None in shapes or len(shapes[0]) != len(shapes[1]):
        return None
    if not any(None in sizes and max(filter(None, sizes), default=1) > 1 for sizes in zip(*shapes, strict=True)):
        return None
    layers = [value.get_node() for value in add.input_values()]
    layers = [last for last in layers if links_above(last, POST_OPERATIONS)[1].get_type_name() in CONVOLUTIONS]
    for last in layers:
        block_fusion(last)
    return add if layers else None


def drop_idle(node: Node) -> Node | None:
    """What returns its data unchanged, unless only an output of the model reads it."""
    value, source = node.output(0), _returned(node)
    if source is None or precision_of(value) != precision_of(source):
        return None
    targets = [target for target in value.get_target_inputs() if target.get_node().get_type_name() != "Result"]
    for target in targets:
        target.replace_source_output(source)
    return node if targets else None


def _returned(node: Node) -> Output | None:
    """The input that a node returns unchanged, for a Select that which is chosen everywhere."""
    if node.get_type_name() != "Select":
        return node.input_value(0) if does_nothing(node) else None
    chosen = constant_above(node.input_value(0))
    if chosen is None or chosen.size == 0 or chosen.min() != chosen.max():
        return None
    source, shape = node.input_value(1 if chosen.all() else 2), node.get_output_partial_shape(0)
    return source if shape.is_static and source.get_partial_shape() == shape else None


def normalize_apart(node: Node) -> Node | None:
    """A BatchNormInference of open sizes that follows no layer, apart from what quantizes it. Of the scale and shift by channel
    that the plugin makes of it, and fuses into the interval of a FakeQuantize, it takes the first ones for all: wrong
    numbers, no error, without LPT, too. After a layer that others read as well it would be a part of the layer for them, too,
    and follows none once it is parted from it.
    """
    source = node.input_value(0).get_node()
    if not may_be_open(node.output(0)):
        return None
    shared = source.get_input_size() > 0 and only_reader(source) is None
    if shared:
        block_fusion(source)
    elif links_above(source)[1].get_type_name() in WEIGHTED:
        return None
    return block_fusion(node)


def part_from_short_rows(multiply: Node) -> Node | None:
    """The factor of what is divided by its root mean square along short rows, or rows that may be short.

    Before 2026.3 the plugin's kernel for both does not stop in rows that fill no vector, in a float model, too. Up to 2026.1 it
    is taken where the mean is along axis -1, as that is written.
    """
    shape = shape_of(multiply.input_value(0)) if RELEASE < (2026, 3) else None
    if not shape or (shape[-1] or 0) >= _ROW or constant_above(multiply.input_value(1)) is None:
        return None
    data = multiply.input_value(0).get_node()
    if data.get_type_name() not in ("Divide", "Multiply") or not any(map(_is_root_of_mean, data.input_values())):
        return None
    block_fusion(data)
    return multiply


def _is_root_of_mean(value: Output) -> bool:
    """Whether it is computed from a mean and constants, by a root or a power."""
    node = value.get_node()
    while node.get_type_name() in ("Add", "Divide", "Power", "Sqrt"):
        computed = [each.get_node() for each in node.input_values() if not is_constant_above(each)]
        if len(computed) != 1:
            return False
        (node,) = computed
    return node.get_type_name() == "ReduceMean"


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


def part_coarse_from_sum(quantize: Node) -> Node | None:
    """A sum of two tensors that follows is not fused into the convolution in int8 that a FakeQuantize of few levels does.

    With a sum and another FakeQuantize after it, the plugin drops the rounding of the first FakeQuantize that it fuses into
    such a layer, with its own LPT, too. Of 256 levels that is less than what rounding costs elsewhere; of 16 it moves values
    by up to a thirtieth of their interval, which the network was trained without. Another convolution may take the sum in.
    """
    if (last := _last_before_sum(quantize)) is None or not _is_coarse(quantize) or not _is_first_of_layer(quantize):
        return None
    (target,) = (each for each in last.output(0).get_target_inputs() if each.get_node().get_type_name() == "Add")
    if _takes_sum(target.get_node().input_value(1 - target.get_index()).get_node(), first=target.get_index() == 1):
        return None
    block_fusion(last)
    return quantize


def _takes_sum(node: Node, first: bool) -> bool:
    """Whether it ends a layer of a convolution in int8 that the plugin fuses the sum into, and that rounds to no few levels:
    of two convolutions one that no FakeQuantize follows, else that of the first input.
    """
    if (links := _links_of_layer(node)) is None:
        return False
    quantized = [link for link in links if link.get_type_name() == "FakeQuantize"]
    return not quantized or (first and not any(map(_is_coarse, quantized)))


def _is_coarse(quantize: Node) -> bool:
    """Whether few levels are left by the Clamps that follow."""
    if (details := QuantizationDetails.of(quantize)) is None:
        return False
    low, high = details.output_low.astype(np.float64), details.output_high.astype(np.float64)
    step = np.maximum((high - low) / (details.levels - 1), np.finfo(np.float32).tiny)
    last = quantize
    while (reader := _only_reader(last)) is not None and reader.get_type_name() == "Clamp":
        last, ends = reader, reader.get_attributes()
        low, high = np.maximum(low, ends["min"]), np.minimum(high, ends["max"])
    return bool(((high - low) / step < _COARSE).all())


def _is_first_of_layer(quantize: Node) -> bool:
    """Whether a convolution in int8 takes it in, and no other before it."""
    links = _links_of_layer(quantize.input_value(0).get_node())
    return links is not None and all(link.get_type_name() != "FakeQuantize" for link in links)


def _links_of_layer(node: Node) -> list[Node] | None:
    """The operations from ``node`` up that a convolution in int8 takes in, each with one reader; None without one."""
    links: list[Node] = []
    while len(readers_of(node)) == 1 and node.get_type_name() in POST_OPERATIONS:
        data, *others = node.input_values()
        if not all(map(is_constant_above, others)):
            return None
        links.append(node)
        node = data.get_node()
    is_layer = node.get_type_name() in CONVOLUTIONS and len(readers_of(node)) == 1 and is_int8_layer(node)
    return links if is_layer else None


def _last_before_sum(quantize: Node) -> Node | None:
    """What a sum of two tensors reads, if the layer can take both in, and one of them or what follows is quantized again."""
    kinds: list[str] = []
    last = quantize
    while (reader := _only_reader(last)) is not None and (kind := reader.get_type_name()) in POST_OPERATIONS:
        if kind == "Add" and not any(map(is_constant_above, reader.input_values())):
            return last if "FakeQuantize" in kinds or _is_quantized(reader) else None
        kinds.append(kind)
        last = reader
    return None


def _is_quantized(node: Node) -> bool:
    while (reader := _only_reader(node)) is not None and reader.get_type_name() in POST_OPERATIONS:
        if reader.get_type_name() == "FakeQuantize":
            return True
        node = reader
    return False


def _only_reader(node: Node) -> Node | None:
    """But for what asks for the shape, which is folded."""
    readers = [reader for reader in readers_of(node) if reader.get_type_name() != "ShapeOf"]
    return readers[0] if len(readers) == 1 else None
