from __future__ import annotations

import numpy as np

from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS


class NormalizeL2Transformation(LayerTransformation):
    """``normalize(x * s) == normalize(x) * sign(s)``; eps is kept."""

    operation = OPERATIONS["NormalizeL2"]

    def can_be_transformed(self, node: Node) -> None:
        self.check_row(node, self.require_dequantization(node))

    def transform(self, node: Node) -> None:
        found = self.dequantization(node)
        self.move_dequantization_after(node, found, np.sign(found.scale), keeps_precision=False)
