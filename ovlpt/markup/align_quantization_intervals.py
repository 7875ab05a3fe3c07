from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ovlpt.attributes import Grid, Interval, IntervalsAlignment, QuantizationAlignment
from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization, dequantization_below
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.markup.propagation import (
    CreateAttribute,
    PropagateThroughPrecisionPreserved,
    Propagation,
    Propagations,
)
from ovlpt.openvino_api import Node
from ovlpt.operations.values import is_scalar_like
from ovlpt.precisions import INT8


class AlignQuantizationIntervals(Propagations):
    """Collects the union of the intervals that meet at operations where `AlignQuantizationParameters` asks for one scale."""

    def steps(self) -> Iterable[Propagation]:
        settings = self.settings()
        return (
            CreateAttribute({"FakeQuantize"}, self._interval, **settings),
            self._meeting(**settings),
        )

    def _meeting(self, **settings) -> Propagation:
        return PropagateThroughPrecisionPreserved(IntervalsAlignment, QuantizationAlignment, **settings)

    def _interval(self, node: Node) -> IntervalsAlignment | None:
        details = QuantizationDetails.of(node)
        if details is None or not details.is_supported:
            return None
        low, high = details.output_low, details.output_high
        if not (is_scalar_like(low) and is_scalar_like(high)):
            return None
        low, high = np.float32(low.flat[0]), np.float32(high.flat[0])
        below = self._below(node)
        zero_point = self._zero_point(below)
        if not all(values is None or is_scalar_like(values) for values in (zero_point, below.scale)):
            return None
        if zero_point is not None:
            low, high = low - zero_point.flat[0], high - zero_point.flat[0]
        if below.scale is not None:
            low, high = low * below.scale.flat[0], high * below.scale.flat[0]
        if not (np.isfinite(low) and np.isfinite(high)):
            return None
        asked = details.precision.precision
        low, high, levels = float(low), float(high), details.levels
        grids = self._grids(low, high, levels)
        interval = Interval(low, high, low, high, levels, (asked,) if asked else (), grids)
        return IntervalsAlignment(interval, details.levels)

    def _zero_point(self, below: Dequantization) -> np.ndarray | None:
        return below.zero_point

    def _grids(self, low: float, high: float, levels: int) -> tuple[Grid, ...]:
        return (Grid(low, high, levels),)

    def _below(self, node: Node) -> Dequantization:
        """What gives its integers back as real values, after a Convert to their type."""
        targets = list(node.output(0).get_target_inputs())
        convert = targets[0].get_node() if len(targets) == 1 else None
        is_low = (
            convert is not None and convert.get_type_name() == "Convert" and precision_of(convert.output(0)) in INT8
        )
        if is_low:
            return dequantization_below(convert)
        return dequantization_below(node, convert_is_mandatory=True)
