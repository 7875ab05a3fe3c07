from __future__ import annotations

from ovlpt.attributes.attribute import Attribute


class PrecisionPreserved(Attribute[bool]):
    """Whether the node's output can have the low precision of its input. On nodes."""

    __slots__ = ()
