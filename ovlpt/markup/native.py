"""What the native library marks differently, kept with ``native_only``; each class replaces the one of its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ovlpt.attributes import Grid, IntervalsAlignment, QuantizationAlignment
from ovlpt.graph.bodies import bodies_of
from ovlpt.graph.dequantization import Dequantization, dequantization_below
from ovlpt.graph.weights import has_quantized_weights
from ovlpt.layer_transformation import replacing
from ovlpt.markup import (
    align_quantization_intervals,
    align_quantization_parameters,
    markup_avg_pool_precision_preserved,
    markup_bias,
    markup_can_be_quantized,
    markup_precisions,
    propagate_precisions,
)
from ovlpt.markup.propagation import (
    PropagateThroughPrecisionPreserved,
    PropagateToInput,
    Propagation,
    UpdateSharedPrecisionPreserved,
)
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations import NodeFacts, along_channels


class AlignQuantizationIntervals(align_quantization_intervals.AlignQuantizationIntervals):
    """It knows no zero points, looks no further than a Convert to integers, and asks nobody whether those that meet
    need one scale.
    """

    def _meeting(self, **settings) -> Propagation:
        return PropagateThroughPrecisionPreserved(IntervalsAlignment, **settings)

    def _zero_point(self, below: Dequantization) -> np.ndarray | None:
        return None

    def _grids(self, low: float, high: float, levels: int) -> tuple[Grid, ...]:
        return ()

    def _below(self, node: Node) -> Dequantization:
        return dequantization_below(node, convert_is_mandatory=True)


class AlignQuantizationParameters(align_quantization_parameters.AlignQuantizationParameters):
    """All that are connected by precision-preserved operations need what the readers of one of them need."""

    def steps(self) -> Iterable[Propagation]:
        create, update, _ = super().steps()
        joined = PropagateThroughPrecisionPreserved(QuantizationAlignment, **self.settings())
        return create, joined, update


class MarkupCanBeQuantized(markup_can_be_quantized.MarkupCanBeQuantized):
    """It looks at the form of the weights only."""

    def _has_usable_weights(self, node: Node, axes: Sequence[int]) -> bool:
        return has_quantized_weights(node, axes, self.params.default_precisions)


class MarkupPrecisions(markup_precisions.MarkupPrecisions):
    """It does not ask the rows, and sees in place of an operation with bodies what these hold."""

    def visit(self, node: Node) -> None:
        if next(bodies_of(node), None) is None:
            super().visit(node)

    def _passes(self, node: Node, facts: NodeFacts) -> bool:
        return along_channels(facts.but(rows_fit=True)) is None


class MarkupAvgPoolPrecisionPreserved(markup_avg_pool_precision_preserved.MarkupAvgPoolPrecisionPreserved):
    """Any operation with a rule counts as a layer."""

    updates = UpdateSharedPrecisionPreserved


class PropagatePrecisions(propagate_precisions.PropagatePrecisions):
    """No layer yields to another."""

    to_inputs = (PropagateToInput,)


class MarkupBias(markup_bias.MarkupBias):
    """It knows no bias that is stored in 8 bits, and folds that into intervals."""

    def _is_constant(self, value: Output) -> bool:
        return isinstance(value.get_node(), Constant)


NATIVE = replacing(
    AlignQuantizationIntervals,
    AlignQuantizationParameters,
    MarkupAvgPoolPrecisionPreserved,
    MarkupBias,
    MarkupCanBeQuantized,
    MarkupPrecisions,
    PropagatePrecisions,
)
