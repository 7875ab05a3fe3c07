from __future__ import annotations

from ovlpt.graph.constants import constant_above, is_real, precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node, NodeFactory, Output, opset1
from ovlpt.operations.families import ARITHMETIC
from ovlpt.trace import Reason

# What the CPU plugin fuses into a reduction with it
_BEFORE = ARITHMETIC | {"Abs", "Clamp", "Convert", "Floor", "Negative", "Relu"}


class IntegerQuotients(LayerTransformation):
    """``x / n`` of integers, x a reduction or computed from one, as ``(x - x mod n) / n``, which leaves no rest.

    As part of the reduction the CPU plugin rounds the quotient to the nearest integer, where that below it is meant, and takes
    ``n / x`` for ``x / n``. So the lengths of Speech2Text, a sum of a mask that is halved, were too long by one, where odd.
    """

    quiet = True
    why = Reason("integer_quotient", "as part of a reduction it would be rounded to the nearest integer")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Divide"]

    def concerns(self, node: Node) -> bool:
        return not is_real(precision_of(node.output(0)))

    def has_form(self, node: Node) -> bool:
        return any(map(_is_reduced, node.input_values())) and not _is_whole(node.input_value(0).get_node())

    def transform(self, node: Node) -> None:
        whole, count = node.input_values()
        rest = NodeFactory("opset1").create("FloorMod", [whole, count], {"auto_broadcast": "numpy"})
        divided = opset1.subtract(whole, rest)
        divided.set_friendly_name(made_for(node.get_friendly_name(), Made.WHOLE))
        node.input(0).replace_source_output(divided.output(0))


def _is_reduced(value: Output) -> bool:
    """Whether it is a reduction of integers, or what elementwise operations with constants make of one."""
    while (node := value.get_node()).get_type_name() in _BEFORE and not is_real(precision_of(node.input_value(0))):
        others = [other for other in node.input_values()[1:] if constant_above(other) is None]
        if others:
            return False
        value = node.input_value(0)
    return node.get_type_name().startswith("Reduce") and not is_real(precision_of(value))


def _is_whole(node: Node) -> bool:
    """Whether its rest has been subtracted."""
    return node.get_type_name() == "Subtract" and node.input_value(1).get_node().get_type_name() == "FloorMod"
