"""The numbers of a FakeQuantize."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ovlpt.graph.constants import once, values_of
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.precisions import ALL_LEVELS, PrecisionDetails, precision_details


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
        ends: list[Constant] = []
        for port in range(1, 5):
            if (end := interval_end(fake_quantize.input_value(port))) is None:
                return None
            ends.append(end)

        def read() -> QuantizationDetails:
            values = (values_of(end).astype(np.float32, copy=False) for end in ends)
            return cls(int(fake_quantize.get_attributes()["levels"]), *values)

        return once((cls, *(node.get_instance_id() for node in (fake_quantize, *ends))), read)

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.input_low, self.input_high, self.output_low, self.output_high

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
