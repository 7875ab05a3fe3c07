"""LeakyReLU, ReLU, Sigmoid and Softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference import requantization as rq
from ovlpt.reference.affine import dequantize, quantize
from ovlpt.reference.methods import TFLITE, cell, resolve
from ovlpt.reference.quantization import Quantization, require_activations
from ovlpt.reference.rounding import round_half_away
from ovlpt.trace import InputError

Unary = Callable[[np.ndarray, Quantization, Quantization], np.ndarray]
F32 = np.float32


def leaky_relu(
    x: ArrayLike, input: Quantization, output: Quantization, alpha: float, *, method: str = "tflite"
) -> np.ndarray:
    """Negative values times ``alpha`` (float32), the others as they are; any shape, per tensor.

    Source: TFLite LEAKY_RELU, ONNX Runtime QLinearLeakyRelu, Caffe2 Int8LeakyRelu.
    Raises `InputError` for a method that has no such operator.
    """
    kernel = cell("LeakyReLU", LEAKY_RELU, method)
    require_activations("LeakyReLU", method, input, output)
    return kernel(np.asarray(x), input, output, F32(alpha))


def relu(
    x: ArrayLike,
    input: Quantization,
    output: Quantization,
    *,
    upper: float | None = None,
    method: str = "tflite",
) -> np.ndarray:
    """``max(x, 0)``, and ``min(…, upper)`` where given (6 for ReLU6); any shape, per tensor.

    Source: TFLite RELU and RELU6, ONNX DequantizeLinear → Relu → QuantizeLinear, Caffe2 Int8Relu.
    Raises `InputError` where Caffe2 is asked to change the quantization or for an upper bound, which it
    cannot.
    """
    kernel = cell("ReLU", RELU, method)
    require_activations("ReLU", method, input, output)
    return kernel(np.asarray(x), input, output, upper)


def sigmoid(x: ArrayLike, input: Quantization, output: Quantization, *, method: str = "tflite") -> np.ndarray:
    """``1 / (1 + exp(-x))`` in float32 between dequantize and quantize; any shape, per tensor.

    Ties do not occur, so the frameworks agree. TFLite and Caffe2 require an output scale of 1/256 and the
    least integer as zero point. ONNX Runtime approximates the function: 1 of 131 072 outputs differs, by one.

    Source: TFLite LOGISTIC, ONNX Runtime QLinearSigmoid, Caffe2 Int8Sigmoid.
    Raises `InputError` for a method that has no such operator, or another output quantization.
    """
    name = resolve(method)
    cell("Sigmoid", SIGMOID, name)
    require_activations("Sigmoid", method, input, output)
    if name != "onnx":
        _check_256("Sigmoid", output)
    return SIGMOID[name](F32(1) / (F32(1) + _exp(-dequantize(x, input, "onnx"))), output)


def softmax(
    x: ArrayLike, input: Quantization, output: Quantization, *, axis: int = -1, method: str = "tflite"
) -> np.ndarray:
    """Softmax along ``axis``; any shape, per tensor. The output scale is 1/256, the zero point the least
    integer.

    Source: TFLite SOFTMAX and ONNX Runtime QLinearSoftmax (a float table of exponentials), Caffe2 Int8Softmax
    (an integer table). How TFLite's reference kernel adds is not known; with an exact sum 1 of 4 129 200
    outputs differs, by one.
    Raises `InputError` for a method that has no such operator, or another output quantization.
    """
    kernel = cell("Softmax", SOFTMAX, method)
    require_activations("Softmax", method, input, output)
    _check_256("Softmax", output)
    x = np.moveaxis(np.asarray(x), axis, -1)
    return np.moveaxis(kernel(x, input, output), -1, axis)


def _leaky_two_steps(x: np.ndarray, input: Quantization, output: Quantization, alpha: np.float32) -> np.ndarray:
    """D2 by input / output, or by input * alpha / output below zero"""
    ratio = rq.double_multiplier(input.scale, np.where(input.centered(x) >= 0, F32(1), alpha), output.scale)
    return output.store(rq.two_steps(input.centered(x), *rq.quantize_multiplier(ratio)) + output.zero_point)


def _leaky_8_bits(x: np.ndarray, input: Quantization, output: Quantization, alpha: np.float32) -> np.ndarray:
    """value * rint(256 ratio) >> 8, ties up; ratios outside XNNPACK's range as tflite-optimized"""
    ratio = input.scale / output.scale
    ratios = np.array([ratio, ratio * alpha], F32)
    if not (2**-8 <= ratios[0] <= 2**7 and 2**-8 <= abs(ratios[1]) <= 2**7):
        return _leaky_two_steps(x, input, output, alpha)
    factors = np.rint(F32(256) * ratios).astype(np.int64)
    value = input.centered(x)
    scaled = rq.rounding_shift_up(value * np.where(value > 0, *factors), 8)
    return output.store(scaled + output.zero_point)


def _leaky_float(x: np.ndarray, input: Quantization, output: Quantization, alpha: np.float32) -> np.ndarray:
    """~, rounded to even"""
    real = dequantize(x, input, "onnx")
    return quantize(np.where(real >= 0, real, real * alpha), output, "onnx")


def _leaky_ratio(x: np.ndarray, input: Quantization, output: Quantization, alpha: np.float32) -> np.ndarray:
    """rint(f32(value) * f32(input / output) * alpha) + zero_point"""
    value = input.centered(x).astype(F32) * (input.scale / output.scale)
    value = np.where(value < 0, value * alpha, value)
    return output.store(np.rint(value) + output.zero_point)


def _relu_two_steps(x: np.ndarray, input: Quantization, output: Quantization, upper: float | None) -> np.ndarray:
    """D2 (the same as ~ rounded away), clamped to [zero_point, zero_point + round(upper / scale)]"""
    scaled = rq.d2(input.centered(x), input.scale, F32(1), output)
    bound = output.high if upper is None else output.zero_point + int(round_half_away(F32(upper) / output.scale))
    return np.clip(scaled, output.zero_point, min(bound, output.high)).astype(output.dtype)


def _relu_float(x: np.ndarray, input: Quantization, output: Quantization, upper: float | None) -> np.ndarray:
    """~, rounded to even"""
    return quantize(np.clip(dequantize(x, input, "onnx"), 0, upper), output, "onnx")


def _relu_kept(x: np.ndarray, input: Quantization, output: Quantization, upper: float | None) -> np.ndarray:
    """max(x, zero_point)"""
    if upper is not None or not input.same_as(output):
        raise InputError(
            "Caffe2's Int8Relu has no upper bound and keeps the quantization: give equal input and output."
        )
    return np.maximum(x, output.zero_point).astype(output.dtype)


def _store_away(y: np.ndarray, output: Quantization) -> np.ndarray:
    """~, rounded away"""
    return quantize(y, output, "tflite-reference")


def _store_even(y: np.ndarray, output: Quantization) -> np.ndarray:
    """~, rounded to even"""
    return quantize(y, output, "onnx")


def _softmax_float(sum_type: type, store: Callable[[np.ndarray, Quantization], np.ndarray]) -> Unary:
    def kernel(x: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
        table = _exp(-input.scale * np.arange(256, dtype=F32))
        terms = table[x.max(axis=-1, keepdims=True).astype(np.int64) - x]
        # cumsum adds in order, as the runtimes do; sum would add in pairs
        total = terms.cumsum(axis=-1, dtype=sum_type)[..., -1:].astype(F32)
        return store(terms * (F32(1) / total) if store is _store_away else terms / total, output)

    where = "in order" if sum_type is F32 else "exact"
    kernel.__doc__ = f"float table of exp(-scale * i), {where} sum, {(store.__doc__ or '').removeprefix('~, ')}"
    return kernel


def _softmax_integer(x: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """integer table of rint(q exp(-scale * i)), (256 t + sum / 2) / sum"""
    unit = min((2.0**32 - 1) / x.shape[-1], 8388607.0)
    table = np.rint(unit * np.exp(-np.arange(256) * input.scale.astype(np.float64))).astype(np.int64)
    terms = table[x.max(axis=-1, keepdims=True).astype(np.int64) - x]
    total = terms.sum(axis=-1, keepdims=True)
    return output.store((terms * 256 + total // 2) // total + output.zero_point)


def _exp(x: np.ndarray) -> np.ndarray:
    """exp rounded once to float32, as a good libm has it; numpy's float32 exp is off by an ulp at times."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(x.astype(np.float64)).astype(F32)


def _check_256(operator: str, output: Quantization) -> None:
    if output.scale != F32(1 / 256) or output.zero_point != output.low:
        raise InputError(f"{operator} stores probabilities: give scale 1/256 and zero point {output.low}.")


LEAKY_RELU = {
    **dict.fromkeys(TFLITE, _leaky_two_steps),
    "tflite-xnnpack": _leaky_8_bits,
    "onnx": _leaky_float,
    "caffe2": _leaky_ratio,
}
RELU = {**dict.fromkeys(TFLITE, _relu_two_steps), "onnx": _relu_float, "caffe2": _relu_kept}
SIGMOID = {**dict.fromkeys(TFLITE, _store_away), **dict.fromkeys(("onnx", "caffe2"), _store_even)}
SOFTMAX = {
    **dict.fromkeys(TFLITE, _softmax_float(F32, _store_away)),
    "tflite-reference": _softmax_float(np.float64, _store_away),
    "onnx": _softmax_float(F32, _store_even),
    "caffe2": _softmax_integer,
}
