from __future__ import annotations

from collections.abc import Iterable

from ovlpt.attributes import Precisions
from ovlpt.markup.propagation import (
    CreateAttribute,
    PropagateThroughPrecisionPreserved,
    PropagateToInput,
    Propagation,
    Propagations,
)


class PropagatePrecisions(Propagations):
    """Every FakeQuantize learns which element types all its consumers take, through any precision-preserved chain."""

    def steps(self) -> Iterable[Propagation]:
        settings = self.settings()
        return (
            CreateAttribute(
                {"FakeQuantize"},
                lambda _: Precisions(self.params.default_precisions),
                lambda node: node.output(0),
                **settings,
            ),
            PropagateThroughPrecisionPreserved(Precisions, **settings),
            PropagateToInput(Precisions, **settings),
        )
