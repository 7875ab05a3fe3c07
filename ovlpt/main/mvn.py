from __future__ import annotations

from typing import Any

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization, write_dequantization
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import LayerTransformation, insert_after, replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import is_scalar_like
from ovlpt.trace import reject_unless


class MVNTransformation(LayerTransformation):
    """``mvn(x * s; eps) == mvn(x; eps / s²) * sign(s)`` with the variance normalized, else ``mvn(x) * s``.

    With eps added outside the square root it is divided by ``|s|``.
    """

    operation = OPERATIONS["MVN"]

    def can_be_transformed(self, node: Node) -> None:
        found = self.require_dequantization(node)
        self.check_row(node, found)
        if node.get_attributes()["normalize_variance"]:
            self._check_eps(found)

    def transform(self, node: Node) -> None:
        found, attributes = self.dequantization(node), node.get_attributes()
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        scale = found.scale
        if attributes["normalize_variance"]:
            scale = self._signs(found.scale)
            attributes["eps"] = self._eps(attributes, found)
        inputs, opset = [found.data, *node.input_values()[1:]], node.get_type_info().version_id
        deq = self.params.deq_precision
        normalize = relaxed("MVN", inputs, deq, attributes, opset, origin=deq)
        normalize.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, normalize)
        replace_output(node.output(0), normalize.output(0))
        output, nodes = write_dequantization(normalize.output(0), node.get_friendly_name(), scale, None, deq, original)
        insert_after(normalize.output(0), output, targets, nodes)

    def _signs(self, scale: np.ndarray) -> np.ndarray:
        return np.sign(scale)

    def _check_eps(self, found: Dequantization) -> None:
        text = "eps cannot be adjusted to a scale that differs between channels"
        reject_unless(is_scalar_like(np.abs(found.scale)), "per_channel", text)

    def _eps(self, attributes: dict[str, Any], found: Dequantization) -> float:
        magnitude = float(np.abs(found.scale).flat[0])
        outside = str(attributes.get("eps_mode", "inside_sqrt")).lower() == "outside_sqrt"
        return attributes["eps"] / (magnitude if outside else magnitude**2)
