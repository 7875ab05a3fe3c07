"""Quantize, Dequantize and Requantize (Power, in SNPS-Caffe's table)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference import requantization as rq
from ovlpt.reference.methods import TFLITE, TORCH, cell
from ovlpt.reference.quantization import Quantization
from ovlpt.reference.rounding import multiply_add, round_half_away
from ovlpt.trace import InputError

ONE = np.float32(1)


def quantize(x: ArrayLike, output: Quantization, method: str = "tflite") -> np.ndarray:
    """float32 of any shape → integers of ``output``, per tensor or per channel.

    Raises `InputError` for a method that has no such operator, or a precision that the framework has not.
    """
    x = np.asarray(x, np.float32)
    kernel = cell("Quantize", QUANTIZE, method)
    _check_precision("Quantize", method, output)
    if output.per_channel and kernel is _quantize_by_reciprocal:
        kernel = _quantize_away  # TFLite has one per-channel kernel, the reference one
    scale, zero_point = output.aligned(x.ndim)
    with np.errstate(over="ignore", invalid="ignore"):
        return output.store(kernel(x, scale, zero_point))


def dequantize(q: ArrayLike, input: Quantization, method: str = "tflite") -> np.ndarray:
    """Integers of ``input`` → float32 of the same shape, per tensor or per channel.

    Raises `InputError` for a method that has no such operator, or a precision that the framework has not.
    """
    kernel = cell("Dequantize", DEQUANTIZE, method)
    _check_precision("Dequantize", method, input)
    if input.per_channel and kernel is _dequantize_expanded:
        kernel = _dequantize
    return kernel(np.asarray(q), input)


def requantize(q: ArrayLike, input: Quantization, output: Quantization, method: str = "tflite") -> np.ndarray:
    """Integers of ``input`` → integers of ``output``, both per tensor, without floats where the framework
    does so.

    Raises `InputError` for a method that has no such operator.
    """
    kernel = cell("Requantize", REQUANTIZE, method)
    if input.per_channel or output.per_channel:
        raise InputError("Requantize takes one scale per tensor: give numbers as scales.")
    return kernel(np.asarray(q), input, output)


def _quantize_away(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """round_half_away(x / scale) + zero_point"""
    return round_half_away(x / scale) + zero_point


def _quantize_by_reciprocal(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """rint(x * f32(1 / scale)) + zero_point"""
    return np.rint(x * (ONE / scale)) + zero_point


def _quantize_even(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """rint(x / scale) + zero_point"""
    return np.rint(x / scale) + zero_point


def _quantize_fused(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """rint(fma(x, f32(1 / scale), zero_point))"""
    return np.rint(multiply_add(x, ONE / scale, zero_point))


def _dequantize(q: np.ndarray, input: Quantization) -> np.ndarray:
    """f32(q - zero_point) * scale"""
    return input.centered(q).astype(np.float32) * input.aligned(q.ndim)[0]


def _dequantize_expanded(q: np.ndarray, input: Quantization) -> np.ndarray:
    """f32(q) * scale + f32(-zero_point * scale)"""
    if input.precision == "i16":
        return _dequantize(q, input)
    scale, zero_point = input.aligned(q.ndim)
    return q.astype(np.float32) * scale + (-zero_point).astype(np.float32) * scale


def _requantize(rule: rq.Rule) -> Callable[[np.ndarray, Quantization, Quantization], np.ndarray]:
    def kernel(q: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
        return rule(input.centered(q), input.scale, ONE, output)

    kernel.__doc__ = (rule.__doc__ or "").partition(":")[0]
    return kernel


def _requantize_8_bits(q: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """(q - zero_point) * rint(256 m) >> 8, ties up; a ratio outside [2^-8, 2^7] as tflite-optimized"""
    ratio = input.scale / output.scale
    if not 2**-8 <= ratio <= 2**7 or "i16" in (input.precision, output.precision):
        return rq.d2_up(input.centered(q), input.scale, ONE, output)
    multiplier = np.rint(np.float32(256) * ratio).astype(np.int64)
    return output.store(rq.rounding_shift_up(input.centered(q) * multiplier, 8) + output.zero_point)


def _through_float(method: str) -> Callable[[np.ndarray, Quantization, Quantization], np.ndarray]:
    def kernel(q: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
        return quantize(dequantize(q, input, method), output, method)

    kernel.__doc__ = "~"
    return kernel


def _check_precision(operator: str, method: str, quantization: Quantization) -> None:
    allowed = PRECISIONS.get(method.partition("-")[0], ("u8", "i8"))
    if quantization.precision not in allowed:
        raise InputError(
            f"{operator} with the method {method} has no {quantization.precision}: use {' or '.join(allowed)}."
        )
    if quantization.per_channel and method in ("caffe2", "tflite-2.5"):
        raise InputError(f"{operator} with the method {method} has no scale per channel: use one per tensor.")


PRECISIONS = {"tflite": ("u8", "i8", "i16"), "onnx": ("u8", "i8", "i16"), "caffe2": ("u8",)}

QUANTIZE = {
    "tflite-reference": _quantize_away,
    **dict.fromkeys(("tflite-optimized", "tflite-2.5", "tflite-xnnpack"), _quantize_by_reciprocal),
    **dict.fromkeys(("onnx", "caffe2"), _quantize_even),
    **dict.fromkeys(TORCH, _quantize_fused),
}
DEQUANTIZE = {
    **dict.fromkeys((*TFLITE, "onnx", "caffe2", "openvino", *TORCH), _dequantize),
    **dict.fromkeys(("tflite-optimized", "tflite-2.5"), _dequantize_expanded),
}
REQUANTIZE = {
    "tflite-reference": _requantize(rq.d2),
    **dict.fromkeys(("tflite-optimized", "tflite-2.5"), _requantize(rq.d2_up)),
    "tflite-xnnpack": _requantize_8_bits,
    **{name: _through_float(name) for name in ("onnx", "caffe2", *TORCH)},
}
