"""Operations that compute element by element or over axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization, write_dequantization
from ovlpt.layer_transformation import insert_after
from ovlpt.main import clamp, mvn, normalize_l2, pad, prelu
from ovlpt.main.native.constant_second import ConstantSecond
from ovlpt.openvino_api import Node, Output


class ClampTransformation(clamp.ClampTransformation):
    def _computed_in(self, node: Node, found: Dequantization) -> str:
        """In f16 where the result is."""
        return precision_of(node.output(0))

    def dequantize(
        self,
        data: Output,
        name: str,
        targets: Iterable[object],
        found: Dequantization,
        scale: np.ndarray | None,
        zero_point: np.ndarray | None,
        output_precision: str,
    ) -> None:
        """What follows reads f16 as it is."""
        links = write_dequantization(
            data, name, scale, zero_point, found.precision, output_precision, found.zero_point_precision, converts=False
        )
        insert_after(data, links[0], targets, links[1])


class MVNTransformation(ConstantSecond, mvn.MVNTransformation):
    """Eps stays as it is, which is wrong where the variance is of its order."""

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
