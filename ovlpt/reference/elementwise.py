"""EltwiseSum and BiasAdd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference import requantization as rq
from ovlpt.reference.affine import dequantize
from ovlpt.reference.methods import cell
from ovlpt.reference.quantization import Quantization, require_activations
from ovlpt.reference.rounding import multiply_add, round_half_even
from ovlpt.reference.weighted import fake_quantized

Shift = Callable[[ArrayLike, ArrayLike], np.ndarray]
Sum = Callable[[np.ndarray, Quantization, np.ndarray, Quantization, Quantization], np.ndarray]


def eltwise_sum(
    a: ArrayLike,
    a_quantization: Quantization,
    b: ArrayLike,
    b_quantization: Quantization,
    output: Quantization,
    *,
    method: str = "tflite",
) -> np.ndarray:
    """``a + b`` of integers, broadcast by numpy's rules, as integers of ``output``; all per tensor.

    Source: TFLite ADD, ONNX Runtime QLinearAdd, Caffe2 Int8Add, PyTorch quantized::add. SNPS-Caffe uses
    Caffe2's form for ONNX; that holds on ARM, on x86 (here) 1 output in 80 differs.
    OpenVINO's CPU plugin rewrites the sum before it fuses it: 2 of 1 048 576 outputs differ there, by one.
    Raises `InputError` for a method that has no such operator.
    """
    kernel = cell("EltwiseSum", ELTWISE_SUM, method)
    require_activations("EltwiseSum", method, a_quantization, b_quantization, output)
    return kernel(np.asarray(a), a_quantization, np.asarray(b), b_quantization, output)


def bias_add(
    x: ArrayLike,
    x_quantization: Quantization,
    bias: ArrayLike,
    bias_quantization: Quantization,
    output: Quantization,
    *,
    method: str = "onnx",
) -> np.ndarray:
    """``x`` [N, C, ...] plus a quantized ``bias`` [C]: only ONNX has it as an operator (QLinearAdd,
    broadcast).

    The sums round as in `eltwise_sum` (ties to even); SNPS-Caffe rounds them away from zero, which is not
    what ONNX Runtime does. Raises `InputError` for a method that has no such operator.
    """
    kernel, x = cell("BiasAdd", BIAS_ADD, method), np.asarray(x)
    require_activations("BiasAdd", method, x_quantization, bias_quantization, output)
    column = np.asarray(bias).reshape(-1, *(1,) * (x.ndim - 2))
    return kernel(x, x_quantization, column, bias_quantization, output)


def _sum_three_multipliers(shift: Shift) -> Sum:
    def kernel(a: np.ndarray, aq: Quantization, b: np.ndarray, bq: Quantization, output: Quantization) -> np.ndarray:
        double, total = 2 * max(float(aq.scale), float(bq.scale)), np.zeros((), np.int64)
        for x, q in ((a, aq), (b, bq)):
            quantized, exponent = rq.quantize_multiplier(float(q.scale) / double)
            high = rq.saturating_rounding_doubling_high_mul(q.centered(x) << 20, quantized)
            total = total + shift(high, -exponent)
        last = rq.quantize_multiplier(double / (2.0**20 * float(output.scale)))
        return output.store(rq.two_steps(total, *last) + output.zero_point)

    rounding = "" if shift is rq.rounding_divide_by_pot else ", the second step of the inputs cut off"
    kernel.__doc__ = f"three D2: both inputs << 20 to the scale 2 max, then 2 max / 2^20 to the output's{rounding}"
    return kernel


def _sum_in_bits(bits: int, divide: Shift) -> Sum:
    def kernel(a: np.ndarray, aq: Quantization, b: np.ndarray, bq: Quantization, output: Quantization) -> np.ndarray:
        ratios = aq.scale / output.scale, bq.scale / output.scale
        if bits == 20 and not all(2**-10 <= ratio < 2**8 for ratio in ratios):
            return ELTWISE_SUM["tflite-optimized"](a, aq, b, bq, output)
        shift = bits - (int(np.frexp(max(ratios))[1]) - 1)
        factors = [round_half_even(ratio * np.float32(2.0**shift)).astype(np.int64) for ratio in ratios]
        total = aq.centered(a) * factors[0] + bq.centered(b) * factors[1]
        return output.store(divide(total, shift) + output.zero_point)

    kernel.__doc__ = f"{bits + 1}-bit multipliers, one shift, ties " + (
        "away" if divide is rq.rounding_divide_by_pot else "up"
    )
    return kernel


def _sum_fused(a: np.ndarray, aq: Quantization, b: np.ndarray, bq: Quantization, output: Quantization) -> np.ndarray:
    """rint(fma(a, ra, fma(b, rb, zero_point - fma(ra, za, rb * zb)))), ra = f32(a_scale / output_scale)"""
    ra, rb = aq.scale / output.scale, bq.scale / output.scale
    f32 = np.float32
    start = f32(output.zero_point) - multiply_add(ra, aq.zero_point, rb * f32(bq.zero_point))
    return output.store(round_half_even(multiply_add(a, ra, multiply_add(b, rb, start))))


def _sum_dequantized(
    a: np.ndarray, aq: Quantization, b: np.ndarray, bq: Quantization, output: Quantization
) -> np.ndarray:
    """fma dequantize, add, rint(x * f32(1 / scale)) + zero_point"""
    f32 = np.float32
    total = sum(multiply_add(x, q.scale, f32(-q.zero_point) * q.scale) for x, q in ((a, aq), (b, bq)))
    return output.store(round_half_even(total * (f32(1) / output.scale)) + output.zero_point)


def _sum_fake_quantized(
    a: np.ndarray, aq: Quantization, b: np.ndarray, bq: Quantization, output: Quantization
) -> np.ndarray:
    """~, stored as FQ"""
    total = dequantize(a, aq, "openvino") + dequantize(b, bq, "openvino")
    return fake_quantized(total, 1, output)


ELTWISE_SUM = {
    "tflite-reference": _sum_three_multipliers(rq.rounding_divide_by_pot),
    **dict.fromkeys(("tflite-optimized", "tflite-2.5"), _sum_three_multipliers(np.right_shift)),
    "tflite-xnnpack": _sum_in_bits(20, rq.rounding_shift_up),
    "onnx": _sum_fused,
    **dict.fromkeys(("caffe2", "torch-qnnpack"), _sum_in_bits(21, rq.rounding_divide_by_pot)),
    **dict.fromkeys(("torch-fbgemm", "torch-x86", "torch-onednn"), _sum_dequantized),
    "openvino": _sum_fake_quantized,
}
BIAS_ADD = {"onnx": _sum_fused}
