"""What the native library marks differently, kept with ``native_only``; each class replaces the one of its name."""

from __future__ import annotations

import numpy as np

from ovlpt.attributes import Grid
from ovlpt.graph.bodies import bodies_of
from ovlpt.graph.dequantization import Dequantization, dequantization_below
from ovlpt.layer_transformation import replacing
from ovlpt.markup import align_quantization_intervals, markup_bias, markup_precisions
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations import NodeFacts, along_channels


class AlignQuantizationIntervals(align_quantization_intervals.AlignQuantizationIntervals):
    """It knows no zero points, and looks no further than a Convert to integers."""

    def _zero_point(self, below: Dequantization) -> np.ndarray | None:
        return None

    def _grids(self, low: float, high: float, levels: int) -> tuple[Grid, ...]:
        return ()

    def _below(self, node: Node) -> Dequantization:
        return dequantization_below(node, convert_is_mandatory=True)


class MarkupPrecisions(markup_precisions.MarkupPrecisions):
    """It does not ask the rows, and sees in place of an operation with bodies what these hold."""

    def visit(self, node: Node) -> None:
        if next(bodies_of(node), None) is None:
            super().visit(node)

    def _passes(self, node: Node, facts: NodeFacts) -> bool:
        return along_channels(facts.but(rows_fit=True)) is None


class MarkupBias(markup_bias.MarkupBias):
    """It knows no bias that is stored in 8 bits, and folds that into intervals."""

    def _is_constant(self, value: Output) -> bool:
        return isinstance(value.get_node(), Constant)


NATIVE = replacing(AlignQuantizationIntervals, MarkupBias, MarkupPrecisions)
