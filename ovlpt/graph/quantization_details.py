"""The numbers of a FakeQuantize."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ovlpt.graph.constants import made_before, numbers_of, once
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.precisions import ALL_LEVELS, PrecisionDetails, precision_details

_FAR = float(np.finfo(np.float32).max) * (1 - 2**-20)
_NARROW = 1e-3  # of wider intervals what `precision_details` counts as zero is less than a step


@dataclass(frozen=True)
class QuantizationDetails:
    """Levels and intervals; each interval end is a float32 array that broadcasts against the data.

    Source: the native class of the same name.
    """

    levels: int
    input_low: np.ndarray
    input_high: np.ndarray
    output_low: np.ndarray
    output_high: np.ndarray

    @classmethod
    def of(cls, fake_quantize: Node) -> QuantizationDetails | None:
        """The numbers of the node; None when an interval end is not a Constant."""
        values = fake_quantize.input_values()[1:]
        number = fake_quantize.get_instance_id()
        # the rule: Constants, read before; every pass asks for the numbers of every FakeQuantize
        found = made_before((cls, number, *[value.get_node().get_instance_id() for value in values]))
        if found is not None:
            return found
        ends: list[Constant] = []
        for value in values:
            if (end := interval_end(value)) is None:
                return None
            ends.append(end)

        def read() -> QuantizationDetails:
            return cls(int(fake_quantize.get_attributes()["levels"]), *map(numbers_of, ends))

        return once((cls, number, *[end.get_instance_id() for end in ends]), read)

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.input_low, self.input_high, self.output_low, self.output_high

    @functools.cached_property
    def is_by_tensor(self) -> bool:
        """Whether each end is one value."""
        return all(end.size == 1 for end in self.intervals)

    def has_interval_of(self, other: QuantizationDetails) -> bool:
        """Whether both are of one interval, and of the same; what differs by channel is laid out as each has it."""
        if self.levels != other.levels or not (self.is_by_tensor and other.is_by_tensor):
            return False
        return all(a.item() == b.item() for a, b in zip(self.intervals, other.intervals, strict=True))

    @property
    def ends(self) -> str:
        """The output interval as text, of several the widest ends."""
        return f"[{self.output_low.min():g}, {self.output_high.max():g}]"

    @property
    def is_supported(self) -> bool:
        return self.levels in ALL_LEVELS

    @functools.cached_property
    def precision(self) -> PrecisionDetails:
        """What the output intervals ask for."""
        return precision_details(self.levels, self.output_low, self.output_high)

    @functools.cached_property
    def precision_of_narrow(self) -> PrecisionDetails:
        """The same, where a narrow interval, beside which all counts as zero, is read as a wide one of the same ratio."""
        largest = max(float(np.abs(end).max()) for end in (self.output_low, self.output_high))
        if not 0 < largest < _NARROW:
            return self.precision
        return precision_details(self.levels, self.output_low / largest, self.output_high / largest)


def interval_end(value: Output) -> Constant | None:
    """The Constant that an interval ends at.

    The lowering hides one: by the LogSoftmax of a single value, which is zero, or after a Reshape to its own shape.
    """
    node = value.get_node()
    if isinstance(node, Constant):
        return node
    if node.get_type_name() == "Reshape" and node.input_value(0).get_partial_shape() == value.get_partial_shape():
        node = node.input_value(0).get_node()
    if node.get_type_name() == "Add" and _is_zero(node.input_value(1)):
        node = node.input_value(0).get_node()
    return node if isinstance(node, Constant) else None


def _is_zero(value: Output) -> bool:
    node = value.get_node()
    while node.get_type_name() in ("Convert", "Split", "Squeeze"):
        node = node.input_value(0).get_node()
    return node.get_type_name() == "LogSoftmax" and node.get_output_partial_shape(0)[-1] == 1


def finite(end: np.ndarray) -> np.ndarray:
    """In f64, an infinite one as nearly the largest number of f32: the end of a mask that a scale for 65535 steps, rounded up,
    puts beyond it.
    """
    return np.nan_to_num(end.astype(np.float64), nan=np.nan, posinf=_FAR, neginf=-_FAR)
