from __future__ import annotations

import numpy as np

from ovlpt.attributes import Bias
from ovlpt.graph.constants import constant, constant_above, precision_of, rounded_to
from ovlpt.graph.copies import copied_data
from ovlpt.graph.dequantization import Dequantization, write_dequantization
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import relaxed
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import insert_after, replace_output
from ovlpt.main.elementwise import ElementwiseTransformation, values_or
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import is_low
from ovlpt.trace import reject_unless

# f32 rounds a sum of zero points by 2^-25 of it: what that may be at most, as levels of an input, is 1/16 of one where its
# data is integers, and 64 where it is a layer's sums, which are up to 2^24; of real numbers without a scale a thousandth.
_SHIFT_OF_LEVELS, _SHIFT_OF_SUMS, _SHIFT_OF_REALS = 2.0**21, 2.0**31, 2.0**15


class AddTransformation(ElementwiseTransformation):
    """``s1 * (x1 - z1) + s2 * (x2 - z2) == s2 * (s1' * (x1 - z1') + x2)``

    with ``s1' = s1 / s2`` and ``z1' = z1 + s2 * z2 / s1``. Branch 1 is the full branch, branch 2 the empty one.
    Adding a constant ``b`` moves it into the zero point: ``s * (x - z) + b == s * (x - (z - b / s))``.
    """

    operation = OPERATIONS["Add"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        branches = self.branches(node)
        reject_unless(
            not any(branch.has_zero_or_denormal_scale for branch in branches),
            "zero_scale",
            "a scale is zero or denormal",
        )

    def transform(self, node: Node) -> None:
        full = self.full_branch(node)
        self.separate(node)
        if full is None:
            self._check_constant(node)
            self._move_constant(node)
        else:
            self._check_branches(node, full)
            self._add_branches(node, full)

    def _check_constant(self, node: Node) -> None:
        port = self._constant_port(node)
        reject_unless(port is not None, "not_constant", "the constant input cannot be folded")
        other = self.branches(node)[1 - port]
        reject_unless(other.multiply is not None, "no_scale", "the data has no scale to divide the constant by")
        self._check_moved(node)

    def _check_moved(self, node: Node) -> None:
        """Masks hide with the least number: divided it would be an infinite one, and a row that is hidden whole none."""
        added, moved, *_ = self._moved(node)
        reject_unless(
            (np.isfinite(moved) | ~np.isfinite(added)).all(), "overflow", "the constant overflows, divided by the scale"
        )

    def _check_branches(self, node: Node, full: int) -> None:
        empty = self.branches(node)[1 - full]
        if self.params.update_precisions and not empty.empty:
            reject_unless(empty.is_low_precision, *self.not_low(1 - full, empty.data_precision))
        reject_unless(
            all(np.isfinite(values).all() for values in self._combined(node, full)),
            "overflow",
            "the divided scales overflow",
        )
        self._check_reached(node, full)
        self._check_sum(node, full)

    def _check_reached(self, node: Node, full: int) -> None:
        """As `_check_moved`, of masks that are chosen or quantized."""
        scale, _ = self._combined(node, full)
        reached = _reached_by(self.branches(node)[full].data)
        largest = float(np.finfo(np.float32).max)
        reject_unless(
            reached * float(np.abs(scale).max()) <= largest, "overflow", "a mask overflows, divided by the scale"
        )

    def _check_sum(self, node: Node, full: int) -> None:
        """Masks hide with numbers beside which nothing of the other input is left in f32, shown or hidden."""
        branches = self.branches(node)[full], self.branches(node)[1 - full]
        (zero_point, scale), (zero_point_empty, scale_empty) = (
            tuple(values.astype(np.float64) for values in values_or(branch)) for branch in branches
        )
        shift = np.abs(zero_point * scale + zero_point_empty * scale_empty).max() if zero_point_empty.any() else 0
        # the largest scales, as channels that hold nothing have tiny ones
        largest = [float(np.abs(values).max()) for values in (scale, scale_empty)]
        enough = all(shift <= step * _largest_shift(branch) for branch, step in zip(branches, largest, strict=True))
        reject_unless(
            enough and (np.abs(scale / scale_empty) >= np.finfo(np.float32).tiny).all(),
            "rounded_away",
            f"with scales of {largest[0]:g} and {largest[1]:g}, f32 would round one input away beside the other",
        )

    @staticmethod
    def _constant_port(node: Node) -> int | None:
        for port in (1, 0):
            if folded_constant(node.input_value(port)) is not None:
                return port
        return None

    def _combined(self, node: Node, full: int) -> tuple[np.ndarray, np.ndarray]:
        """``s1'`` and ``z1'``."""
        branches = self.branches(node)
        zero_point_full, scale_full = values_or(branches[full])
        zero_point_empty, scale_empty = values_or(branches[1 - full])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scale = scale_full / scale_empty
            zero_point = zero_point_full + zero_point_empty * scale_empty / scale_full
        return scale, zero_point

    def _add_branches(self, node: Node, full: int) -> None:
        branches = self.branches(node)
        scale, zero_point = self._combined(node, full)
        _, scale_empty = values_or(branches[1 - full])
        deq, name = self.params.deq_precision, node.get_friendly_name()
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        source = branches[full]
        dequantized, _ = write_dequantization(
            source.data,
            made_for(name, Made.FULL_BRANCH),
            scale,
            zero_point if zero_point.any() else None,
            deq,
            zero_point_precision=None,
        )
        inputs = [dequantized, branches[1 - full].data]
        if full == 1:
            inputs.reverse()
        add = relaxed("Add", inputs, "f32", {"auto_broadcast": "numpy"}, origin="f32")
        add.set_friendly_name(name)
        self.attributes.move(node, add)
        replace_output(node.output(0), add.output(0))
        output, nodes = write_dequantization(add.output(0), name, scale_empty, precision=deq, output_precision=original)
        insert_after(add.output(0), output, targets, nodes)

    def _moved(self, node: Node) -> tuple[np.ndarray, np.ndarray, str, str]:
        """The constant as it is added and in parts of the scale, and both types of `_added`."""
        port = self._constant_port(node)
        added, found = folded_constant(node.input_value(port)), self.branches(node)[1 - port]
        _, scale = values_or(found)
        added, deq, stored = self._added(added, found)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            moved = np.where(added == 0, np.float32(0), added / scale).astype(np.float32)
            return added, rounded_to(moved, stored), deq, stored

    def _move_constant(self, node: Node) -> None:
        found = self.branches(node)[1 - self._constant_port(node)]
        _, scale = values_or(found)
        _, moved, deq, stored = self._moved(node)
        name = node.get_friendly_name()
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        if self.attributes.get(node, Bias) and found.zero_point is None:
            add = relaxed(
                "Add", [found.data, constant(moved, stored).output(0)], deq, {"auto_broadcast": "numpy"}, origin=deq
            )
            add.set_friendly_name(name)
            self.attributes.move(node, add)
            data, shift = add.output(0), None
            replace_output(node.output(0), data)
        else:
            data, shift = self._shifted(found, moved)
        output, nodes = write_dequantization(
            data,
            name,
            scale,
            shift,
            deq,
            original,
            scale_precision=stored,
            shift_precision=stored,
            converts=self.converts(found),
        )
        insert_after(data if shift is None else node.output(0), output, targets, nodes)

    def _added(self, constant: np.ndarray, found: Dequantization) -> tuple[np.ndarray, str, str]:
        """The constant, the type in which it is added, and that in which it is stored."""
        return constant, self.params.deq_precision, self.params.deq_precision

    def _shifted(self, found: Dequantization, moved: np.ndarray) -> tuple[Output, np.ndarray]:
        """The data with its zero point, from which ``moved`` is taken."""
        zero_point, _ = values_or(found)
        return found.data, zero_point - moved


def _largest_shift(branch: Dequantization) -> float:
    if is_low(branch.data_precision):
        return _SHIFT_OF_LEVELS
    return _SHIFT_OF_REALS if branch.empty else _SHIFT_OF_SUMS


def _reached_by(value: Output) -> float:
    """The largest finite number that the data holds, as far as what it is copied from or quantized by tells."""
    largest, pending, seen = 0.0, [value], set()
    while pending:
        value = pending.pop()
        node = value.get_node()
        if node.get_instance_id() in seen:
            continue
        seen.add(node.get_instance_id())
        details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
        if details is not None:
            numbers = np.concatenate([np.ravel(end) for end in (details.output_low, details.output_high)])
        elif (numbers := constant_above(value)) is None:
            pending += copied_data(node)
            continue
        largest = max(largest, float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0)))
    return largest
