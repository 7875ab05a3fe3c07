from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant_above
from ovlpt.graph.consumers import is_output
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, Output, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.operations.families import AFFINE
from ovlpt.trace import Reason, reject_unless

_NEAR = 1e-6  # of the interval: what float32 leaves of zero


class ReluBeforeFakeQuantize(LayerTransformation):
    """``relu(FQ(x)) == FQ(relu(x))`` where zero is one of FQ's values.

    Before it the Relu is fused into the layer that computes x; after it, on data with a zero point, it is a layer of
    its own.
    """

    quiet = True  # of one that stays, its rule says more
    why = Reason("relu_first", "placed before the quantization, it is fused into the layer, with the same numbers")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Relu"]

    def concerns(self, node: Node) -> bool:
        quantize = node.input_value(0).get_node()
        alone = quantize.get_type_name() == "FakeQuantize" and len(quantize.output(0).get_target_inputs()) == 1
        return alone and _ends_layer(quantize.input_value(0))

    def can_be_transformed(self, node: Node) -> None:
        details = QuantizationDetails.of(node.input_value(0).get_node())
        reject_unless(details is not None, "dynamic_intervals", "a bound of the intervals is not a constant")
        rises = (details.input_low < details.input_high).all() and (details.output_low < details.output_high).all()
        reject_unless(rises, "falling", "an interval is empty or reversed")
        reject_unless((details.output_low < 0).any(), "not_negative", "nothing negative reaches it")
        steps = details.levels - 1
        with np.errstate(over="ignore"):
            of_zero = -details.input_low / (details.input_high - details.input_low) * steps
            is_zero = -details.output_low / (details.output_high - details.output_low) * steps
        apart = np.abs(is_zero - np.rint(of_zero))
        reject_unless((apart <= _NEAR * steps).all(), "zero_point", "zero is not one of the values")

    def transform(self, node: Node) -> None:
        quantize = node.input_value(0).get_node()
        relu = opset1.relu(quantize.input_value(0))
        relu.set_friendly_name(node.get_friendly_name())
        if is_output(node.output(0)):
            names = node.get_friendly_name(), quantize.get_friendly_name()
            quantize.set_friendly_name(names[0])
            relu.set_friendly_name(names[1])
        quantize.input(0).replace_source_output(relu.output(0))
        replace_output(node.output(0), quantize.output(0))


def _ends_layer(value: Output) -> bool:
    """Whether a layer with weights gives the value, or a scale or shift of its result."""
    node = value.get_node()
    while node.get_type_name() in AFFINE and constant_above(node.input_value(1)) is not None:
        node = node.input_value(0).get_node()
    row = OPERATIONS.get(node.get_type_name())
    return row is not None and row.kind == "weighted" and len(value.get_target_inputs()) == 1
