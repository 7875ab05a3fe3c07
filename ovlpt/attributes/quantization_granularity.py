from __future__ import annotations

from typing import Literal

from ovlpt.attributes.attribute import Attribute


class QuantizationGranularity(Attribute[Literal["per_tensor", "per_channel"]]):
    """How fine the quantization of an input may be. On input ports."""

    __slots__ = ()

    @property
    def is_skipped(self) -> bool:
        return self.value != "per_tensor"
