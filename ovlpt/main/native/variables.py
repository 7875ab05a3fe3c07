"""Variables of a model."""

from __future__ import annotations

from ovlpt.main import assign_and_read_value
from ovlpt.openvino_api import Constant, Node, Output


class AssignAndReadValueTransformation(assign_and_read_value.AssignAndReadValueTransformation):
    """Zeros of sizes that are known when the model runs count as any other initial value."""

    def _is_zero(self, initial: Node) -> bool:
        return isinstance(initial, Constant) and super()._is_zero(initial)

    def _followers(self, value: Output) -> list[Node]:
        """A FakeQuantize that alone reads what was stored."""
        found = super()._followers(value)
        return found if [node.get_type_name() for node in found] == ["FakeQuantize"] else []
