from __future__ import annotations

from ovlpt.graph.relaxed import can_be_relaxed
from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class InterpolateTransformation(MoveDequantizationAfter):
    """Nearest neighbours are copies, so the dequantization passes and the output stays in low precision.

    Other modes compute means: the dequantization passes too, and the output is real.
    """

    operation = OPERATIONS["Interpolate"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        mode, version = node.get_attributes()["mode"], node.get_type_info().version_id
        reject_unless(
            mode == "nearest" or (can_be_relaxed(node) and version != "opset11"),
            "release",
            f"an Interpolate of {version} that computes between integers cannot be made with this OpenVINO",
        )
