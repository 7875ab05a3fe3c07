from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ovlpt.cleanup import native
from ovlpt.cleanup.scale_adjustment import ScaleAdjustment
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import ModelTransformation, joins_interface, replace_output
from ovlpt.openvino_api import Model, Node, Output, opset1
from ovlpt.trace import Outcome, Reason, Rejected

_TOLERANCE = 1e-6
_LARGEST_STEP = 1.0
_MARGIN = 10.0


class FQStrippingTransformation(ModelTransformation):
    """Removes each FakeQuantize with one of the given ``levels`` that maps its interval onto itself.

    For devices without arithmetic of so many levels (65536: 16 bits), where it would only round. Not in `LowPrecision`.
    Between an input or output of the model and another output, whose names would become one, its clipping stays: plugins
    cannot compile the FakeQuantize there.
    With ``need_weights_adjustment``, for inference in f16, values with a step above 1 are made smaller where only
    normalizations read them: without the FakeQuantize nothing clips them any more, and they could overflow.
    """

    def __init__(self, levels: Iterable[int], need_weights_adjustment: bool = False, **settings):
        super().__init__(**settings)
        self.levels = frozenset(levels)
        self.need_weights_adjustment = need_weights_adjustment

    def run_on_model(self, model: Model) -> bool:
        changed = False
        for node in all_nodes(model):
            if node.get_type_name() != "FakeQuantize" or node.get_attributes()["levels"] not in self.levels:
                continue
            if self._leave_alone(node):
                continue
            details = QuantizationDetails.of(node)
            if details is None:
                self._record(
                    Outcome.REJECTED,
                    node,
                    Reason("dynamic_intervals", "a bound of its intervals is not a constant"),
                )
                continue
            moved = max(
                _distance(details.input_low, details.output_low),
                _distance(details.input_high, details.output_high),
            )
            if moved > _TOLERANCE:
                text = f"its output interval lies {moved:g} off its input interval"
                self._record(Outcome.REJECTED, node, Reason("maps_range", text))
                continue
            step = float(np.abs(details.input_high - details.input_low).max()) / (details.levels - 1)
            if self.need_weights_adjustment and step > _LARGEST_STEP:
                self._adjust(node, step * _MARGIN)
            source = node.input_value(0)
            if joins_interface(source, node.output(0)):
                source = _clipped(node)
            replace_output(node.output(0), source)
            self._record(Outcome.TRANSFORMED, node)
            changed = True
        return changed

    def _adjust(self, node: Node, divisor: float) -> None:
        adjustment = (native.ScaleAdjustment if self.params.native_only else ScaleAdjustment)(divisor)
        try:
            adjustment.find(node.output(0))
        except Rejected as refusal:
            self._record(Outcome.REJECTED, node, refusal.reason)  # it is removed all the same
        else:
            adjustment.apply()


def _clipped(node: Node) -> Output:
    """What the interval of a FakeQuantize lets through, under its name."""
    data, low, high, *_ = node.input_values()
    clip = opset1.minimum(opset1.maximum(data, low), high)
    clip.set_friendly_name(node.get_friendly_name())
    return clip.output(0)


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max())
