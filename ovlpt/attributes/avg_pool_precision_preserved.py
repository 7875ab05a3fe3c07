from __future__ import annotations

from ovlpt.attributes.attribute import Attribute


class AvgPoolPrecisionPreserved(Attribute[bool]):
    """Whether a pool is followed by a quantized operation, so that its output stays in low precision. On nodes."""

    __slots__ = ()
