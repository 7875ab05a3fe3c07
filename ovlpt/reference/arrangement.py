"""Concat, ArgMax and ResizeBilinear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference.affine import dequantize, quantize
from ovlpt.reference.methods import TFLITE, cell, resolve
from ovlpt.reference.quantization import Quantization, require_activations
from ovlpt.reference.requantization import rounding_shift_up
from ovlpt.trace import InputError

F32 = np.float32


def concat(
    inputs: Sequence[ArrayLike],
    quantizations: Sequence[Quantization],
    output: Quantization,
    *,
    axis: int = 1,
    method: str = "tflite",
) -> np.ndarray:
    """The inputs one after the other along ``axis``, each requantized to ``output`` where its quantization
    differs.

    Source: TFLite CONCATENATION, ONNX Runtime QLinearConcat, Caffe2 Int8Concat.
    Raises `InputError` for a method that has no such operator, where TFLite is given i8 inputs of different
    quantization, and where Caffe2 is (it would silently copy the integers, which stand for other numbers there).
    """
    store = cell("Concat", CONCAT, method)
    if len(inputs) != len(quantizations):
        raise InputError(f"{len(inputs)} inputs have {len(quantizations)} quantizations: give one per input.")
    require_activations("Concat", method, *quantizations, output)
    name = resolve(method)
    parts = []
    for x, quantization in zip(inputs, quantizations, strict=True):
        if quantization.same_as(output):
            parts.append(np.asarray(x))
        elif name == "caffe2" or (name in TFLITE and output.precision == "i8"):
            raise InputError(f"Concat with the method {method} keeps the quantization: requantize its inputs first.")
        else:
            parts.append(store(np.asarray(x), quantization, output))
    return np.concatenate(parts, axis=axis)


def arg_max(x: ArrayLike, *, axis: int = 1, method: str = "tflite") -> np.ndarray:
    """The index of the (first) greatest integer along ``axis``, int64; every framework does the same."""
    resolve(method)
    return np.asarray(x).argmax(axis=axis)


def resize_bilinear(
    x: ArrayLike,
    input: Quantization,
    size: tuple[int, int],
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    method: str = "tflite",
) -> np.ndarray:
    """Bilinear resize of [N, C, H, W] to [N, C, *size]; the quantization is kept.

    Source: TFLite RESIZE_BILINEAR. For i8 it is integer arithmetic, not ``~`` as SNPS-Caffe has it (5 599 of
    26 376 outputs differ). The u8 kernels of the reference and the optimized set sum in different orders.
    Raises `InputError` for a method that has no such operator.
    """
    x = np.asarray(x)
    kernel = cell("ResizeBilinear", RESIZE_BILINEAR, method)
    require_activations("ResizeBilinear", method, input)
    return input.store(kernel(x, size, align_corners, half_pixel_centers))


def _store_even(x: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """~, rounded to even"""
    return quantize(dequantize(x, input, "onnx"), output, "onnx")


def _store_away(x: np.ndarray, input: Quantization, output: Quantization) -> np.ndarray:
    """~, rounded away"""
    return quantize(dequantize(x, input, "onnx"), output, "tflite-reference")


def _resize_reference(x: np.ndarray, size: tuple[int, int], align: bool, half: bool) -> np.ndarray:
    """u8: ~ of the integers, trunc(v + 0.5); i8: 10-bit coordinates, ties away"""
    if x.dtype != np.uint8:
        return _resize_10_bits(x, size, align, half)
    corner, dy, dz = _float_corners(x, size, align, half)
    value = corner[0][0] * (1 - dy) * (1 - dz) + corner[1][0] * dy * (1 - dz)
    return np.trunc(value + corner[0][1] * (1 - dy) * dz + corner[1][1] * dy * dz + F32(0.5))


def _resize_optimized(x: np.ndarray, size: tuple[int, int], align: bool, half: bool) -> np.ndarray:
    """u8: ~ of the integers, weights multiplied first, trunc(v + 0.5); i8: 10-bit coordinates, ties away"""
    if x.dtype != np.uint8:
        return _resize_10_bits(x, size, align, half)
    corner, dy, dz = _float_corners(x, size, align, half)
    value = corner[0][0] * ((1 - dy) * (1 - dz)) + corner[0][1] * ((1 - dy) * dz)
    return np.trunc(value + corner[1][0] * (dy * (1 - dz)) + corner[1][1] * (dy * dz) + F32(0.5))


def _float_corners(x: np.ndarray, size: tuple[int, int], align: bool, half: bool) -> tuple:
    (y, y0, y1), (z, z0, z1) = (_float_axis(o, i, align, half) for o, i in zip(size, x.shape[2:], strict=True))
    return _corners(x.astype(F32), y0, y1, z0, z1), (y - y0.astype(F32))[:, None], z - z0.astype(F32)


def _resize_10_bits(x: np.ndarray, size: tuple[int, int], align: bool, half: bool) -> np.ndarray:
    (y, y0, y1), (z, z0, z1) = (_integer_axis(o, i, align, half) for o, i in zip(size, x.shape[2:], strict=True))
    dy, dz = (y - (y0 << 10))[:, None], z - (z0 << 10)
    corner = _corners(x.astype(np.int64), y0, y1, z0, z1)
    value = corner[0][0] * (1024 - dy) * (1024 - dz) + corner[1][0] * dy * (1024 - dz)
    value = value + corner[0][1] * (1024 - dy) * dz + corner[1][1] * dy * dz
    return np.sign(value) * ((np.abs(value) + (1 << 19)) >> 20)


def _resize_11_bits(x: np.ndarray, size: tuple[int, int], align: bool, half: bool) -> np.ndarray:
    """11-bit weights, >> 22, ties up"""
    (y, y0, y1), (z, z0, z1) = (_clamped_axis(o, i, align, half) for o, i in zip(size, x.shape[2:], strict=True))
    wy = np.rint((y - y0.astype(F32)) * F32(2048)).astype(np.int64)[:, None]
    wz = np.rint((z - z0.astype(F32)) * F32(2048)).astype(np.int64)
    corner = _corners(x.astype(np.int64), y0, y1, z0, z1)
    top = (corner[0][0] << 11) + (corner[0][1] - corner[0][0]) * wz
    bottom = (corner[1][0] << 11) + (corner[1][1] - corner[1][0]) * wz
    return rounding_shift_up((top << 11) + (bottom - top) * wy, 22)


def _corners(x: np.ndarray, y0: np.ndarray, y1: np.ndarray, z0: np.ndarray, z1: np.ndarray) -> list[list[np.ndarray]]:
    return [[x[:, :, y[:, None], z] for z in (z0, z1)] for y in (y0, y1)]


def _float_axis(outputs: int, inputs: int, align: bool, half: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    step = F32(inputs - 1) / F32(outputs - 1) if align and outputs > 1 else F32(inputs) / F32(outputs)
    position = np.arange(outputs, dtype=F32)
    position = (position + F32(0.5)) * step - F32(0.5) if half else position * step
    below = np.floor(position).astype(np.int64)
    return position, np.clip(below, 0, inputs - 1), np.clip(below + 1, 0, inputs - 1)


def _integer_axis(outputs: int, inputs: int, align: bool, half: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    span, count = (inputs - 1, outputs - 1) if align and outputs > 1 else (inputs, outputs)
    step = ((span << 10) + count // 2) // count
    position = np.arange(outputs, dtype=np.int64) * step
    if half:
        position = position + step // 2 - (1 << 9)
    return position, np.clip(position >> 10, 0, inputs - 1), np.clip((position + 1023) >> 10, 0, inputs - 1)


def _clamped_axis(outputs: int, inputs: int, align: bool, half: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    step = F32(inputs - 1) / F32(max(outputs - 1, 1)) if align else F32(inputs) / F32(outputs)
    position = np.arange(outputs, dtype=F32)
    position = (position + F32(0.5)) * step - F32(0.5) if half and not align else position * step
    position = np.clip(position, F32(0), F32(inputs - 1))
    below = position.astype(np.int64)
    return position, below, np.minimum(below + 1, inputs - 1)


CONCAT = {**dict.fromkeys(TFLITE, _store_away), "onnx": _store_even, "caffe2": _store_even}
RESIZE_BILINEAR = {
    "tflite-reference": _resize_reference,
    **dict.fromkeys(("tflite-optimized", "tflite-2.5"), _resize_optimized),
    "tflite-xnnpack": _resize_11_bits,
}
