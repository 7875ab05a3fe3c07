from __future__ import annotations

from ovlpt.graph.constants import constant, is_real, precision_of
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Constant, Node
from ovlpt.trace import Reason


class StoredSlopes(LayerTransformation):
    """A slope that is stored as integers, or that a FakeQuantize rounds, becomes the constant that it is.

    Quantizers of ONNX files store it so. The dequantization of the data passes a slope that it can read, and plugins fuse no
    other one.
    """

    why = Reason("stored_slope", "its slope is computed from constants, which would keep it from being fused")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.PRelu"]

    def concerns(self, node: Node) -> bool:
        slope = node.input_value(1)
        is_stored = not isinstance(slope.get_node(), Constant) and is_real(precision_of(slope))
        return is_stored and folded_constant(slope) is not None

    def can_be_transformed(self, node: Node) -> None:
        """There is nothing to refuse."""

    def transform(self, node: Node) -> None:
        slope = node.input_value(1)
        folded = constant(folded_constant(slope), precision_of(slope))
        folded.set_friendly_name(slope.get_node().get_friendly_name())
        node.input(1).replace_source_output(folded.output(0))
