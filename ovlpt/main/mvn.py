from __future__ import annotations

import numpy as np

from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS


class MVNTransformation(LayerTransformation):
    """``mvn(x * s) == mvn(x) * sign(s)`` with the variance normalized, else ``mvn(x) * s``; eps is kept."""

    operation = OPERATIONS["MVN"]

    def can_be_transformed(self, node: Node) -> None:
        self.check_row(node, self.require_dequantization(node))

    def transform(self, node: Node) -> None:
        found = self.dequantization(node)
        scale = np.sign(found.scale) if node.get_attributes()["normalize_variance"] else found.scale
        self.move_dequantization_after(node, found, scale, keeps_precision=False)
