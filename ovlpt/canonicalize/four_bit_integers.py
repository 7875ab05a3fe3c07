from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, converted, precision_of
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import RELEASE, Constant, Node, Output
from ovlpt.precisions import INT4
from ovlpt.trace import Reason

_SIGN = 8  # what i4 integers are less than u4 ones


class FourBitIntegers(LayerTransformation):
    """The CPU plugin reads stored integers of 4 bits wrongly where they pass a Reshape (2024.6), or their zero point is one of
    i4 (before 2025.4): so they are stored in their shape, and both in u4.
    """

    quiet = True
    why = Reason("four_bits", "its integers of 4 bits would be read wrongly")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convert", "opset1.Subtract"]

    def concerns(self, node: Node) -> bool:
        if node.get_type_name() == "Subtract":
            return RELEASE < (2025, 4) and all(map(_is_signed, node.input_values()))
        if RELEASE >= (2025, 0):
            return False
        value = node.input_value(0)
        is_moved = precision_of(value) in INT4 and not isinstance(value.get_node(), Constant)
        return is_moved and folded_constant(value) is not None

    def transform(self, node: Node) -> None:
        if node.get_type_name() == "Convert":
            value = node.input_value(0)
            node.input(0).replace_source_output(constant(folded_constant(value), precision_of(value)).output(0))
            return
        for port, value in enumerate(node.input_values()):
            values = folded_constant(value.get_node().input_value(0)).astype(np.int8) + _SIGN
            moved = converted(constant(values, "u4").output(0), precision_of(value))
            node.input(port).replace_source_output(moved.output(0))


def _is_signed(value: Output) -> bool:
    """Whether real numbers come from stored integers of i4."""
    node = value.get_node()
    if node.get_type_name() != "Convert" or precision_of(node.input_value(0)) != "i4":
        return False
    return folded_constant(node.input_value(0)) is not None
