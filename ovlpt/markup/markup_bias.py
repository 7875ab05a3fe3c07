from __future__ import annotations

from ovlpt.attributes import Bias
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.markup.propagation import Propagation
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import WEIGHTED


class MarkupBias(Propagation):
    """Marks the Add of a constant with at most one long dimension directly after a weighted operation.

    The constant may be stored in 8 bits with a scale, as that of a bias that is quantized, too.
    """

    operations = frozenset(("Add",))

    def visit(self, node: Node) -> None:
        if node.get_output_partial_shape(0).rank.is_dynamic:
            return
        for port in (0, 1):
            layer, other = node.input_value(port).get_node(), node.input_value(1 - port)
            if layer.get_type_name() in WEIGHTED and self._is_constant(other):
                if sum(size != 1 for size in shape_of(other)) <= 1:
                    self.attributes.set(node, Bias(True))
                return

    def _is_constant(self, value: Output) -> bool:
        return folded_constant(value) is not None
