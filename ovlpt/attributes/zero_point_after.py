from __future__ import annotations

from ovlpt.attributes.attribute import Attribute


class ZeroPointAfter(Attribute[bool]):
    """Marks a convolution without padding that was a MatMul: what the zero point of its data adds is subtracted after it.

    Before the layer the plugin would have to sum over the weights, element by element whenever the model is loaded. On nodes.
    """

    __slots__ = ()
