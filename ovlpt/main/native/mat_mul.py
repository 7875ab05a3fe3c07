"""MatMul."""

from __future__ import annotations

import numpy as np

from ovlpt.attributes import Precisions
from ovlpt.graph.constants import converted, is_constant_path, precision_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.weights import weights_precision
from ovlpt.main import mat_mul
from ovlpt.openvino_api import RELEASE, Node, Output
from ovlpt.operations.values import is_scalar_like
from ovlpt.precisions import INT8, REAL, DataPrecision, round_half_away
from ovlpt.trace import reject


class MatMulTransformation(mat_mul.MatMulTransformation):
    """No sums stand for zero points."""

    decomposes_data = True

    def _yields(self, node: Node) -> bool:
        """It decomposes the FakeQuantize whatever others ask for."""
        return False

    def _check_sums(self, node: Node, left: Dequantization, right: Dequantization, code: str, text: str) -> None:
        reject(code, text)

    def _needs_sums(self, node: Node, left: Dequantization) -> bool:
        return False

    def _is_one(self, values: np.ndarray, name: str) -> bool:
        """Several equal values of input 1 do not count as one."""
        return name != "input 1" and is_scalar_like(values)

    def _weights_precision(self, node: Node, details: QuantizationDetails) -> DataPrecision:
        """Since 2026.3 data of more levels than the allowed types hold has the type that its intervals ask for, of 16 or 32 bits,
        unless the other factor is marked as one that stays in float.
        """
        other = self.attributes.get(node.input(0), Precisions)
        is_marked = other is not None and not other.value
        is_data = not is_constant_path(node.input_value(1).get_node())
        if RELEASE >= (2026, 3) and details.levels > 256 and is_data and not is_marked:
            return weights_precision(details, (), "input 1")
        return super()._weights_precision(node, details)

    def _integers(self, node: Node) -> tuple[Output, np.ndarray]:
        """Those of 16 or 32 bits are read as real numbers."""
        integers, scale = super()._integers(node)
        if precision_of(integers) not in (*INT8, *REAL):
            integers = converted(integers, self.params.deq_precision).output(0)
        return integers, scale

    def _of_columns(self, scale: np.ndarray, columns: tuple[int | None, ...]) -> np.ndarray:
        """Scales that fit the columns stay as they are; for any other number of them the native pass throws."""
        return scale if scale.shape[-1:] in ((), (1,), columns) else super()._of_columns(scale, columns)

    def _zero_point_of(self, right: Dequantization) -> np.ndarray | None:
        """One that rounds to zero is dropped; what does not fit the integers wraps around."""
        zero_point = right.zero_point
        if zero_point is None or not right.is_low_precision:
            return zero_point
        return zero_point if (round_half_away(zero_point) % 256).any() else None
