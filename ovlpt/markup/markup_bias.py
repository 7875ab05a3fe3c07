from __future__ import annotations

from ovlpt.attributes import Bias
from ovlpt.graph.shapes import shape_of
from ovlpt.markup.propagation import Propagation
from ovlpt.openvino_api import Constant, Node
from ovlpt.operations import WEIGHTED


class MarkupBias(Propagation):
    """Marks the Add of a constant with at most one long dimension directly after a weighted operation."""

    operations = frozenset(("Add",))

    def visit(self, node: Node) -> None:
        if node.get_output_partial_shape(0).rank.is_dynamic:
            return
        for port in (0, 1):
            layer, other = node.input_value(port).get_node(), node.input_value(1 - port).get_node()
            if layer.get_type_name() in WEIGHTED and isinstance(other, Constant):
                if sum(size != 1 for size in shape_of(other.output(0))) <= 1:
                    self.attributes.set(node, Bias(True))
                return
