from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovlpt.attributes import Grid, Interval, IntervalsAlignment, Precisions, QuantizationAlignment, output_key
from ovlpt.graph.constants import constant, is_constant_path, precision_of
from ovlpt.graph.consumers import consumers_of, readers_of, targets_of
from ovlpt.graph.decomposition import LARGEST_SCALE, Decomposition, decompose
from ovlpt.graph.dequantization import dequantization_below, write_dequantization
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import LayerTransformation, insert_after, replace_output
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8, DataPrecision, aligned_levels, fits, is_low
from ovlpt.trace import reject, reject_unless


class FakeQuantizeDecompositionTransformation(LayerTransformation):
    """``FQ(x) == (Q(x) - z) * s``: Q has the same input intervals and the range of a low precision as output.

    A quantization in Q/DQ form first folds the Convert to the low precision after it; where its consumers take another
    precision, the dequantization after it is composed into it, so that it can be decomposed anew.

    With ``[lo, hi]`` the output interval and ``[min, max]`` the integers of the precision:
    ``s = (hi - lo) / (max - min)``, ``z = (min * hi - max * lo) / (hi - lo)``.
    """

    operation = OPERATIONS["FakeQuantize"]
    shapes_follow: ClassVar[bool] = False  # as `write_decomposition` has it
    one_each: ClassVar[bool] = True  # an integer for each level and no more
    narrow_has_no_zero_point: ClassVar[bool] = False  # of an interval both of whose ends count as zero
    clips_scales: ClassVar[bool] = False  # to those that `decompose` gives

    def can_be_transformed(self, node: Node) -> None:
        allowed, stored = self.attributes.get(output_key(node), Precisions), precision_of(node.output(0))
        is_settled = is_low(stored) and allowed is not None and allowed.value == (stored,)
        reject_unless(not is_settled, "decomposed", "it is in low precision already")
        details = self.details(node)
        if details is not None and details.is_supported and _low_convert(node) is not None:
            return
        reject_unless(details is not None, "dynamic_intervals", "a bound of its intervals is not a constant")
        reject_unless(details.is_supported, "levels", f"it has {details.levels} levels; a low precision has 255 or 256")
        reject_unless(
            not is_constant_path(node) or self._is_branch(node),
            "weights",
            "its data is constant; the consumer decomposes it",
        )
        reject_unless(allowed is not None, "no_markup", "nothing marks which precisions its consumers take")
        reject_unless(allowed.value, "consumer_forbids", "no integer type suits all of its consumers")
        if is_low(stored):
            below = dequantization_below(node)
            reject_unless(not below.empty, "decomposed", "it is in low precision already")
            expected = _expected(details, allowed.value)
            reject_unless(expected != stored, "decomposed", f"it is in {stored} already, as its consumers take it")
            reject_unless(
                below.multiply is not None,
                "no_scale",
                f"it gives {stored} and no scale follows that it could be composed with",
            )
            return
        reject_unless(
            self._fitting(details, allowed.value),
            "levels",
            f"its {details.levels} levels do not fit {' or '.join(allowed.value)}",
        )
        width = np.abs(details.output_high.astype(np.float64) - details.output_low).max()
        if not self.clips_scales and not width <= LARGEST_SCALE * (details.levels - 1):
            reject("overflow", f"its output interval {details.ends} is too wide for a scale")
        alignment = self._alignment(node)
        if alignment is not None:
            reject_unless(
                alignment.value.min_levels > 2,
                "alignment",
                f"aligned with its neighbours it would keep only {alignment.value.min_levels} levels"
                if alignment.value.min_levels
                else "the tensors that meet after it have different numbers of levels and cannot share one scale",
            )

    def transform(self, node: Node) -> None:
        if (convert := _low_convert(node)) is not None:
            return self._fuse_convert(node, convert)
        if is_low(precision_of(node.output(0))):
            return self._compose(node)
        details = self.details(node)
        allowed = self.attributes.get(output_key(node), Precisions)
        alignment = self._alignment(node)
        precision = self._data_precision(details, allowed.value, alignment)
        allowed.value = (precision.precision,)  # everything that shares the tensor now takes this type
        if alignment is None:
            levels, parts = details.levels, decompose(details, precision, self.params.update_precisions)
        else:
            levels, parts = _aligned(details, precision, alignment.value)
        reject_unless(
            self.params.update_precisions or (parts.scale != 1).any() or parts.zero_point is not None,
            "decomposed",
            "its output interval is that of the precision already, and precisions are not updated",
        )
        deq_precision = "f32" if alignment is None else self.params.deq_precision  # as the native library
        stored = precision.precision if self.params.update_precisions else precision_of(node.output(0))
        quantize = write_decomposition(node, stored, levels, parts, deq_precision, self.shapes_follow)
        self.attributes.move(node, quantize)
        self.register_new_node(quantize)  # visited next: elementwise operations above it may be fused into it

    def _fuse_convert(self, node: Node, convert: Node) -> None:
        """``Convert(FQ(x))`` is a FakeQuantize that gives the low precision."""
        quantize = fake_quantize_node(
            node.input_value(0),
            list(node.input_values())[1:],
            node.get_attributes()["levels"],
            precision_of(convert.output(0)),
        )
        quantize.set_friendly_name(convert.get_friendly_name())
        self.attributes.move(node, quantize)
        replace_output(convert.output(0), quantize.output(0))
        below = dequantization_below(quantize)
        if below.multiply is not None and self._meets_others(quantize, below.output):
            return self._compose(quantize)  # to be decomposed with the scale of them all
        allowed = self.attributes.get(output_key(quantize), Precisions)
        if allowed is not None and allowed.value and not below.empty and not is_constant_path(quantize):
            allowed.value = (_expected(self.details(quantize), allowed.value),)
        self.register_new_node(quantize)

    def _compose(self, node: Node) -> None:
        """``(FQ(x) - z) * s`` is a FakeQuantize whose output interval is shifted and scaled."""
        details, below = self.details(node), dequantization_below(node)
        zero_point = 0 if below.zero_point is None else below.zero_point
        low, high = ((end - zero_point) * below.scale for end in (details.output_low, details.output_high))
        precision = precision_of(below.output)
        ends = [constant(low, precision).output(0), constant(high, precision).output(0)]
        ends = [node.input_value(1), node.input_value(2), *ends]
        quantize = fake_quantize_node(node.input_value(0), ends, details.levels, precision)
        quantize.set_friendly_name(below.multiply.get_friendly_name())
        self.attributes.move(node, quantize)
        replace_output(below.output, quantize.output(0))
        self.register_new_node(quantize)

    def _is_branch(self, node: Node) -> bool:
        """Whether only Concats read the constant, which join it with what is none."""
        readers = readers_of(node)
        return all(each.get_type_name() == "Concat" and not is_constant_path(each) for each in readers)

    def _meets_others(self, node: Node, dequantized: Output) -> bool:
        """Whether the dequantized value is to share its scale with values of other intervals."""
        alignment = self._alignment(node, dequantized)
        return alignment is not None and len(alignment.value.grids) > 1

    def _alignment(self, node: Node, value: Output | None = None) -> IntervalsAlignment | None:
        for target in (value or node.output(0)).get_target_inputs():
            aligned = self.attributes.get(target.get_node(), QuantizationAlignment)
            if aligned is not None and aligned.value:
                return self.attributes.get(node, IntervalsAlignment)
        return None

    def _fitting(self, details: QuantizationDetails, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """The types that hold the levels."""
        is_narrow = details.levels in (15, 16)
        return tuple([item for item in allowed if fits(item, details.levels) or (is_narrow and item in INT8)])

    def _data_precision(
        self, details: QuantizationDetails, allowed: tuple[str, ...], alignment: IntervalsAlignment | None
    ) -> DataPrecision:
        allowed = self._fitting(details, allowed)
        asked = details.precision if self.narrow_has_no_zero_point else details.precision_of_narrow
        levels = 256 if alignment is not None and alignment.value.is_mixed else details.levels
        create = DataPrecision.one_each if self.one_each and alignment is None else DataPrecision.of
        if asked.precision in allowed:
            return create(asked.precision, levels, asked.has_zero_point)
        chosen = allowed[0]
        if len(allowed) > 1 and alignment is not None:
            chosen = next((item for item in alignment.value.preferable if item in allowed), chosen)
        return create(chosen, levels, has_zero_point=True)


def _aligned(details: QuantizationDetails, precision: DataPrecision, combined: Interval) -> tuple[int, Decomposition]:
    """Levels and parts of one of several that share a scale."""
    shape, ends = details.output_low.shape, (float(details.output_low.flat[0]), float(details.output_high.flat[0]))
    exact = _on_common_grid(Grid(*ends, details.levels), precision, combined)
    if exact is not None:
        levels, (low, high, scale, zero_point) = details.levels, exact
    else:
        limits = precision.min, precision.max, combined.combined_low, combined.combined_high
        part = aligned_levels(*limits, *ends)
        low, high = np.rint(part.output_low), np.rint(part.output_high)
        levels, scale, zero_point = part.levels, part.scale, part.zero_point
        reject_unless(levels > 2, "alignment", f"aligned with its neighbours it would keep only {levels} levels")
    zero_points = np.full(shape, zero_point, np.float32) if zero_point else None
    return levels, Decomposition(
        np.asarray(low, np.float32), np.asarray(high, np.float32), np.full(shape, scale, np.float32), zero_points
    )


def _on_common_grid(
    own: Grid, precision: DataPrecision, combined: Interval
) -> tuple[float, float, float, float] | None:
    """The integers of both ends, scale and zero point that keep all values as they are; None where nothing does.

    Members of different levels may differ in their zero points, those of equal levels share one as in the native
    library.
    """
    if combined.common_grid is None:
        return None
    step, origin = combined.common_grid
    low, high = own.ends(step, origin)
    first, last = Grid(combined.combined_low, combined.combined_high, own.levels).ends(step, origin)
    if last - first > precision.max - precision.min:
        if not combined.is_mixed:
            return None
        first, last = low, high
    fits = origin == 0 and precision.min <= first and last <= precision.max
    shift = 0 if fits else precision.min - first
    return low + shift, high + shift, step, shift - origin / step


def write_decomposition(
    node: Node, precision: str, levels: int, parts: Decomposition, deq_precision: str, shapes_follow: bool = False
) -> Node:
    """Let ``node``, a FakeQuantize, give integers in the type ``precision``; the dequantization follows it.

    ``shapes_follow``: operations on shapes read the dequantized value, as in the native library.
    Returns its new form.
    """
    output, name = node.output(0), node.get_friendly_name()
    targets = targets_of(output) if shapes_follow else consumers_of(output)
    stored, original = precision_of(node.input_value(3)), precision_of(output)
    ends = [*node.input_values()[1:3], *(constant(end, stored).output(0) for end in (parts.low, parts.high))]
    quantize = fake_quantize_node(node.input_value(0), ends, levels, precision)
    quantize.set_friendly_name(name)
    replace_output(output, quantize.output(0))
    dequantized, nodes = write_dequantization(
        quantize.output(0), name, parts.scale, parts.zero_point, deq_precision, original
    )
    insert_after(quantize.output(0), dequantized, targets, nodes)
    return quantize


def _low_convert(quantize: Node) -> Node | None:
    """The only consumer, where it is a Convert to a low precision."""
    targets = quantize.output(0).get_target_inputs()
    if len(targets) != 1:
        return None
    (target,) = targets
    convert = target.get_node()
    if convert.get_type_name() != "Convert" or precision_of(convert.output(0)) not in INT8:
        return None
    return None if is_low(precision_of(quantize.output(0))) else convert


def _expected(details: QuantizationDetails, allowed: tuple[str, ...]) -> str:
    """The precision that consumers and intervals ask for."""
    asked = details.precision.precision
    return asked if asked in allowed else allowed[0]
