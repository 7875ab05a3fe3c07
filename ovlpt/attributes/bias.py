from __future__ import annotations

from ovlpt.attributes.attribute import Attribute


class Bias(Attribute[bool]):
    """Marks an Add of a constant right after a weighted operation. On Add nodes."""

    __slots__ = ()
