from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS


class NormalizeL2Transformation(LayerTransformation):
    """``normalize(x * s; eps) == normalize(x; eps / s²) * sign(s)``."""

    operation = OPERATIONS["NormalizeL2"]

    def can_be_transformed(self, node: Node) -> None:
        self.check_row(node, self.require_dequantization(node))

    def transform(self, node: Node) -> None:
        found, attributes, deq = self.dequantization(node), node.get_attributes(), self.params.deq_precision
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        attributes["eps"] = self._eps(attributes["eps"], found)
        inputs = [found.data, *node.input_values()[1:]]
        normalize = relaxed("NormalizeL2", inputs, deq, attributes, origin=deq)
        normalize.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, normalize)
        replace_output(node.output(0), normalize.output(0))
        scale = np.sign(found.scale)
        self.dequantize(normalize.output(0), node.get_friendly_name(), targets, found, scale, None, original)

    def _eps(self, eps: float, found: Dequantization) -> float:
        return eps / float(found.scale.flat[0]) ** 2
