from __future__ import annotations

from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.openvino_api import Constant, Node


class FoldConvertTransformation(CleanupTransformation):
    """A zero point after a Convert becomes a constant of the Convert's type."""

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Subtract"]

    def has_form(self, node: Node) -> bool:
        return bool(self._ports(node))

    def transform(self, node: Node) -> None:
        for port in self._ports(node):
            convert = node.input_value(port)
            values = values_of(convert.get_node().input_value(0).get_node())
            node.input(port).replace_source_output(constant(values, precision_of(convert)).output(0))

    @staticmethod
    def _ports(node: Node) -> list[int]:
        def is_converted_constant(source: Node) -> bool:
            return source.get_type_name() == "Convert" and isinstance(source.input_value(0).get_node(), Constant)

        return [port for port in (0, 1) if is_converted_constant(node.input_value(port).get_node())]
