from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.weights import misfit, remainder, zero_point_fits
from ovlpt.layer_transformation import MoveDequantizationAfter, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class ReluTransformation(MoveDequantizationAfter):
    """``relu(x * s) == relu(x) * s`` when ``s >= 0``; a zero point moves the kink: ``relu(x - z) == max(x, z) - z``."""

    operation = OPERATIONS["Relu"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        found = self.dequantization(node)
        if found.zero_point is None:
            return
        whole = found.is_low_precision and remainder(found.zero_point, found.data_precision) is None
        reject_unless(
            whole and zero_point_fits(found.zero_point, found.data_precision),
            "zero_point",
            f"no integer of {found.data_precision} stands for zero, which would be {misfit(found.zero_point, found.data_precision):g}: nothing can be compared with it",
        )

    def transform(self, node: Node) -> None:
        found = self.dequantization(node)
        if found.zero_point is None:
            super().transform(node)
            return
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        zero = np.rint(found.zero_point)
        kink = constant(zero.reshape(()) if zero.size == 1 else zero, found.data_precision)
        maximum = opset1.maximum(found.data, kink)
        name = node.get_friendly_name()
        maximum.set_friendly_name(name)
        self.attributes.move(node, maximum)
        replace_output(node.output(0), maximum.output(0))
        self.dequantize(maximum.output(0), name, targets, found, found.scale, zero, original)
