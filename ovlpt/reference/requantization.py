"""Requantization: an int32 accumulator of scale ``input_scale * weight_scale`` → integers of ``output``.

A rule is a *multiplier*, ``m = input_scale * weight_scale / output_scale`` in some precision, and a
*rounding* of ``accumulator * m``. The names follow SNPS-Caffe's document "Quantized models in different
frameworks": a letter for the precision of the multiplier, a digit for the number of roundings.

========  ==========================================  ========================================================
rule      multiplier                                  rounding
========  ==========================================  ========================================================
D2        double                                      two steps, ties away from zero in the second
F2        float product, double quotient              the same
FF2       float product, float quotient               the same
D2u, F2u  double / float product                      two steps, both upward
D1, F1    double / float product                      one step, upward
R         double                                      one multiplication in double, ties away from zero
FF        float product, float quotient               one float multiplication, ties to even, zero point after
FFz       float product, float quotient               the same, zero point added before rounding
========  ==========================================  ========================================================

The document writes "F" for two things: TFLite's float product (F2 here) and Caffe2's (FF2 here).

Every rule is ``rule(accumulator, input_scale, weight_scale, output)``: ``accumulator`` integers of any shape
within int32, ``input_scale`` a float32 number, ``weight_scale`` float32 that broadcasts against the
accumulator, ``output`` a per-tensor `Quantization`; the result has the accumulator's shape and the output's
type, saturated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference.quantization import Quantization
from ovlpt.reference.rounding import round_half_away

INT32 = np.iinfo(np.int32)


def double_multiplier(input_scale: ArrayLike, weight_scale: ArrayLike, output_scale: ArrayLike) -> np.ndarray:
    """D: ``f64(input) * f64(weight) / f64(output)``, in float64.

    Source: TFLite, per-channel and i8 convolutions.
    """
    return _f64(input_scale) * _f64(weight_scale) / _f64(output_scale)


def float_product_multiplier(input_scale: ArrayLike, weight_scale: ArrayLike, output_scale: ArrayLike) -> np.ndarray:
    """F: ``f64(f32(input * weight)) / f64(output)``, in float64. Source: TFLite's per-tensor u8 helper."""
    return _f64(_f32(input_scale) * _f32(weight_scale)) / _f64(output_scale)


def float_multiplier(input_scale: ArrayLike, weight_scale: ArrayLike, output_scale: ArrayLike) -> np.ndarray:
    """FF: ``f32(f32(input * weight) / output)``, in float32. Source: Caffe2, ONNX Runtime, XNNPACK."""
    return (_f32(input_scale) * _f32(weight_scale)) / _f32(output_scale)


def quantize_multiplier(multiplier: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """A real multiplier as ``quantized * 2**(shift - 31)`` with ``quantized`` in [2^30, 2^31); both int64.

    ``(fraction, shift) = frexp(multiplier); quantized = round_half_away(fraction * 2^31)``. A fraction that
    rounds up to 2^31 is renormalised to (2^30, shift + 1); a shift below -31 gives (0, 0).
    Source: TFLite ``QuantizeMultiplier``. SNPS-Caffe's document prints ``1<<31``, which overflows an int, and
    lacks the renormalisation; and its "shift" is the exponent of frexp, so the right shift is ``-shift``.
    """
    fraction, shift = np.frexp(np.asarray(multiplier, np.float64))
    quantized, shift = round_half_away(fraction * 2.0**31).astype(np.int64), shift.astype(np.int64)
    overflow = quantized == 1 << 31
    quantized, shift = np.where(overflow, 1 << 30, quantized), shift + overflow
    vanishes = shift < -31
    return np.where(vanishes, 0, quantized), np.where(vanishes, 0, shift)


def saturating_rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """``round(a * b / 2^31)`` of int32 numbers, ties upward; (-2^31)·(-2^31) saturates to 2^31 - 1. int64.

    Source: gemmlowp ``SaturatingRoundingDoublingHighMul``. It adds ``2^30`` or ``1 - 2^30`` by the product's
    sign and divides with truncation, which is ``floor((a * b + 2^30) / 2^31)`` for both signs.
    """
    high = (np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << 30)) >> 31
    return np.minimum(high, INT32.max)


def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> np.ndarray:
    """``x / 2^exponent`` of integers, ties away from zero; int64.

    Source: gemmlowp ``RoundingDivideByPOT``.
    """
    x, exponent = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    half = (np.int64(1) << exponent) >> 1
    return (x + half - ((x < 0) & (half > 0))) >> exponent


def rounding_shift_up(x: ArrayLike, exponent: ArrayLike) -> np.ndarray:
    """``x / 2^exponent`` of integers, ties toward positive infinity; int64. Source: NEON ``SRSHL``."""
    x, exponent = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    return (x + ((np.int64(1) << exponent) >> 1)) >> exponent


def two_steps(x: ArrayLike, quantized: ArrayLike, shift: ArrayLike) -> np.ndarray:
    """``RoundingDivideByPOT(SaturatingRoundingDoublingHighMul(x << max(shift, 0), quantized), max(-shift,
    0))``; int64.

    The left shift comes before the multiplication and wraps in int32.
    Source: TFLite ``MultiplyByQuantizedMultiplier``, the reference kernels.
    """
    high = saturating_rounding_doubling_high_mul(_shifted_left(x, shift), quantized)
    return rounding_divide_by_pot(high, np.maximum(-np.asarray(shift), 0))


def two_steps_up(x: ArrayLike, quantized: ArrayLike, shift: ArrayLike) -> np.ndarray:
    """`two_steps` with ties upward in the second step too; int64.

    Source: NEON ``SQRDMULH`` then ``SRSHL``; ruy's AVX kernels and TFLite's depthwise kernels round so on x86
    too.
    """
    high = saturating_rounding_doubling_high_mul(_shifted_left(x, shift), quantized)
    return rounding_shift_up(high, np.maximum(-np.asarray(shift), 0))


def one_step(x: ArrayLike, quantized: ArrayLike, shift: ArrayLike) -> np.ndarray:
    """``(x * quantized + 2^(30 - shift)) >> (31 - shift)``: one rounding, ties upward; int64. ``shift`` is at
    most 30.

    Source: ruy's portable path. In SNPS-Caffe's terms (its shift is ``-shift`` here) this is
    ``(scaled_acc + (1 << (31 + shift - 1))) >> (31 + shift)``; it prints the last shift as ``31 + shift -
    1``, which is twice the value, and loses a parenthesis.
    """
    return rounding_shift_up(np.asarray(x, np.int64) * np.asarray(quantized, np.int64), 31 - np.asarray(shift))


def d2(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """D2: ``two_steps`` of the double multiplier, ``+ zero_point``.

    Source: TFLite's reference kernels for i8.
    """
    return _fixed_point(two_steps, double_multiplier, accumulator, input_scale, weight_scale, output)


def f2(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """F2: ``two_steps`` of the float-product multiplier, ``+ zero_point``. Source: TFLite's u8 kernels.

    SNPS-Caffe's document found "pointwise, per tensor = F2" by brute force: it is the u8 path, pointwise or
    not.
    """
    return _fixed_point(two_steps, float_product_multiplier, accumulator, input_scale, weight_scale, output)


def ff2(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """FF2: ``two_steps`` of the float multiplier, ``+ zero_point``. Source: Caffe2 (QNNPACK), where m < 1."""
    return _fixed_point(two_steps, float_multiplier, accumulator, input_scale, weight_scale, output)


def d2_up(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """D2u: ``two_steps_up`` of the double multiplier, ``+ zero_point``.

    Source: TFLite's optimized kernels for i8.
    """
    return _fixed_point(two_steps_up, double_multiplier, accumulator, input_scale, weight_scale, output)


def f2_up(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """F2u: ``two_steps_up`` of the float-product multiplier, ``+ zero_point``.

    Source: TFLite's optimized u8 kernels.
    """
    return _fixed_point(two_steps_up, float_product_multiplier, accumulator, input_scale, weight_scale, output)


def d1(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """D1: ``one_step`` of the double multiplier, ``+ zero_point``.

    Source: TensorFlow 2.5's i8 convolutions.
    """
    return _fixed_point(one_step, double_multiplier, accumulator, input_scale, weight_scale, output)


def f1(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """F1: ``one_step`` of the float-product multiplier, ``+ zero_point``.

    Source: TensorFlow 2.5's i8 FullyConnected.
    """
    return _fixed_point(one_step, float_product_multiplier, accumulator, input_scale, weight_scale, output)


def r(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """R: ``round_half_away(f64(accumulator) * D) + zero_point``.

    Source: TFLite's reference FullyConnected since 2.20.
    """
    real = np.asarray(accumulator, np.float64) * double_multiplier(input_scale, weight_scale, output.scale)
    return output.store(round_half_away(real) + output.zero_point)


def ff(accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization) -> np.ndarray:
    """FF: ``rint(clip(f32(f32(accumulator) * m), low - zero_point, high - zero_point)) + zero_point``, ``m``
    = FF.

    Above 2^24 the conversion of the accumulator to float rounds too (to even), and so does this function.
    Source: ONNX Runtime ``MlasRequantizeOutput``; XNNPACK's fp32 requantization is the same.
    """
    real = np.asarray(accumulator).astype(np.float32) * float_multiplier(input_scale, weight_scale, output.scale)
    return output.store(np.rint(_clipped(real, output)) + output.zero_point)


def ff_zero_point_inside(
    accumulator: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, output: Quantization
) -> np.ndarray:
    """FFz: ``rint(f32(f32(f32(accumulator) * m) + f32(zero_point)))``, ``m`` = FF.

    Differs from FF only on ties, where the zero point is odd. Source: oneDNN, as PyTorch's engines onednn and
    x86 use it.
    """
    real = np.asarray(accumulator).astype(np.float32) * float_multiplier(input_scale, weight_scale, output.scale)
    return output.store(np.rint(real + output.zero_point.astype(np.float32)))


Rule = Callable[[ArrayLike, ArrayLike, ArrayLike, Quantization], np.ndarray]
RULES: dict[str, Rule] = {
    "D2": d2, "F2": f2, "FF2": ff2, "D2u": d2_up, "F2u": f2_up, "D1": d1, "F1": f1, "R": r, "FF": ff,
    "FFz": ff_zero_point_inside,
}  # fmt: skip


def _f64(value: ArrayLike) -> np.ndarray:
    """A float32 value in float64, arrays included: numpy 1 computes a float64 scalar and a float32 array in float32."""
    return _f32(value).astype(np.float64)


def _f32(value: ArrayLike) -> np.ndarray:
    return np.asarray(value, np.float32)


def _clipped(real: np.ndarray, output: Quantization) -> np.ndarray:
    return np.clip(real, np.float32(output.low - output.zero_point), np.float32(output.high - output.zero_point))


def _shifted_left(x: ArrayLike, shift: ArrayLike) -> np.ndarray:
    x, left = np.asarray(x, np.int64), np.maximum(shift, 0)
    return (x << left).astype(np.int32).astype(np.int64) if np.any(left) else x


def _fixed_point(
    rounding: Callable[..., np.ndarray],
    multiplier: Callable[..., np.ndarray],
    accumulator: ArrayLike,
    input_scale: ArrayLike,
    weight_scale: ArrayLike,
    output: Quantization,
) -> np.ndarray:
    quantized, shift = quantize_multiplier(multiplier(input_scale, weight_scale, output.scale))
    return output.store(rounding(accumulator, quantized, shift) + output.zero_point)
