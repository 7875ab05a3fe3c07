"""A FakeQuantize taken apart into a quantization and a dequantization, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.precisions import NUMPY, DataPrecision

LARGEST_SCALE = 1e32  # of those that `decompose` gives


@dataclass(frozen=True)
class Decomposition:
    """``FQ(x) == (Q(x) - zero_point) * scale``, Q mapping to [low, high]; float32 arrays, zero_point None where
    it is 0.
    """

    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | None


def decompose(details: QuantizationDetails, precision: DataPrecision, update_precisions: bool = True) -> Decomposition:
    """Split the output interval over [precision.min, precision.max].

    Constants have the shape of ``output_low``. A channel whose output interval is a point keeps it as it is. The zero
    point is not rounded here. Source: the native ``NetworkHelper::decomposeFakeQuantize``.
    """
    low, high = details.output_low, details.output_high
    if low.shape != high.shape:
        low, high = np.broadcast_arrays(low, high)
    wide = np.float64 if details.levels > 65536 else np.float32
    minimum, maximum = wide(precision.min), wide(precision.max)
    point, width = high == low, high.astype(wide) - low.astype(wide)
    has_point = point.any()
    if has_point:
        width = np.where(point, wide(1), width)
    scale = (width / (maximum - minimum)).astype(np.float32)
    with np.errstate(over="ignore"):  # of an interval that is too wide for a scale
        shift = ((minimum * high - maximum * low) / width).astype(np.float32)
    new_low, new_high = np.array(minimum, np.float32), np.array(maximum, np.float32)
    if has_point:
        scale, shift = np.where(point, np.float32(1), scale), np.where(point, np.float32(0), shift)
        new_low, new_high = (_squeezed(np.where(point, high, value)) for value in (new_low, new_high))
    magnitude = np.minimum(np.maximum(np.abs(scale), np.float32(1e-32)), np.float32(LARGEST_SCALE))
    scale = np.where(scale < 0, -magnitude, magnitude)
    has_shift = precision.has_zero_point and bool(shift.any())
    return Decomposition(new_low, new_high, scale, shift + np.float32(0) if has_shift else None)


def _squeezed(values: np.ndarray) -> np.ndarray:
    """Equal ends need only one value."""
    return values.reshape(-1)[0].reshape(()) if (values == values.flat[0]).all() else values


def quantized_values(
    values: np.ndarray, details: QuantizationDetails, parts: Decomposition, precision: str
) -> np.ndarray:
    """The integers that a constant becomes, in numpy's type for ``precision``."""
    quantized = fake_quantize(values, details.input_low, details.input_high, parts.low, parts.high, details.levels)
    return np.rint(quantized).astype(NUMPY[precision])
