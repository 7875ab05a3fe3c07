from __future__ import annotations

import numpy as np

from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class FoldFakeQuantizeTransformation(CleanupTransformation):
    """A FakeQuantize over a constant is a constant."""

    operation = OPERATIONS["FakeQuantize"]

    def has_form(self, node: Node) -> bool:
        return folded_constant(node.input_value(0)) is not None

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        details = self.details(node)
        reject_unless(details is not None, "dynamic_intervals", "its intervals are not constant")
        one_axis = all(sum(size > 1 for size in end.shape) <= 1 for end in details.intervals)
        reject_unless(one_axis, "not_per_channel", "an interval varies along several axes")

    def transform(self, node: Node) -> None:
        values = self._values(node, self.details(node))
        precision = precision_of(node.output(0))
        folded = constant(np.rint(values) if precision.startswith(("u", "i")) else values, precision)
        folded.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), folded.output(0))

    def _values(self, node: Node, details: QuantizationDetails) -> np.ndarray:
        return fake_quantize(folded_constant(node.input_value(0)), *details.intervals, details.levels)
