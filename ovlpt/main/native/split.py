"""Split and VariadicSplit."""

from __future__ import annotations

from ovlpt.graph.dequantization import put_constant_second
from ovlpt.main import split, variadic_split
from ovlpt.openvino_api import Node


class SplitTransformation(split.SplitTransformation):
    """What else reads a factor finds it second."""

    def transform(self, node: Node) -> None:
        put_constant_second(self.dequantization(node))
        super().transform(node)


class VariadicSplitTransformation(variadic_split.VariadicSplitTransformation):
    """As Split."""

    def transform(self, node: Node) -> None:
        put_constant_second(self.dequantization(node))
        super().transform(node)
