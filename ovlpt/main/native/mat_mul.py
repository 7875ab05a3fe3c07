"""MatMul."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.weights import rounded_zero_point
from ovlpt.main import mat_mul
from ovlpt.openvino_api import Node
from ovlpt.operations.values import is_scalar_like
from ovlpt.trace import reject


class MatMulTransformation(mat_mul.MatMulTransformation):
    """No sums stand for zero points."""

    decomposes_data = True

    def _check_sums(self, node: Node, left: Dequantization, right: Dequantization, code: str, text: str) -> None:
        reject(code, text)

    def _needs_sums(self, node: Node, left: Dequantization) -> bool:
        return False

    def _is_one(self, values: np.ndarray, name: str) -> bool:
        """Several equal values of input 1 do not count as one."""
        return name != "input 1" and is_scalar_like(values)

    def _of_columns(self, scale: np.ndarray, columns: tuple[int | None, ...]) -> np.ndarray:
        """Scales that fit the columns stay as they are; for any other number of them the native pass throws."""
        return scale if scale.shape[-1:] in ((), (1,), columns) else super()._of_columns(scale, columns)

    def _zero_point_of(self, right: Dequantization) -> np.ndarray | None:
        """One that rounds to zero is dropped."""
        return (
            rounded_zero_point(right.zero_point, right.data_precision) if right.is_low_precision else right.zero_point
        )
