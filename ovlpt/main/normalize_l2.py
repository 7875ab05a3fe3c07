from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above, precision_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, Output
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
        inputs = [found.data, self._axes(node)]
        normalize = relaxed("NormalizeL2", inputs, deq, attributes, origin=deq)
        normalize.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, normalize)
        replace_output(node.output(0), normalize.output(0))
        scale = np.sign(found.scale)
        self.dequantize(normalize.output(0), node.get_friendly_name(), targets, found, scale, None, original)

    def _axes(self, node: Node) -> Output:
        """None counted from the end: of such ones a plugin would compose the operation of others, which would stay in integers."""
        given = node.input_value(1)
        axes = constant_above(given)
        if axes is None or not (axes < 0).any():
            return given
        return constant(axes % node.get_input_partial_shape(0).rank.get_length(), precision_of(given)).output(0)

    def _eps(self, eps: float, found: Dequantization) -> float:
        return eps / float(found.scale.flat[0]) ** 2
