from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ovlpt.attributes import Grid, Interval, IntervalsAlignment
from ovlpt.graph.constants import is_scalar_like
from ovlpt.graph.dequantization import dequantization_below
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.markup.propagation import (
    CreateAttribute,
    PropagateThroughPrecisionPreserved,
    Propagation,
    Propagations,
)
from ovlpt.openvino_api import Node


class AlignQuantizationIntervals(Propagations):
    """Collects the union of the intervals that meet downstream of precision-preserved operations."""

    def steps(self) -> Iterable[Propagation]:
        settings = self.settings()
        return (
            CreateAttribute({"FakeQuantize"}, self._interval, **settings),
            PropagateThroughPrecisionPreserved(IntervalsAlignment, **settings),
        )

    def _interval(self, node: Node) -> IntervalsAlignment | None:
        details = QuantizationDetails.of(node)
        if details is None or not details.is_supported:
            return None
        low, high = details.output_low, details.output_high
        if not (is_scalar_like(low) and is_scalar_like(high)):
            return None
        low, high = np.float32(low.flat[0]), np.float32(high.flat[0])
        below = dequantization_below(node, convert_is_mandatory=True)
        if below.scale is not None:
            if not is_scalar_like(below.scale):
                return None
            low, high = low * below.scale.flat[0], high * below.scale.flat[0]
        if not (np.isfinite(low) and np.isfinite(high)):
            return None
        asked = details.precision.precision
        low, high, levels = float(low), float(high), details.levels
        grids = () if self.params.native_only else (Grid(low, high, levels),)
        interval = Interval(low, high, low, high, levels, (asked,) if asked else (), grids)
        return IntervalsAlignment(interval, details.levels)
