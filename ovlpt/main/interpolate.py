from __future__ import annotations

from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.relaxed import can_be_relaxed
from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless

_MEANS = ("linear", "linear_onnx", "cubic")
_IMAGE_RANK = 4  # kernels for other ranks, and for antialias, hold no FakeQuantize
_LEVELS = 256


class InterpolateTransformation(MoveDequantizationAfter):
    """Nearest neighbours are copies, so the dequantization passes and the output stays in low precision.

    Other modes compute means: the dequantization passes too, and the output is real. Kernels round it to the type of the
    data, unless a FakeQuantize after becomes part of them; so there has to be one, to as many levels as the data has.
    """

    operation = OPERATIONS["Interpolate"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        attributes, version = node.get_attributes(), node.get_type_info().version_id
        if (mode := attributes["mode"]) == "nearest":
            return
        kernel = mode in _MEANS and not attributes["antialias"]
        reject_unless(
            kernel and node.get_input_partial_shape(0).rank.get_length() == _IMAGE_RANK and self._is_quantized(node),
            "interpolation_mode",
            f"the mode is {mode}, and the values that it computes would be rounded, since no FakeQuantize of 256 levels follows",
        )
        reject_unless(
            can_be_relaxed(node) and version != "opset11",
            "release",
            f"an Interpolate of {version} that computes between integers cannot be made with this OpenVINO",
        )

    def _is_quantized(self, node: Node) -> bool:
        readers = [target.get_node() for target in consumers_of(node.output(0))]
        if len(readers) != 1 or readers[0].get_type_name() != "FakeQuantize":
            return False
        details = self.details(readers[0])
        return details is not None and details.levels <= _LEVELS
