from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class AvgPoolTransformation(MoveDequantizationAfter):
    """The average is linear; its result stays in low precision only where markup found a quantized consumer.

    Elsewhere one that rounds its size as no AvgPool of the first opset does computes of floats, and integers would have to
    be converted for it.
    """

    operation = OPERATIONS["AvgPool"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        rounds_otherwise = node.get_attributes()["rounding_type"] == "ceil_torch" and not self.keeps_precision(node)
        reject_unless(
            not rounds_otherwise, "ceil_torch", "its rounding (ceil_torch) has no kernel that averages integers"
        )

    def keeps_precision(self, node: Node) -> bool:
        return self.is_precision_preserved(node)
