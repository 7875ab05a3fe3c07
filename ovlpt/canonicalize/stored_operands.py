from __future__ import annotations

from ovlpt.graph.constants import constant, is_real, precision_of
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Constant, Node
from ovlpt.trace import Reason

_PORTS = {"PRelu": 1, "Pad": 3}


class StoredOperands(LayerTransformation):
    """A slope or a padding value that is stored as integers, or that a FakeQuantize rounds, becomes the constant that it is.

    Quantizers of ONNX files store it so. The dequantization of the data passes one that it can read, and plugins fuse no
    other slope.
    """

    why = Reason(
        "stored_operand", "its slope or padding value is computed from constants, which would keep it in float"
    )

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.PRelu", "opset1.Pad", "opset12.Pad"]

    def concerns(self, node: Node) -> bool:
        port = _PORTS[node.get_type_name()]
        if node.get_input_size() <= port:
            return False
        value = node.input_value(port)
        is_stored = not isinstance(value.get_node(), Constant) and is_real(precision_of(value))
        return is_stored and folded_constant(value) is not None

    def transform(self, node: Node) -> None:
        port = _PORTS[node.get_type_name()]
        value = node.input_value(port)
        folded = constant(folded_constant(value), precision_of(value))
        folded.set_friendly_name(value.get_node().get_friendly_name())
        node.input(port).replace_source_output(folded.output(0))
