"""The numbers of a FakeQuantize."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ovlpt.graph.constants import values_of
from ovlpt.openvino_api import Constant, Node
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
        ends = []
        for port in range(1, 5):
            source = end = fake_quantize.input_value(port).get_node()
            if end.get_type_name() == "Reshape":  # the lowering hides one end behind a Reshape to its own shape
                source = end.input_value(0).get_node()
            if not isinstance(source, Constant):
                return None
            if source is not end and source.get_output_partial_shape(0) != end.get_output_partial_shape(0):
                return None
            ends.append(values_of(source).astype(np.float32, copy=False))
        return cls(int(fake_quantize.get_attributes()["levels"]), *ends)

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.input_low, self.input_high, self.output_low, self.output_high

    @property
    def is_supported(self) -> bool:
        return self.levels in ALL_LEVELS

    @functools.cached_property
    def precision(self) -> PrecisionDetails:
        """What the output intervals ask for."""
        return precision_details(self.levels, self.output_low, self.output_high)
