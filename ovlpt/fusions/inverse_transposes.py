"""Two Transposes of which one undoes the other."""

from __future__ import annotations

from ovlpt.fusions.fusion import Fusion, take_over
from ovlpt.graph.consumers import is_output
from ovlpt.graph.shapes import order_of
from ovlpt.openvino_api import Node
from ovlpt.trace import reject_unless


class InverseTransposesFusion(Fusion):
    """``transpose(transpose(x, p), q) == x`` where ``p[q] == 0, 1, 2 …``: what is left of a channel-last
    layout.
    """

    operations = ("opset1.Transpose",)

    def concerns(self, node: Node) -> bool:
        above = node.input_value(0).get_node()
        if above.get_type_name() != "Transpose":
            return False
        first, second = order_of(above), order_of(node)
        return first is not None and second is not None and [first[axis] for axis in second] == sorted(first)

    def can_be_transformed(self, node: Node) -> None:
        data = node.input_value(0).get_node().input_value(0)
        free = data.get_node().get_type_name() != "Parameter" and not is_output(data)
        reject_unless(
            free or not is_output(node.output(0)),
            "output",
            "the data is an input or output under a name of its own",
        )

    def transform(self, node: Node) -> None:
        take_over(node.output(0), node.input_value(0).get_node().input_value(0))
