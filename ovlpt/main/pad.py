from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant
from ovlpt.graph.dequantization import Dequantization
from ovlpt.layer_transformation import MoveDequantizationAfter, constant_input
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import NUMPY, is_low
from ovlpt.trace import reject_unless


class PadTransformation(MoveDequantizationAfter):
    """Padded cells hold the value itself, with zero point 0 and scale 1; other modes pad the constants like the
    data.
    """

    operation = OPERATIONS["Pad"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        self._check_value(node)

    def _check_value(self, node: Node) -> None:
        """What it pads with has to be one of the integers."""
        if node.get_input_size() < 4 or node.get_attributes()["pad_mode"] != "constant":
            return
        value, precision = node.input_value(3).get_node().data, self.dequantization(node).data_precision
        reject_unless(
            not is_low(precision) or (value.astype(NUMPY[precision]) == value).all(),
            "pad_value",
            f"{precision} cannot hold {float(value.flat[0]):g}, the padding value",
        )

    def move_dequantization_after(self, node: Node, found: Dequantization, *constants, **settings) -> Node:
        if node.get_input_size() > 3:
            value = constant_input(node.input_value(3))
            value = np.zeros(()) if value is None else value  # in other modes nothing reads it
            node.input(3).replace_source_output(constant(value, found.data_precision).output(0))
        return super().move_dequantization_after(node, found, *constants, **settings)
