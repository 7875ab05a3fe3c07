"""Operations that compute element by element or over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.main import clamp, mvn, normalize_l2, pad, prelu
from ovlpt.main.native.constant_second import ConstantSecond
from ovlpt.openvino_api import Node


class ClampTransformation(clamp.ClampTransformation):
    def _computed_in(self, node: Node, found: Dequantization) -> str:
        """In f16 where the result is."""
        return precision_of(node.output(0))

    def converts(self, found: Dequantization) -> bool:
        """What follows reads f16 as it is."""
        return False


class MVNTransformation(ConstantSecond, mvn.MVNTransformation):
    """Eps stays as it is, which is wrong where the variance is of its order."""

    def _signs(self, scale: np.ndarray) -> np.ndarray:
        """A scale of 0 is none: what it makes constant is normalized as it was."""
        return np.where(scale < 0, np.float32(-1), np.float32(1))

    def _check_eps(self, found: Dequantization) -> None:
        pass

    def _eps(self, attributes: dict[str, Any], found: Dequantization) -> float:
        return attributes["eps"]


class NormalizeL2Transformation(normalize_l2.NormalizeL2Transformation):
    """Eps stays as it is, which is wrong where the sum of squares is of its order."""

    def _eps(self, eps: float, found: Dequantization) -> float:
        return eps


class PadTransformation(pad.PadTransformation):
    def _check_value(self, node: Node) -> None:
        """It pads with what the value becomes in the integer type."""


class PReluTransformation(prelu.PReluTransformation):
    def _is_identity(self, node: Node, found: Dequantization) -> bool:
        """It stays on unsigned data."""
        return False
