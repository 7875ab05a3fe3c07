"""Data that is quantized to fewer levels than a type of 8 bits has, as 256 of them with the others cut off."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, precision_of
from ovlpt.graph.copies import is_of_use
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.precisions import ALL_LEVELS
from ovlpt.trace import Reason, reject_unless

_LEVELS = 256
_STEP = 1e-2  # of a step: what is left of a whole number by intervals in float32, and by f16


class FewerLevels(LayerTransformation):
    """``FQ(x)`` of few levels is ``FQ'(clamp(x))`` of 256, of the same step: the Clamp keeps to the levels that it has.

    The interval grows upwards, so the integers stay those that the quantizer meant: seven bits keep a CPU without VNNI
    from saturating. `FuseClampToFakeQuantizeTransformation` takes the Clamp back.
    """

    why = Reason("fewer_levels", "with 256 levels of the same step, of which a Clamp leaves its own, it gives the same")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.FakeQuantize"]

    def concerns(self, node: Node) -> bool:
        return has_few_levels(node) and not is_constant_path(node) and is_of_use(node)

    def can_be_transformed(self, node: Node) -> None:
        details = QuantizationDetails.of(node)
        reject_unless(details is not None, "dynamic_intervals", "a bound of its intervals is not a constant")
        by_tensor = details.input_low.size == details.input_high.size == 1
        reject_unless(by_tensor, "per_channel", "a Clamp has the same bounds for all channels")
        rises = (details.input_low < details.input_high).all() and (details.output_low < details.output_high).all()
        reject_unless(rises, "falling", "an interval is empty or reversed")
        low, high = details.output_low.astype(np.float64), details.output_high.astype(np.float64)
        zero = -low / (high - low) * (details.levels - 1)
        reject_unless((np.abs(zero - np.rint(zero)) < _STEP).all(), "zero_point", "zero is not one of the values")

    def transform(self, node: Node) -> None:
        details, precision = QuantizationDetails.of(node), precision_of(node.output(0))
        ends = [*_grown(*details.intervals[:2], details.levels), *_grown(*details.intervals[2:], details.levels)]
        name = node.get_friendly_name()
        clamp = opset1.clamp(node.input_value(0), details.input_low.item(), details.input_high.item())
        clamp.set_friendly_name(f"{name}/Clamp")
        values = [constant(end, precision).output(0) for end in ends]
        quantize = fake_quantize_node(clamp.output(0), values, _LEVELS, precision)
        quantize.set_friendly_name(name)
        replace_output(node.output(0), quantize.output(0))


def has_few_levels(node: Node) -> bool:
    """Whether it quantizes to fewer levels than a type of 8 bits has, of which low precision knows only 15 and 16."""
    if node.get_type_name() != "FakeQuantize":
        return False
    levels = node.get_attributes()["levels"]
    return 2 < levels < 255 and levels not in ALL_LEVELS


def _grown(low: np.ndarray, high: np.ndarray, had: int) -> tuple[np.ndarray, np.ndarray]:
    """An interval with more levels of the same step."""
    first = low.astype(np.float64)
    return low, (first + (high - first) / (had - 1) * (_LEVELS - 1)).astype(np.float32)
