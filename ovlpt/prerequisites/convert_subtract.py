from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, precision_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.precisions import REAL
from ovlpt.trace import reject_unless


class ConvertSubtract(LayerTransformation):
    """``a - b`` of real numbers becomes ``a + b * -1``, but for constant ``b``, as a zero point is.

    A constant less a tensor would otherwise look like a dequantization of the other sign. Source: the native pass of
    the same name, which plugins run before their LPT with a callback that leaves zero points alone
    (`ovlpt.predicates.are_quantize_and_dequantize_supported_for_subtract`).
    """

    quiet = True  # most subtractions are not such a difference

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Subtract"]

    def can_be_transformed(self, node: Node) -> None:
        precision = precision_of(node.output(0))
        reject_unless(precision in REAL, "not_real", f"it computes on {precision}")
        reject_unless(not is_constant_path(node.input_value(1).get_node()), "constant", "what it subtracts is constant")

    def transform(self, node: Node) -> None:
        negative = opset1.multiply(node.input_value(1), constant(np.float32(-1), precision_of(node.output(0))))
        total = opset1.add(node.input_value(0), negative)
        total.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), total.output(0))
