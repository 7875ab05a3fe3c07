from __future__ import annotations

from ovlpt.attributes.attribute import Attribute


class Restricted(Attribute[bool]):
    """Marks a node that a restriction with an empty mapping switches off. On nodes.

    The native library leaves such a node to its transformation all the same; it has no attribute like this one.
    """

    __slots__ = ()
