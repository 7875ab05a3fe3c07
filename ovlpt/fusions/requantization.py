"""Clamp + FakeQuantize: a bound that the quantization makes anyway."""

from __future__ import annotations

import numpy as np

from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.fusions.fusion import Fusion, take_over
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import consumers_of
from ovlpt.openvino_api import Node, opset1
from ovlpt.trace import reject_unless


class RequantizationFusion(Fusion):
    """Clamp(0, 6) becomes Relu where the FakeQuantize after it cuts off at or below 6; other bounds
    likewise.

    An upper bound ``h`` is redundant exactly when ``FQ(h)`` is already the top level in every channel, a
    lower bound when ``FQ(l)`` is the bottom level. The condition is computed in float32 as FakeQuantize
    itself is, so a bound within half a step below the end of the interval is recognized. Clamp(0, h) without
    its upper bound is a Relu; any Clamp without both is nothing. Never the reverse.
    """

    operations = ("opset1.Clamp",)

    def concerns(self, node: Node) -> bool:
        return any(target.get_node().get_type_name() == "FakeQuantize" for target in consumers_of(node.output(0)))

    def can_be_transformed(self, node: Node) -> None:
        low, high = _bounds(node)
        lower, upper = self.redundant(node)
        reject_unless(
            upper,
            "upper_bound",
            f"the quantization distinguishes values that the upper bound {high:g} makes equal",
        )
        reject_unless(
            lower or low == 0,
            "lower_bound",
            f"the quantization distinguishes values that the lower bound {low:g} makes equal",
        )

    def redundant(self, node: Node) -> tuple[bool, bool]:
        """Whether every reader makes the lower and the upper bound itself; raises `Rejected`."""
        low, high = _bounds(node)
        lower = upper = True
        for target in consumers_of(node.output(0)):
            reader = target.get_node()
            quantizes = reader.get_type_name() == "FakeQuantize" and target.get_index() == 0
            reject_unless(
                quantizes,
                "other_reader",
                f"{reader.get_friendly_name()} reads the clamped values unquantized",
            )
            details = QuantizationDetails.of(reader)
            reject_unless(details is not None, "dynamic_intervals", "an interval bound is not a constant")

            def quantized(value: float, details: QuantizationDetails = details) -> np.ndarray:
                return fake_quantize(np.float32(value), *details.intervals, details.levels)

            lower &= bool((quantized(low) == quantized(-np.inf)).all())
            upper &= bool((quantized(high) == quantized(np.inf)).all())
        return lower, upper

    def transform(self, node: Node) -> None:
        low, _ = _bounds(node)
        data = node.input_value(0)
        if low == 0:
            relu = opset1.relu(data)
            relu.set_friendly_name(node.get_friendly_name())
            data = relu.output(0)
        take_over(node.output(0), data)


def _bounds(node: Node) -> tuple[float, float]:
    attributes = node.get_attributes()
    return float(attributes["min"]), float(attributes["max"])
