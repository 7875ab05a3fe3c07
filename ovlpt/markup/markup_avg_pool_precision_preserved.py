from __future__ import annotations

from collections.abc import Iterable

from ovlpt.attributes import AvgPoolPrecisionPreserved, PrecisionPreserved
from ovlpt.markup.propagation import (
    PropagateThroughPrecisionPreserved,
    Propagation,
    Propagations,
    UpdateSharedPrecisionPreserved,
)
from ovlpt.openvino_api import Node
from ovlpt.operations import RECURRENT, WEIGHTED


class _CreatePoolAttributes(Propagation):
    operations = frozenset(("AvgPool",))

    def visit(self, node: Node) -> None:
        if not self.row("AvgPool").why_no_rule(node.get_type_info().version_id):
            pool, preserved = AvgPoolPrecisionPreserved(False), PrecisionPreserved(False)
            preserved.shared = pool.shared  # what decides for the pool decides whether it preserves precision
            self.attributes.set(node, pool)
            self.attributes.set(node, preserved)


class UpdateByLayers(UpdateSharedPrecisionPreserved):
    """Only a layer with weights gains by averages that are integers: all others would be given what is rounded."""

    def visit(self, node: Node) -> None:
        if (kind := node.get_type_name()) in WEIGHTED or kind in RECURRENT:
            super().visit(node)


class MarkupAvgPoolPrecisionPreserved(Propagations):
    """An AvgPool keeps low precision where what it feeds is a quantized layer."""

    updates: type[UpdateSharedPrecisionPreserved] = UpdateByLayers

    def steps(self) -> Iterable[Propagation]:
        settings = self.settings()
        return (
            _CreatePoolAttributes(**settings),
            PropagateThroughPrecisionPreserved(AvgPoolPrecisionPreserved, **settings),
            self.updates(AvgPoolPrecisionPreserved, **settings),
        )
