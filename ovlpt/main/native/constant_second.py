"""What else reads a factor on the left finds it second, as after the native ``normalizeDequantization``."""

from __future__ import annotations

from ovlpt.graph.dequantization import put_constant_second
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node


class ConstantSecond(LayerTransformation):
    """Mixed into a transformation that does not end with `move_dequantization_after`, where this is done for all others."""

    def transform(self, node: Node) -> None:
        put_constant_second(self.dequantization(node))
        super().transform(node)
