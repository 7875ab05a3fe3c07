"""Constants and intervals that differ between rows or heads, beside a MatMul, which the plugin takes for those of columns."""

from __future__ import annotations

import numpy as np

from ovlpt.device.lowering.links import (
    BEFORE_INTERVAL,
    OF_TWO,
    POST_OPERATIONS,
    affine_links,
    block_fusion,
    first_by_channel,
    is_zero_point,
    links_above,
    merged_target,
    only_reader,
    other_constant,
)
from ovlpt.graph.constants import constant, constant_above, is_constant_above, precision_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.graph.shapes import Shape, may_be_open, shape_of
from ovlpt.graph.weights import folded_constant, varies_along
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations.families import REARRANGES
from ovlpt.operations.values import is_scalar_like

_DROPPED = REARRANGES | {"FakeQuantize", "Convert", "Pad", "ShapeOf"}


def part_by_head(product: Node) -> Node | None:
    """A MatMul of four axes or more takes what is constant along its columns for a value of each column: wrong numbers, or
    it throws; with weights at dynamic sizes, with the plugin's own LPT, too, and with two tensors where it is added. Slopes
    by channel it takes so with weights at any sizes. So that is not fused. An open rank may become one of four.
    """
    shape, last = shape_of(product.output(0)), product
    if shape is not None and (len(shape) < 4 or shape[-1] is None):
        return None
    while (last := first_by_channel(last)) is not None:
        target = merged_target(last)
        reader = target.get_node()
        if reader.get_type_name() == "PRelu":
            slopes = constant_above(reader.input_value(1))
            if slopes is not None and _takes_for_columns(product, slopes):
                return block_fusion(last)
            last = reader
            continue
        others = [value for port, value in enumerate(reader.input_values()) if port != target.get_index()]
        constants = [values for values in map(constant_above, others) if values is not None and values.size > 1]
        by_head = any(_is_by_head(values, shape) for values in constants)
        as_many = shape is not None and any(
            values.size == shape[-1] and not varies_along(values, len(shape), (len(shape) - 1,)) for values in constants
        )
        if by_head or as_many:
            if folded_constant(product.input_value(1)) is not None and not _has_heads(shape_of(product.input_value(1))):
                return block_fusion(last) if may_be_open(product.output(0)) else None
            return block_fusion(last) if by_head and reader.get_type_name() in ("Add", "Subtract") else None
        last = reader
    return None


def widen_before_mask(product: Node) -> Node | None:
    """Constants of one column between the scores of an attention of open lengths and a mask of known columns, with as many.

    Between two other operations such a constant, as a factor by head that `part_open_columns` and `keep_scale_before` keep
    apart, lets the Subgraph of the attention throw in compiling, with the plugin's own LPT and in float, too. Scores of one
    column are as wide with it as after the mask.
    """
    if (shape_of(product.output(0)) or (1,))[-1] is not None or any(map(is_constant_above, product.input_values())):
        return None
    of_one: list[tuple[Node, int]] = []
    last, columns = product, None
    while columns is None:
        if (target := merged_target(last)) is None:
            return None
        last = target.get_node()
        if last.get_type_name() not in POST_OPERATIONS | OF_TWO:
            return None
        columns = (shape_of(last.output(0)) or (None,))[-1]
        if columns is None and last.get_type_name() != "PRelu":
            of_one += [(last, port) for port in range(last.get_input_size()) if _is_column(last.input_value(port))]
    if not of_one or columns == 1 or not _is_weighed(last):
        return None
    for reader, port in of_one:
        values = constant_above(reader.input_value(port))
        wide = np.broadcast_to(values, (*values.shape[:-1], columns))
        reader.input(port).replace_source_output(constant(wide, precision_of(reader.input_value(port))).output(0))
    return product


def _is_weighed(scores: Node) -> bool:
    """Whether a Softmax reads them, after other operations or none."""
    while (target := merged_target(scores)) is not None:
        scores = target.get_node()
        if scores.get_type_name() not in POST_OPERATIONS | OF_TWO:
            return scores.get_type_name() == "Softmax"
    return False


def _is_column(value: Output) -> bool:
    """Whether it is a constant of several values, and one along the last axis."""
    values = constant_above(value)
    return values is not None and values.size > 1 and values.shape[-1] == 1


def _is_by_head(values: np.ndarray, shape: Shape | None) -> bool:
    """Whether values after a MatMul of this shape vary along the channels only; of an open rank, along no columns."""
    return values.shape[-1:] == (1,) if shape is None else varies_along(values, len(shape), (1,))


def _takes_for_columns(product: Node, slopes: np.ndarray) -> bool:
    """Whether slopes after a MatMul of four axes or more are those of the channels, and its second factor is weights."""
    shape = shape_of(product.output(0))
    is_by_channel = slopes.size > 1 and (shape is None or shape[1] in (None, slopes.size))
    return is_by_channel and folded_constant(product.input_value(1)) is not None


def part_from_vector(product: Node) -> Node | None:
    """A factor after a float MatMul with a constant vector would be folded into the vector as a separate row: it throws. So
    would one after a shift, which the plugin moves past it.
    """
    factors = (link for link in affine_links(product) if link.get_type_name() == "Multiply")
    if is_relaxed(product) or not _has_rows_only(product) or next(factors, None) is None:
        return None
    return block_fusion(product)


def quantize_rows_alone(quantize: Node) -> Node | None:
    """A MatMul of dynamic sizes, or of two tensors, also mistakes a per-row interval, or a zero point after it that no
    layer fuses, for a per-column one (`varies_by_rows`); one after an activation, too, or an interval that absorbs what
    varies by rows there.
    """
    source = quantize.input_value(0).get_node()
    if _is_read_otherwise(quantize.input_value(0)):
        return None
    _, product = links_above(source, POST_OPERATIONS)
    if not takes_rows_for_columns(product):
        return None
    ends = map(constant_above, quantize.input_values()[1:])  # one of them may no longer be known to be a constant
    intervals = [values for values in ends if values is not None and not is_scalar_like(values)]
    if not any(map(_has_rows, (*intervals, *_zero_point_after(quantize), *_taken_by_interval(source)))):
        return None
    block_fusion(source)
    return quantize


def _is_read_otherwise(value: Output) -> bool:
    """Whether more than FakeQuantizes read it, which no layer then fuses; what the plugin drops or moves does not count."""
    return any(target.get_node().get_type_name() not in _DROPPED for target in value.get_target_inputs())


def _taken_by_interval(source: Node) -> list[np.ndarray]:
    """The constants that the interval of a FakeQuantize after ``source`` absorbs: those after a layer's activation, and those of
    several operations after a MatMul that takes those of rows for those of columns.
    """
    links, above = links_above(source)
    constants = [values for link in links if (values := other_constant(link)) is not None]
    several = len(links) > 1 and above.get_type_name() == "MatMul" and takes_rows_for_columns(above)
    return constants if several or above.get_type_name() in POST_OPERATIONS else []


def _zero_point_after(quantize: Node) -> list[np.ndarray]:
    """The zero point that is subtracted from the integers, where no layer fuses it."""
    target = merged_target(quantize)
    subtract = None if target is None else target.get_node()
    if subtract is None or subtract.get_type_name() != "Subtract" or is_zero_point(subtract):
        return []
    zero_point = constant_above(subtract.input_value(1))
    return [] if zero_point is None else [zero_point]


def is_quantized_by_rows(node: Node, links: list[Node]) -> bool:
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


def varies_by_rows(node: Node) -> bool:
    """Whether a constant after a MatMul of dynamic sizes, of two tensors, or by a vector, differs between rows or heads, or a
    scale after any, where CPUs without AVX2 have no Subgraphs.

    The plugin mistakes such a constant for a per-column one, and throws or computes wrong numbers. A Floor is put
    before it.
    """
    if node.get_type_name() != "MatMul":
        return False
    links = affine_links(node)
    constants = [constant_above(link.input_value(1)) for link in links]
    if _has_rows_only(node):
        return any(values.size > 1 for values in constants)
    if not takes_rows_for_columns(node):
        constants = [
            values for link, values in zip(links, constants, strict=True) if link.get_type_name() == "Multiply"
        ]
    return any(map(_has_rows, constants))


def _has_rows_only(node: Node) -> bool:
    """Whether a MatMul by a vector leaves no axis of columns."""
    return node.get_type_name() == "MatMul" and len(shape_of(node.input_value(1)) or (0, 0)) == 1


def _has_rows(values: np.ndarray) -> bool:
    """Whether values differ between rows or heads."""
    return max(values.shape[:-1], default=1) > 1


def takes_rows_for_columns(node: Node) -> bool:
    """A MatMul of dynamic sizes, of two tensors, as an attention ends with, or of weights that differ between heads."""
    if node.get_type_name() != "MatMul":
        return node.get_type_name() == "ScaledDotProductAttention"
    if may_be_open(node.output(0)) or not isinstance(node.input_value(1).get_node(), Constant):
        return True
    return _has_heads(shape_of(node.input_value(1))) or any(map(_is_scale_of_weights, affine_links(node)))


def _has_heads(shape: Shape | None) -> bool:
    return max((shape or ())[:-2], default=1) > 1


def _is_scale_of_weights(link: Node) -> bool:
    """Whether a scale after a MatMul differs between heads, and no interval can absorb it: it is negative or zero somewhere, or
    an activation follows. So the weights do, and the MatMul is one of two tensors.
    """
    scale = other_constant(link) if link.get_type_name() == "Multiply" else None
    if scale is None or not _has_heads(scale.shape):
        return False
    after = only_reader((affine_links(link) or [link])[-1])
    return bool((scale <= 0).any()) or after is None or after.get_type_name() != "FakeQuantize"
