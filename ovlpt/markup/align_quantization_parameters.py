from __future__ import annotations

from collections.abc import Iterable

from ovlpt.attributes import QuantizationAlignment, QuantizationGranularity
from ovlpt.markup.propagation import (
    CreateAttribute,
    PropagateToSources,
    Propagation,
    Propagations,
    UpdateSharedPrecisionPreserved,
    is_precision_preserved,
)
from ovlpt.openvino_api import Node


class AlignQuantizationParameters(Propagations):
    """Tensors that meet before an operation that needs per-tensor quantization share one scale and zero point.

    What another reader of one of them needs is no reason: it reads that one alone.
    """

    def steps(self) -> Iterable[Propagation]:
        settings = self.settings()

        def unaligned(node: Node) -> QuantizationAlignment | None:
            return QuantizationAlignment(False) if is_precision_preserved(self.attributes, node) else None

        return (
            CreateAttribute(None, unaligned, **settings),
            UpdateSharedPrecisionPreserved(QuantizationAlignment, QuantizationGranularity, **settings),
            PropagateToSources(QuantizationAlignment, **settings),
        )
