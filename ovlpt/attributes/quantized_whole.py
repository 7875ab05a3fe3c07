from __future__ import annotations

from ovlpt.attributes.attribute import Attribute


class QuantizedWhole(Attribute[bool]):
    """Marks a Concat of parts of what Splits take apart: each part quantized by itself would be a layer. On nodes."""

    __slots__ = ()
