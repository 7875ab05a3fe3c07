from __future__ import annotations

import numpy as np

from ovlpt.attributes import IntervalsAlignment
from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.graph.constants import constant, precision_of, rounded_to, values_of
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.names import is_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import replace_output, shape_of
from ovlpt.openvino_api import Constant, Node
from ovlpt.trace import reject_unless


class FuseElementwiseToFakeQuantizeTransformation(CleanupTransformation):
    """An elementwise operation with a constant directly after a FakeQuantize moves into its output interval."""

    element = "Multiply"

    @classmethod
    def type_names(cls) -> list[str]:
        return [f"opset1.{cls.element}"]

    def has_form(self, node: Node) -> bool:
        return self._quantize(node).get_type_name() == "FakeQuantize"

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        other = node.input_value(1).get_node()
        reject_unless(isinstance(other, Constant), "not_constant", "input 1 is not a constant")
        quantize = self._quantize(node)
        reject_unless(
            len(quantize.output(0).get_target_inputs()) == 1,
            "several_consumers",
            "the FakeQuantize has other consumers",
        )
        reject_unless(self.details(quantize) is not None, "dynamic_intervals", "its intervals are not constant")
        values, data = values_of(other), shape_of(node.input_value(0))
        keeps_shape = self._keeps_shape(node) and (data is not None or values.size == 1)
        reject_unless(keeps_shape, "broadcast", "the constant broadcasts the data")
        if values.size > 1:
            aligned = (1,) * (len(data) - values.ndim) + values.shape
            reject_unless(
                all(size == 1 for size in aligned[2:]),
                "not_per_channel",
                "the constant varies along an axis other than that of the channels",
            )

    def _keeps_shape(self, node: Node) -> bool:
        return shape_of(node.input_value(0)) == shape_of(node.output(0))

    @staticmethod
    def _quantize(node: Node) -> Node:
        source = node.input_value(0).get_node()
        return source.input_value(0).get_node() if source.get_type_name() == "Convert" else source

    def transform(self, node: Node) -> None:
        quantize = self._quantize(node)
        details = self.details(quantize)
        deq = self.params.deq_precision
        values = rounded_to(values_of(node.input_value(1).get_node()).astype(np.float32, copy=False), deq)
        low, high = (self.moved(rounded_to(end, deq), values) for end in (details.output_low, details.output_high))
        ends = [constant(end, deq).output(0) for end in (details.input_low, details.input_high, low, high)]
        fused = fake_quantize_node(
            quantize.input_value(0), ends, self.levels(quantize, details), precision_of(node.output(0))
        )
        name = node.get_friendly_name()  # a dequantization that comes back leaves no trace in the name
        fused.set_friendly_name(quantize.get_friendly_name() if is_dequantization(name) else name)
        self.attributes.move(quantize, fused)
        replace_output(node.output(0), fused.output(0))
        self.register_new_node(fused)

    def moved(self, end: np.ndarray, values: np.ndarray) -> np.ndarray:
        """An interval end after the operation."""
        return end * values

    def levels(self, quantize: Node, details: QuantizationDetails) -> int:
        """The levels that the FakeQuantize had before it was aligned with its neighbours."""
        alignment = self.attributes.get(quantize, IntervalsAlignment)
        return alignment.levels if alignment is not None and alignment.levels else details.levels


class FuseMultiplyToFakeQuantizeTransformation(FuseElementwiseToFakeQuantizeTransformation):
    """``FQ(x) * c``: the output interval is scaled."""


class FuseSubtractToFakeQuantizeTransformation(FuseElementwiseToFakeQuantizeTransformation):
    """``FQ(x) - c``: the output interval is shifted."""

    element = "Subtract"

    def moved(self, end: np.ndarray, values: np.ndarray) -> np.ndarray:
        return end - values

    def levels(self, quantize: Node, details: QuantizationDetails) -> int:
        return details.levels
