from __future__ import annotations

import numpy as np

from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.graph.constants import precision_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import OPERATIONS
from ovlpt.operations.families import REARRANGES
from ovlpt.precisions import INT8, max_value, min_value
from ovlpt.trace import reject_unless

_KEEP_RANGE = REARRANGES | {"MaxPool", "Relu", "ShuffleChannels", "Split"}
_EPSILON = np.finfo(np.float32).eps


class EliminateFakeQuantizeTransformation(CleanupTransformation):
    """A FakeQuantize from a low precision to itself over the whole range of the type does nothing."""

    operation = OPERATIONS["FakeQuantize"]

    def has_form(self, node: Node) -> bool:
        precision = precision_of(node.output(0))
        return precision in INT8 and precision_of(node.input_value(0)) == precision

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        precision = precision_of(node.output(0))
        details = self.details(node)
        reject_unless(details is not None and details.levels > 1, "dynamic_intervals", "its intervals are not constant")
        low, high = self._range(node, precision, details)
        step = (high - low) / details.levels
        for input_end, output_end, limit in (
            (details.input_low, details.output_low, low),
            (details.input_high, details.output_high, high),
        ):
            exact = np.abs(output_end - np.float32(limit)) < _EPSILON
            reject_unless(exact.all(), "maps_range", "its output interval is not the range of the type")
            near = np.abs(input_end - np.float32(limit)) <= step
            reject_unless(
                near.all() and self._keeps(limit, details),
                "maps_range",
                "its input interval is not the range of the type",
            )

    def _range(self, node: Node, precision: str, details: QuantizationDetails) -> tuple[float, float]:
        """The integers of its levels. Raises `Rejected` where the data may exceed them."""
        low, high = min_value(precision, details.levels), max_value(precision, details.levels)
        if details.levels < 256:
            high = low + details.levels - 1
            reject_unless(self._reaches(node.input_value(0)) <= high, "maps_range", "its data may exceed its range")
        return low, high

    def _keeps(self, limit: float, details: QuantizationDetails) -> bool:
        """Whether an end of the range is mapped onto itself."""
        return bool(np.all(np.rint(fake_quantize(np.float32(limit), *details.intervals, details.levels)) == limit))

    def _reaches(self, value: Output) -> float:
        """The largest integer that data may hold, as far as what it was quantized by tells."""
        while (node := value.get_node()).get_type_name() in _KEEP_RANGE:
            value = node.input_value(0)
        details = self.details(node) if node.get_type_name() == "FakeQuantize" else None
        return np.inf if details is None else float(details.output_high.max())

    def transform(self, node: Node) -> None:
        replace_output(node.output(0), node.input_value(0))
