from __future__ import annotations

import numpy as np

from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.fake_quantize import fake_quantize
from ovlpt.graph.constants import precision_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8, max_value, min_value
from ovlpt.trace import reject_unless

_EPSILON = np.finfo(np.float32).eps


class EliminateFakeQuantizeTransformation(CleanupTransformation):
    """A FakeQuantize from a low precision to itself over the whole range of the type does nothing."""

    operation = OPERATIONS["FakeQuantize"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        precision = precision_of(node.output(0))
        reject_unless(
            precision in INT8 and precision_of(node.input_value(0)) == precision, "changes_type", "it changes the type"
        )
        details = self.details(node)
        reject_unless(details is not None and details.levels > 1, "dynamic_intervals", "its intervals are not constant")
        low, high = min_value(precision, details.levels), max_value(precision, details.levels)
        step = (high - low) / details.levels
        for input_end, output_end, limit in (
            (details.input_low, details.output_low, low),
            (details.input_high, details.output_high, high),
        ):
            exact = np.abs(output_end - np.float32(limit)) < _EPSILON
            reject_unless(exact.all(), "maps_range", "its output interval is not the range of the type")
            near = np.abs(input_end - np.float32(limit)) <= step
            kept = np.rint(fake_quantize(np.float32(limit), *details.intervals, details.levels)) == limit
            reject_unless(
                near.all() and (self.params.native_only or np.all(kept)),
                "maps_range",
                "its input interval is not the range of the type",
            )

    def transform(self, node: Node) -> None:
        replace_output(node.output(0), node.input_value(0))
