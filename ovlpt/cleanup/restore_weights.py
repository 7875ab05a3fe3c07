from __future__ import annotations

from ovlpt.attributes import WeightsBeforeCanonicalization
from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.graph.constants import is_real, precision_of
from ovlpt.graph.weights import MOVES_WEIGHTS
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class RestoreWeightsTransformation(CleanupTransformation):
    """A MatMul that stays in float reads its weights as they were before canonicalization gave them i8 without a zero point.

    With such weights a plugin quantizes the data dynamically, which it would not do with the original ones.
    """

    operation = OPERATIONS["MatMul"]

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        reject_unless(all(is_real(precision_of(value)) for value in node.input_values()), "low_precision", "it is int8")
        link, port = self._link(node)
        canonicalized = self.attributes.get(link.input_value(port).get_node(), WeightsBeforeCanonicalization)
        reject_unless(canonicalized is not None, "not_canonicalized", "its weights are unchanged")

    def transform(self, node: Node) -> None:
        link, port = self._link(node)
        canonicalized = self.attributes.get(link.input_value(port).get_node(), WeightsBeforeCanonicalization)
        link.input(port).replace_source_output(canonicalized.value)

    @staticmethod
    def _link(node: Node) -> tuple[Node, int]:
        """What reads the weights, and on which input: the node, or the first of what moves them."""
        port = 1
        while node.input_value(port).get_node().get_type_name() in MOVES_WEIGHTS:
            node, port = node.input_value(port).get_node(), 0
        return node, port
