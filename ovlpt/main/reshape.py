from ovlpt.graph.constants import is_constant_path
from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class ReshapeTransformation(MoveDequantizationAfter):
    """Per-tensor constants become scalars; constants per channel follow the channel axis.

    Weights keep theirs: the operation that reads them looks for it before the Reshape.
    """

    operation = OPERATIONS["Reshape"]

    def can_be_transformed(self, node: Node) -> None:
        reject_unless(not is_constant_path(node), "weights", "its data is constant; the consumer reads it whole")
        super().can_be_transformed(node)
