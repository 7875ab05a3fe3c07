from __future__ import annotations

from ovlpt.attributes.attribute import Attribute
from ovlpt.openvino_api import Output


class WeightsBeforeCanonicalization(Attribute[Output]):
    """The weights that canonicalization has brought into another form, which is for layers in low precision only. On nodes."""

    __slots__ = ()
