"""What keeps a lowered model as it is where a CPU is asked for floats in f16 (``INFERENCE_PRECISION_HINT``).

For bf16 the CPU plugin changes the types of layers that are ready to run. For f16, on a CPU that computes in it, it changes
those of the model before anything else, as a GPU does: constants and plain operations become f16, relaxed
operations keep reporting f32, and what is computed in f64 becomes f32. Between them it puts Converts, which part
a layer from its post-operations; scales lose bits, sums overflow, or it throws. A GPU's model reports f16 where it should
(`ovlpt.device.lowering.half`). A CPU's may be saved, and is not to depend on a hint: its nodes are marked.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from ovlpt.device.int8_layers import is_depthwise, is_int8_layer
from ovlpt.device.lowering.kernels import is_shorter_than_window, leaves_one_column
from ovlpt.device.lowering.links import (
    POST_OPERATIONS,
    affine_links,
    block_fusion,
    first_by_channel,
    merged_target,
    only_reader,
    other_constant,
)
from ovlpt.device.lowering.rows import is_quantized_by_rows, varies_by_rows
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, constant_above, is_constant_above, precision_of
from ovlpt.graph.consumers import readers_of, readers_of_all_outputs, targets_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import is_relaxed, keeps_types, kernels_of, mark_of_f32, mark_of_kept_types
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import MARKS_TYPES, Constant, Model, Node, Output, opset1
from ovlpt.operations import OPERATIONS, WEIGHTED

_SHIFTS = ("Add", "FakeQuantize", "Subtract")
_BEFORE_SHIFT = {each.name for each in OPERATIONS.values() if each.copies} | {
    "AvgPool", "Clamp", "Convert", "Floor", "ReduceMean", "ReduceSum",
}  # fmt: skip


def keep_types(model: Model) -> None:
    """Mark each node that reads or reports real numbers, so that its types stay and what is not quantized runs in f32.

    Releases before 2026.3 have only a mark that keeps nodes from bf16, too. One that has such a mark keeps it.
    """
    key, mark = mark_of_kept_types()
    for node in filter(_is_real, all_nodes(model)):
        if key not in node.get_rt_info():
            _mark(node, key, mark)


def keep_integer_sums(model: Model) -> None:
    """Mark what reads the sums of a layer of integers as floats, as in a model that is quantized dynamically: they are beyond
    the largest number of f16, and what is computed of them would be no number.
    """
    for node in all_nodes(model):
        if node.get_type_name() in WEIGHTED and node.get_output_element_type(0).is_integral():
            key, mark = mark_of_f32()
            for reader in readers_of(node):
                if reader.get_type_name() == "Convert" and _is_real(reader) and key not in reader.get_rt_info():
                    _mark(reader, key, mark)


def keep_product(product: Node) -> Node | None:
    """Keeps a MatMul of integers in f32 where floats are bf16 and the layer does not fuse the constant that stands for the
    zero points of its data: each is large, and what they differ by is small. So it is where they differ between rows or
    heads, after a product of four axes or more, or with weights that differ between heads, and where the result is moved
    before its dequantization.
    """
    if not _is_far_from_zero(product) or _is_fused(product):
        return None
    _mark(product, *mark_of_f32())
    return product


def _is_far_from_zero(node: Node) -> bool:
    """Whether a constant is added to a result before its scale, or its interval is farther from zero than it is wide: its
    numbers are rounded by more than a level where they are far from zero.
    """
    for reader in readers_of_all_outputs(node):
        kind = reader.get_type_name()
        if kind in ("Add", "Subtract") and constant_above(reader.input_value(1)) is not None:
            return True
        if kind == "FakeQuantize" and (details := QuantizationDetails.of(reader)) is not None:
            low, high = details.input_low, details.input_high
            if (np.maximum(abs(low), abs(high)) > abs(high - low)).any():
                return True
        if kind != "Multiply" and _passes_on(reader) and _is_far_from_zero(reader):
            return True
    return False


def _is_fused(product: Node) -> bool:
    """Whether the layer adds a constant by column to its sums, before their type is changed."""
    reader, weights = only_reader(product), product.input_value(1)
    if reader is None or reader.get_type_name() not in _SHIFTS:
        return False
    shape = shape_of(product.output(0))
    if not isinstance(weights.get_node(), Constant) or len(weights.get_shape()) > 2 or shape is None or len(shape) > 3:
        return False
    return not varies_by_rows(product) and not is_quantized_by_rows(product, affine_links(product))


def keep_depthwise(layer: Node) -> Node | None:
    """Keeps a depthwise convolution of floats over one axis in f32 where floats are bf16 and a FakeQuantize by channel follows:
    the kernel of bf16 reads the intervals from elsewhere, with the plugin's own LPT and without any, too. With another tensor
    that is added in its kernel it would throw: the FakeQuantize is not fused then.
    """
    if is_int8_layer(layer) or not is_depthwise(layer) or len(layer.get_attributes()["strides"]) > 1:
        return None
    last = first_by_channel(layer, but=POST_OPERATIONS - {"FakeQuantize"})
    if last is None:
        return None
    link = layer
    while link.get_instance_id() != last.get_instance_id():
        link = merged_target(link).get_node()
        if link.get_type_name() == "Add" and other_constant(link) is None:
            return block_fusion(last)
    _mark(layer, *mark_of_f32())
    return layer


def keep_embeddings(total: Node) -> Node | None:
    """Keeps a sum of embeddings and constants in f32 where floats are bf16, up to what else reads it.

    Rows of a table are given in f32. All inputs of a sum in bf16 would be converted, none would tell an order of memory, and
    the plugin would take the one that has the channels last but one: each sum on the way to the model's end would stay in it, between
    two Reorders. With the plugin's own LPT, and in float models, this happens, too.
    """
    if precision_of(total.output(0)) != "f32" or len(shape_of(total.output(0)) or ()) != 3:
        return None
    values = [_embedding(value) for value in total.input_values()]
    if None in values or not any(values):
        return None
    for node in (total, *(each for found in values for each in found)):
        _mark(node, *mark_of_f32())
    return total


def _embedding(value: Output) -> list[Node] | None:
    """What computes a sum of rows of constant tables and of constants from these; nothing of a constant, None of all else."""
    node = value.get_node()
    if is_constant_above(value):
        return []
    if node.get_type_name() == "Gather" and is_constant_above(node.input_value(0)):
        return [node]
    if node.get_type_name() not in ("Add", "Multiply") or len(targets_of(value)) > 1:
        return None
    found = [_embedding(each) for each in node.input_values()]
    return None if None in found or not any(found) else [node, *chain.from_iterable(found)]


def keep_from_amx(convolution: Node) -> Node | None:
    """Keeps in f32, where floats are bf16, a convolution of floats of which a stride leaves one column, or over three axes whose
    data may be shorter than its window: kernels of AMX read other rows or beside the data, as in int8 (`leave_amx`). Of an open
    width it may not come to one column, and stays in bf16.
    """
    if is_int8_layer(convolution) or is_depthwise(convolution) or kernels_of(convolution):
        return None
    if not leaves_one_column(convolution, open_too=False) and not is_shorter_than_window(convolution):
        return None
    _mark(convolution, *mark_of_f32())
    return convolution


def keep_sums(model: Model) -> list[Node]:
    """Keeps a MatMul of integers, and the sums that stand for zero points (`ovlpt.main.mat_mul`), in f32 where floats are
    bf16: each is large, and what they differ by is small. So with what lies between a product that is kept so already and its
    zero point.
    """
    changed = []
    for product in model.get_ordered_ops():
        if product.get_type_name() != "MatMul" or not is_relaxed(product):
            continue
        nodes = _less_sums(product)
        if not nodes and keeps_types(product):
            nodes = _up_to_shift(product)
        if nodes:
            key, mark = mark_of_f32()  # to read it takes 2 ms, and few models need it
            changed.append(product)
            for node in (product, *nodes):
                _mark(node, key, mark)
    return changed


def _up_to_shift(node: Node) -> list[Node]:
    """What reads a product, up to what adds a constant to it or quantizes it."""
    found = list[Node]()
    for reader in readers_of_all_outputs(node):
        kind = reader.get_type_name()
        if kind in ("Add", "Subtract"):
            found += _scaled_first(reader)
        elif kind == "FakeQuantize":
            found.append(reader)
        elif _passes_on(reader) and (nodes := _up_to_shift(reader)):
            found += [reader, *nodes]
    return found


def _passes_on(node: Node) -> bool:
    """Whether it may lie between a product and the zero point that is subtracted from it."""
    kind = node.get_type_name()
    if kind in ("Maximum", "Multiply"):
        return constant_above(node.input_value(1)) is not None
    return kind in _BEFORE_SHIFT


def _scaled_first(shift: Node) -> list[Node]:
    """``(x - z) * s`` as ``x * s + -z * s``, as the plugin would make of it, without the mark."""
    values, factor = constant_above(shift.input_value(1)), only_reader(shift)
    if values is None or precision_of(shift.output(0)) != "f32":
        return []
    is_scaled = factor is not None and factor.get_type_name() == "Multiply" and precision_of(factor.output(0)) == "f32"
    scale = constant_above(factor.input_value(1)) if is_scaled else None
    values = values if shift.get_type_name() == "Add" else -values
    last, data = (shift if scale is None else factor), shift.input_value(0)
    nodes = [] if scale is None else [opset1.multiply(data, constant(scale))]
    for node in nodes:
        node.set_friendly_name(shift.get_friendly_name())
        data = node.output(0)
    nodes.append(opset1.add(data, constant(values if scale is None else values * scale)))
    nodes[-1].set_friendly_name(last.get_friendly_name())
    replace_output(last.output(0), nodes[-1].output(0))
    # a reference to it would count among the readers of its data
    shift.input(0).replace_source_output(shift.input_value(1))
    return nodes


def spread_factors(model: Model) -> list[Node]:
    """Constants of an element for each place along an axis of known length, in sums that `keep_sums` marks: before 2026.3 a
    mark that comes from a file is lost where the plugin makes a power of a constant of one element.
    """
    if MARKS_TYPES:
        return []
    key, _ = mark_of_f32()
    nodes = model.get_ordered_ops()
    sums = [node for node in nodes if node.get_type_name() == "ReduceSum" and key in node.get_rt_info()]
    return [node for each in sums for node in _by_one_element(each) if _spread(node)]


def _by_one_element(sums: Node) -> list[Node]:
    """What multiplies sums by a constant of one element, and adds another."""
    found, node = list[Node](), sums
    while len(readers := readers_of(node)) == 1 and readers[0].get_type_name() in ("Add", "Multiply"):
        node = readers[0]
        values = constant_above(node.input_value(1))
        if values is None or values.size != 1:
            break
        found.append(node)
    return found


def _spread(node: Node) -> bool:
    for place, size in enumerate(reversed(shape_of(node.output(0)) or ())):
        if (size or 0) > 1:
            values = np.full((size, *[1] * place), constant_above(node.input_value(1)))
            node.input(1).replace_source_output(constant(values, "f32").output(0))
            return True
    return False


def _less_sums(product: Node) -> list[Node]:
    """What adds sums to a product, and makes them."""
    found, above, node = list[Node](), list[Node](), product
    while len(readers := readers_of(node)) == 1 and readers[0].get_type_name() in ("Add", "Clamp"):
        node = readers[0]
        above.append(node)
        if node.get_type_name() == "Add" and (sums := _sums(node.input_value(1).get_node())):
            found += [*above, *sums]
            above = []
    return found


def _sums(node: Node) -> list[Node]:
    """From a sum of integers down to ``node``, if constants at most have been multiplied and added on the way."""
    found = [node]
    while node.get_type_name() in ("Add", "Clamp", "Multiply", "Reshape"):
        node = node.input_value(0).get_node()
        found.append(node)
    return found if node.get_type_name() == "ReduceSum" and is_relaxed(node) else []


def _mark(node: Node, key: str, mark: Any) -> None:
    if hasattr(node, "set_rt_info"):
        node.set_rt_info(mark, key)
    else:
        node.get_rt_info()[key] = ""


def _is_real(node: Node) -> bool:
    outputs = map(node.get_output_element_type, range(node.get_output_size()))
    inputs = map(node.get_input_element_type, range(node.get_input_size()))
    return any(kind.is_real() for kind in chain(outputs, inputs))
