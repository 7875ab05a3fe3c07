from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS


class AvgPoolTransformation(MoveDequantizationAfter):
    """The average is linear; its result stays in low precision only where markup found a quantized consumer."""

    operation = OPERATIONS["AvgPool"]

    def keeps_precision(self, node: Node) -> bool:
        return self.is_precision_preserved(node)
