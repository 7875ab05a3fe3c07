from __future__ import annotations

from ovlpt.attributes.attribute import Attribute


class DisableCleanup(Attribute[bool]):
    """Marks a node that cleanup must leave alone: a plugin recognizes it. On nodes."""

    __slots__ = ()
