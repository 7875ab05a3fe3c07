"""AveragePool, Mean and MaxPool."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference import requantization as rq
from ovlpt.reference.accumulation import sliding_windows
from ovlpt.reference.affine import dequantize
from ovlpt.reference.methods import TFLITE, cell, resolve
from ovlpt.reference.quantization import Quantization, require_activations
from ovlpt.reference.rounding import multiply_add, round_half_away
from ovlpt.reference.weighted import fake_quantized
from ovlpt.trace import InputError


def average_pool(
    x: ArrayLike,
    input: Quantization,
    output: Quantization,
    kernel: Sequence[int],
    *,
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    exclude_pad: bool = True,
    method: str = "tflite",
) -> np.ndarray:
    """The mean of each window: [N, C, ...] → [N, C, ...] of ``output``'s precision, both per tensor.

    Padding is real zero; with ``exclude_pad`` the divisor counts the positions inside the input only, else
    the whole kernel. Lists have one number per spatial dimension.

    Source: TFLite AVERAGE_POOL_2D (all its kernel sets alike), ONNX Runtime QLinearAveragePool and
    QLinearGlobalAveragePool, Caffe2 Int8AveragePool, PyTorch avg_pool2d.
    ONNX Runtime sums the dequantized window row by row in float32; its global pool sums integers, see `mean`.
    Raises `InputError` where TFLite or PyTorch is asked to change the quantization (they cannot: see `mean`),
    where TFLite is asked to count padding, or for a method that has no such operator.
    """
    x = np.asarray(x)
    pool = cell("AveragePool", AVERAGE_POOL, method)
    require_activations("AveragePool", method, input, output)
    if pool in (_pool_truncated, _pool_real, _pool_inside) and not input.same_as(output):
        raise InputError("This AveragePool keeps the quantization: give equal input and output, or use mean.")
    if pool is _pool_truncated and not exclude_pad:
        raise InputError("TFLite's AveragePool does not count padding: set exclude_pad.")
    arguments = (kernel, strides, pads_begin, pads_end)
    if pool is _pool_ordered:
        windows = sliding_windows(dequantize(x, input, "onnx"), *arguments)
        total = np.asarray(sum(windows[(..., *tap)] for tap in np.ndindex(*kernel)))
        return _pool_ordered(total, _count(x, arguments, exclude_pad), input, output)
    axes = tuple(range(x.ndim, x.ndim + len(kernel)))
    total = sliding_windows(input.centered(x), *arguments).sum(axis=axes)
    return pool(total, _count(x, arguments, exclude_pad), input, output)


def _count(x: np.ndarray, arguments: tuple, exclude_pad: bool) -> np.ndarray:
    if not exclude_pad:
        return np.asarray(prod(arguments[0]), np.int64)
    inside = sliding_windows(np.ones((1, 1, *x.shape[2:]), np.int64), *arguments)
    return inside.sum(axis=tuple(range(x.ndim, inside.ndim)))


def mean(x: ArrayLike, input: Quantization, output: Quantization, *, method: str = "tflite") -> np.ndarray:
    """The mean over all spatial dimensions: [N, C, ...] → [N, C, 1, ...] of ``output``'s precision, both per
    tensor.

    SNPS-Caffe maps TFLite's MEAN to AveragePool; the arithmetic is another, and differs between the kernel
    sets.
    Source: TFLite MEAN; for the other frameworks this is the global `average_pool`.
    Raises `InputError` for a method that has no such operator.
    """
    x = np.asarray(x)
    name = resolve(method)
    require_activations("Mean", name, input, output)
    if name not in MEAN:
        return average_pool(x, input, output, x.shape[2:], method=name)
    total = x.astype(np.int64).sum(axis=tuple(range(2, x.ndim)), keepdims=True)
    return MEAN[name](total, prod(x.shape[2:]), input, output)


def max_pool(
    x: ArrayLike,
    kernel: Sequence[int],
    *,
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    method: str = "tflite",
) -> np.ndarray:
    """The greatest integer of each window; the quantization is kept, so every framework does the same."""
    resolve(method)
    x = np.asarray(x)
    least = np.iinfo(x.dtype).min
    windows = sliding_windows(x, kernel, strides, pads_begin, pads_end, dilations, fill=least)
    return windows.max(axis=tuple(range(x.ndim, x.ndim + len(kernel))))


def _pool_truncated(total: np.ndarray, count: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """(sum ± count / 2) / count of the stored integers, truncated"""
    total = total + input.zero_point * count
    nearest = np.where(total > 0, total + count // 2, total - count // 2)
    return output.store(np.sign(nearest) * (np.abs(nearest) // count))


def _pool_ordered(total: np.ndarray, count: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """rint(f32 sum in order / count / output_scale + zero_point)"""
    real = total / count.astype(np.float32)
    return output.store(np.rint(real / output.scale + output.zero_point.astype(np.float32)))


def _pool_24_bits(total: np.ndarray, count: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """sum * f32(input_scale / (output_scale * count)), exact, rounded half away"""
    scale = input.scale / (output.scale * np.asarray(count, np.float32))
    # a 24-bit significand times the sum (below 2^24) is exact in float64
    return output.store(round_half_away(total * scale.astype(np.float64)) + output.zero_point)


def _pool_real(total: np.ndarray, count: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """rint(f32(sum) * f32(1 / count)) + zero_point"""
    return output.store(
        np.rint(total.astype(np.float32) * (np.float32(1) / np.asarray(count, np.float32))) + output.zero_point
    )


def _pool_inside(total: np.ndarray, count: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """rint(fma(f32(sum), f32(1 / count), zero_point))"""
    return output.store(np.rint(multiply_add(total, np.float32(1) / np.asarray(count, np.float32), output.zero_point)))


def _pool_fake_quantized(total: np.ndarray, count: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """f32(sum) / count, stored as FQ"""
    return fake_quantized(total.astype(np.float32) / np.asarray(count, np.float32), input.scale, output)


def _mean_divided_multiplier(total: np.ndarray, count: int, input: Quantization, output: Quantization) -> np.ndarray:
    """D2 of sum, its multiplier (input / output, shifted left by the bits of count) divided by count"""
    quantized, shift = rq.quantize_multiplier(rq.double_multiplier(input.scale, 1, output.scale))
    spare = min(count.bit_length() - 1, 32, 31 + int(shift))
    quantized = (quantized << spare) // count
    scaled = rq.two_steps(total - input.zero_point * count, quantized, shift - spare)
    return output.store(scaled + output.zero_point)


def _mean_folded(offset):
    def kernel(total: np.ndarray, count: int, input: Quantization, output: Quantization) -> np.ndarray:
        scale = input.scale / (np.float32(count) * output.scale)
        quantized, shift = rq.quantize_multiplier(scale)
        scaled = rq.two_steps_up(total, quantized, shift)
        bias = offset(input.zero_point.astype(np.float32) * input.scale / output.scale)
        return output.store(scaled + output.zero_point - bias.astype(np.int64))

    kernel.__doc__ = "D2u of the raw sum, minus the zero point's own multiple, " + (
        "truncated" if offset is np.trunc else "rounded"
    )
    return kernel


def _mean_global(total: np.ndarray, count: int, input: Quantization, output: Quantization) -> np.ndarray:
    """rint(f32(sum) * f32(input / (output * count))) + zero_point"""
    scale = input.scale / (output.scale * np.float32(count))
    centered = (total - input.zero_point * count).astype(np.float32)
    return output.store(np.rint(centered * scale) + output.zero_point)


def _mean_float(total: np.ndarray, count: int, input: Quantization, output: Quantization) -> np.ndarray:
    """rint(f32(sum) * f32(f32(input / output) / count)) + zero_point"""
    scale = input.scale / output.scale / np.float32(count)
    centered = (total - input.zero_point * count).astype(np.float32)
    return output.store(np.rint(centered * scale) + output.zero_point)


AVERAGE_POOL = {
    **dict.fromkeys(TFLITE, _pool_truncated),
    "onnx": _pool_ordered,
    "caffe2": _pool_24_bits,
    "openvino": _pool_fake_quantized,
    "torch-qnnpack": _pool_real,
    **dict.fromkeys(("torch-fbgemm", "torch-x86", "torch-onednn"), _pool_inside),
}
MEAN = {
    "tflite-reference": _mean_divided_multiplier,
    "tflite-optimized": _mean_folded(round_half_away),
    "tflite-2.5": _mean_folded(np.trunc),
    "tflite-xnnpack": _mean_float,
    "onnx": _mean_global,
}
