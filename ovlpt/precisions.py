"""Element types as strings, quantization levels, and the precision that an interval asks for.

Types are strings ("u8", "i8" …) because OpenVINO's ``Type`` objects of equal value may differ in hash.
Source: OpenVINO's `DataPrecision` and `LayerTransformation::getPrecisionDetails`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

INT8 = ("u8", "i8")
INT16 = ("u16", "i16")
INT32 = ("u32", "i32")
INT4 = ("u4", "i4")
FLOAT8 = ("f8e4m3", "f8e5m2")
# What weights alone are stored in, to be real numbers before they are multiplied
COMPRESSED = frozenset((*INT4, *FLOAT8, "u1", "u2", "u3", "u6", "nf4", "f4e2m1"))
LOW = frozenset(INT8 + INT16 + INT32)  # what a decomposed FakeQuantize may produce
REAL = frozenset(("f16", "bf16", "f32", "f64"))

LEVELS = {"u8": (255, 256), "i8": (255, 256), "u16": (65535, 65536), "i16": (65535, 65536),
          "u32": (2**32 - 1, 2**32), "i32": (2**32 - 1, 2**32), "u4": (15, 16), "i4": (15, 16)}  # fmt: skip
ALL_LEVELS = frozenset((15, 16, 255, 256, 65535, 65536, 2**32 - 1, 2**32))

NUMPY: dict[str, Any] = {"u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32, "i32": np.int32,
         "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64}  # fmt: skip

_ZERO = 1e-6  # an interval end nearer to zero counts as zero
_ASYMMETRY = 0.002  # relative deviation of low/high from the symmetric ratio that still counts as symmetric

_REAL_LIMIT = {"f16": 1e15, "bf16": 3.38953e38, "f32": float(np.finfo(np.float32).max)}


def is_low(precision: str) -> bool:
    """Whether LPT calls this type low precision."""
    return precision in LOW


def fits(precision: str, levels: int) -> bool:
    """Whether ``levels`` steps are what ``precision`` stores."""
    return levels in LEVELS.get(precision, ())


def min_value(precision: str, levels: int) -> float:
    """Smallest integer that a tensor of ``precision`` quantized to ``levels`` holds."""
    if precision in _REAL_LIMIT:
        return -_REAL_LIMIT[precision]
    if precision.startswith("u"):
        return 0.0
    if precision == "i4":
        return -8.0
    if precision == "i8" and levels in (15, 16):
        return -float(levels // 2)
    bits = int(precision[1:])
    return -float(2 ** (bits - 1)) + (1.0 if levels % 2 else 0.0)


def max_value(precision: str, levels: int) -> float:
    """Largest integer that a tensor of ``precision`` quantized to ``levels`` holds."""
    if precision in _REAL_LIMIT:
        return _REAL_LIMIT[precision]
    if levels == 16 and precision in INT8:
        return 15.0 if precision == "u8" else 7.0
    bits = int(precision[1:])
    return float(2**bits - 1) if precision.startswith("u") else float(2 ** (bits - 1) - 1)


@dataclass(frozen=True, slots=True)
class DataPrecision:
    """Element type of a quantized tensor, the integers that it holds, and whether it needs a zero point."""

    precision: str
    min: float
    max: float
    has_zero_point: bool

    @classmethod
    def of(cls, precision: str, levels: int, has_zero_point: bool) -> DataPrecision:
        return cls(precision, min_value(precision, levels), max_value(precision, levels), has_zero_point)

    @classmethod
    def one_each(cls, precision: str, levels: int, has_zero_point: bool) -> DataPrecision:
        """An integer for each level, where `of` may spread 255 levels over the 256 values of u8."""
        low = min_value(precision, levels)
        return cls(precision, low, low + levels - 1, has_zero_point)


@dataclass(frozen=True, slots=True)
class PrecisionDetails:
    """The type that an output interval asks for (None: it is not determined) and whether it has a zero point."""

    precision: str | None
    has_zero_point: bool


def precision_details(
    levels: int, output_low: Sequence[float] | np.ndarray, output_high: Sequence[float] | np.ndarray
) -> PrecisionDetails:
    """The precision that fits the output intervals of a FakeQuantize, one interval per channel.

    Symmetric intervals ask for a signed type, intervals that start at zero for an unsigned one; anything else needs a
    zero point. Intervals of width zero around zero (dead channels) are ignored.
    """
    low, high = (np.asarray(end, np.float32).ravel() for end in (output_low, output_high))
    if low.size == high.size == 1:
        signed, unsigned, has_zero_point = _signs_of_one(levels, low[0], high[0])
    else:
        signed, unsigned, has_zero_point = _signs(levels, *np.broadcast_arrays(low, high))
    if has_zero_point or signed == unsigned:
        return PrecisionDetails(None, has_zero_point)
    types = {16: INT8, 255: INT8, 256: INT8, 65535: INT16, 65536: INT16, 2**32 - 1: INT32, 2**32: INT32}.get(levels)
    return PrecisionDetails(types[signed] if types else None, False)


def _expected_ratio(levels: int) -> np.float32:
    """Of a symmetric interval's ends."""
    return np.float32(-levels / (levels - 2)) if levels in (16, 256, 65536, 2**32) else np.float32(-1.0)


def _signs(levels: int, low: np.ndarray, high: np.ndarray) -> tuple[bool, bool, bool]:
    """Whether the intervals suit a signed type, an unsigned one, and whether they need a zero point."""
    magnitude = np.abs(low)
    starts_at_zero = magnitude < _ZERO
    alive = (magnitude >= _ZERO) | (np.abs(high) >= _ZERO)
    crosses = alive & ~starts_at_zero & (np.signbit(low) != np.signbit(high))
    one_sided = alive & ~crosses
    signed, unsigned = not one_sided.any(), not crosses.any()
    has_zero_point = bool((one_sided & ~starts_at_zero).any())
    if not unsigned and not has_zero_point:
        expected = _expected_ratio(levels)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = low / high
            deviation = np.abs((ratio - expected) / np.minimum(ratio, expected))
        has_zero_point = bool((crosses & ((high == 0) | (deviation > _ASYMMETRY))).any())
    if not alive.any():
        signed = bool((low < 0).any())
        unsigned = not signed
    return signed, unsigned, has_zero_point


def _signs_of_one(levels: int, low: np.float32, high: np.float32) -> tuple[bool, bool, bool]:
    """`_signs` of one interval: most FakeQuantize have no other, and arrays of one value take ten times as long."""
    zero = np.float32(_ZERO)
    starts_at_zero = abs(low) < zero
    if not (abs(low) >= zero or abs(high) >= zero):
        return bool(low < 0), not low < 0, False
    crosses = not starts_at_zero and bool(np.signbit(low) != np.signbit(high))
    has_zero_point = not crosses and not starts_at_zero
    if crosses:
        if high == 0:
            return True, False, True
        expected = _expected_ratio(levels)
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = low / high
            has_zero_point = bool(abs((ratio - expected) / np.minimum(ratio, expected)) > np.float32(_ASYMMETRY))
    return crosses, not crosses, has_zero_point


@dataclass(frozen=True, slots=True)
class AlignedLevels:
    """One member of a group of FakeQuantize operations that share a scale: its output interval, levels, and the
    scale.
    """

    scale: float
    zero_point: float
    output_low: float
    output_high: float
    levels: int


def aligned_levels(
    data_min: float, data_max: float, combined_low: float, combined_high: float, low: float, high: float
) -> AlignedLevels:
    """Express [low, high] on the grid that puts [combined_low, combined_high] onto [data_min, data_max].

    In float32, rounded half away from zero, as the native ``NetworkHelper::calculateLevels``.
    """
    f = np.float32
    data_min, data_max, combined_low, combined_high = f(data_min), f(data_max), f(combined_low), f(combined_high)
    if combined_high == combined_low:
        return AlignedLevels(1.0, 0.0, float(combined_low), float(combined_high), 1)
    inverse = (data_max - data_min) / (combined_high - combined_low)
    scale = (combined_high - combined_low) / (data_max - data_min)
    shift = combined_low - data_min * scale
    zero_point = round_half_away(-shift * inverse)
    output_low, output_high = (f(low) - shift) * inverse, (f(high) - shift) * inverse
    levels = int(abs(round_half_away(output_high) - round_half_away(output_low)) + 1)
    return AlignedLevels(float(scale), float(zero_point), float(output_low), float(output_high), levels)


def round_half_away(values: Any) -> np.ndarray:
    """Round to integers, ties away from zero."""
    wide = np.asarray(values, np.float64)  # |value| + 0.5 must not round
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide)
