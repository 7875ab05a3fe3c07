from __future__ import annotations

import numpy as np

from ovlpt.attributes import IntervalsAlignment
from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8
from ovlpt.trace import reject_unless

_STEP = 1e-3  # of a step: what float32 intervals leave of a whole number


class FuseClampToFakeQuantizeTransformation(CleanupTransformation):
    """``FQ(clamp(x))`` to integers is a FakeQuantize of fewer levels where the Clamp ends at two of its levels.

    So a FakeQuantize of few levels, which was given 256 and a Clamp to be decomposed, gets its own back: the kernels take
    any number of levels, and the Clamp would be a layer where no layer with weights is before it.
    """

    operation = OPERATIONS["FakeQuantize"]

    def has_form(self, node: Node) -> bool:
        return precision_of(node.output(0)) in INT8 and node.input_value(0).get_node().get_type_name() == "Clamp"

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        clamp, details = node.input_value(0).get_node(), self.details(node)
        reject_unless(details is not None, "dynamic_intervals", "its intervals are not constant")
        alone = len(clamp.output(0).get_target_inputs()) == 1
        reject_unless(alone, "several_consumers", "something else reads the Clamp")
        reject_unless(details.is_by_tensor, "per_channel", "its intervals differ by channel")
        rises = (details.input_low < details.input_high).all()
        reject_unless(rises, "falling", "an interval is empty or reversed")
        first, last = self._levels(node)
        whole = max(abs(first - round(first)), abs(last - round(last))) < _STEP
        inside = round(first) >= 0 and round(last) < details.levels and round(last) - round(first) > 1
        reject_unless(whole and inside, "levels", "the Clamp ends between two levels, or beyond them")

    def _levels(self, node: Node) -> tuple[float, float]:
        """Which levels the Clamp ends at, counted from 0."""
        bounds, details = node.input_value(0).get_node().get_attributes(), self.details(node)
        low, high = details.input_low.astype(np.float64).item(), details.input_high.astype(np.float64).item()
        first, last = ((bounds[end] - low) / (high - low) * (details.levels - 1) for end in ("min", "max"))
        return first, last

    def transform(self, node: Node) -> None:
        clamp, details = node.input_value(0).get_node(), self.details(node)
        first, last = map(round, self._levels(node))
        bounds = clamp.get_attributes()
        low, high = details.output_low.astype(np.float64), details.output_high.astype(np.float64)
        outputs = [low + at * (high - low) / (details.levels - 1) for at in (first, last)]
        ends = [constant(np.float32(end), "f32").output(0) for end in (bounds["min"], bounds["max"], *outputs)]
        fused = fake_quantize_node(clamp.input_value(0), ends, last - first + 1, precision_of(node.output(0)))
        fused.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, fused)
        self.attributes.remove(fused, IntervalsAlignment)  # which tells how many levels it had before
        replace_output(node.output(0), fused.output(0))
        self.register_new_node(fused)
