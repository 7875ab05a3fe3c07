from __future__ import annotations

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS


class ClampTransformation(LayerTransformation):
    """``clamp((x - z) * s, lo, hi) == (clamp(x, lo / s + z, hi / s + z) - z) * s``, bounds swapped when ``s < 0``."""

    operation = OPERATIONS["Clamp"]

    def can_be_transformed(self, node: Node) -> None:
        self.check_row(node, self.require_dequantization(node))

    def transform(self, node: Node) -> None:
        found, attributes = self.dequantization(node), node.get_attributes()
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        scale = float(found.scale.flat[0]) if found.scale is not None else 1.0
        shift = float(found.zero_point.flat[0]) if found.zero_point is not None else 0.0
        low, high = sorted(attributes[end] / scale + shift for end in ("min", "max"))
        bounds = {"min": low, "max": high}
        clamp = relaxed("Clamp", [found.data], self._computed_in(node, found), bounds, origin=self.params.deq_precision)
        clamp.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, clamp)
        replace_output(node.output(0), clamp.output(0))
        self.dequantize(
            clamp.output(0), clamp.get_friendly_name(), targets, found, found.scale, found.zero_point, original
        )

    def _computed_in(self, node: Node, found: Dequantization) -> str:
        """The type of the dequantization: f32 rather than the f16 of the result."""
        return found.precision
