from __future__ import annotations

from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.graph.constants import constant, constant_above, precision_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node
from ovlpt.precisions import INT4
from ovlpt.trace import Reason


class StoredWeights(LayerTransformation):
    """``Constant → FakeQuantize → Convert (to 4 bits)``: the integers, as they would be stored.

    ONNX files that keep their weights in float, with a QuantizeLinear and a DequantizeLinear after them, as AIMET exports
    them. In 8 bits OpenVINO makes one FakeQuantize of the two; in 4 bits it does not, and the layers stayed in float.
    """

    quiet = True
    why = Reason("stored_integers", "its integers are computed from float weights")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convert"]

    def concerns(self, node: Node) -> bool:
        quantize = node.input_value(0).get_node()
        return precision_of(node.output(0)) in INT4 and quantize.get_type_name() == "FakeQuantize"

    def has_form(self, node: Node) -> bool:
        quantize = node.input_value(0).get_node()
        return constant_above(quantize.input_value(0)) is not None and QuantizationDetails.of(quantize) is not None

    def transform(self, node: Node) -> None:
        quantize = node.input_value(0).get_node()
        details = QuantizationDetails.of(quantize)
        values = fake_quantize(constant_above(quantize.input_value(0)), *details.intervals, details.levels)
        stored = constant(values, precision_of(node.output(0)))
        stored.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), stored.output(0))
