from __future__ import annotations

from collections.abc import Iterable

from ovlpt.attributes.attribute import Attribute


class QuantizationAlignment(Attribute[bool]):
    """Whether the tensors that meet here must share one scale and zero point. On precision-preserved nodes."""

    __slots__ = ()

    def merge(self, others: Iterable[Attribute[bool]]) -> None:
        """True when any is."""
        self.value = self.value or any(other.value for other in others)
