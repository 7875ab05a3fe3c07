from __future__ import annotations

from ovlpt.graph.constants import precision_of
from ovlpt.graph.consumers import is_output
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.relaxed import relaxed_like
from ovlpt.layer_transformation import MoveDequantizationAfter, replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class PReluTransformation(MoveDequantizationAfter):
    """``prelu(x * s) == prelu(x) * s`` when ``s >= 0``; a zero point is subtracted before: the kink lies at zero.

    Unsigned data without a zero point is what it was. Scale and shift of a layer's result stay before, in the layer: a
    shift alone is a per-channel post-operation, which kernels read wrongly over one pixel.
    """

    operation = OPERATIONS["PRelu"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        found = self.dequantization(node)
        reject_unless(
            found.zero_point is None or found.is_low_precision,
            "zero_point",
            "scale and shift of a layer stay before it",
        )

    def transform(self, node: Node) -> None:
        found = self.dequantization(node)
        if found.zero_point is None:
            if self._is_identity(node, found):
                replace_output(node.output(0), node.input_value(0))
            else:
                super().transform(node)
            return
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        shifted = found.subtract.output(0)
        if precision_of(shifted) == original:
            node.input(0).replace_source_output(shifted)
        else:
            inputs = [shifted, *node.input_values()[1:]]
            wide = relaxed_like(node, inputs, found.precision, origin=self.params.deq_precision)
            self.attributes.move(node, wide)
            replace_output(node.output(0), wide.output(0))
            node = wide
        self.dequantize(node.output(0), node.get_friendly_name(), targets, found, found.scale, None, original)

    def _is_identity(self, node: Node, found: Dequantization) -> bool:
        """A model's output keeps its name, and so its operation."""
        return found.data_precision == "u8" and not is_output(node.output(0))
