from __future__ import annotations

from collections.abc import Iterable

from ovlpt.attributes.attribute import Attribute


class Precisions(Attribute[tuple[str, ...]]):
    """Element types that a tensor may take; empty: it must not be quantized. On input ports and FakeQuantize
    outputs.
    """

    __slots__ = ()

    def merge(self, others: Iterable[Attribute[tuple[str, ...]]]) -> None:
        """Intersect, in the order of this attribute's list."""
        for other in others:
            self.value = tuple(precision for precision in self.value if precision in other.value)
