"""Convolution, Deconvolution and InnerProduct: exact accumulators, then the framework's requantization rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference.accumulation import convolution_accumulator, matrix_accumulator, transposed_accumulator
from ovlpt.reference.methods import METHODS, TFLITE, cell, resolve
from ovlpt.reference.quantization import Quantization
from ovlpt.reference.requantization import RULES
from ovlpt.reference.rounding import multiply_add
from ovlpt.trace import InputError

# (kind, weight precision, granularity) → rule. "single" is a matrix product with one column, which the optimized kernels
# give to a matrix-vector kernel with a rounding of its own. Grouped convolutions go to the reference kernels.
_REFERENCE = {
    ("normal", "u8", "tensor"): "F2", ("normal", "i8", "tensor"): "D2", ("normal", "i8", "channel"): "D2",
    ("grouped", "u8", "tensor"): "F2", ("grouped", "i8", "tensor"): "D2", ("grouped", "i8", "channel"): "D2",
    ("depthwise", "u8", "tensor"): "F2", ("depthwise", "i8", "tensor"): "D2", ("depthwise", "i8", "channel"): "D2",
    ("transposed", "u8", "tensor"): "F2", ("transposed", "i8", "tensor"): "D2", ("transposed", "i8", "channel"): "D2",
    ("inner", "u8", "tensor"): "R", ("inner", "i8", "tensor"): "R", ("inner", "i8", "channel"): "R",
}  # fmt: skip
_OPTIMIZED = {
    **_REFERENCE,
    ("normal", "u8", "tensor"): "F2u", ("normal", "i8", "tensor"): "D2u", ("normal", "i8", "channel"): "D2u",
    ("single", "u8", "tensor"): "F2u", ("single", "i8", "tensor"): "D2u", ("single", "i8", "channel"): "D2u",
    ("depthwise", "i8", "tensor"): "D2u", ("depthwise", "i8", "channel"): "D2u",
    ("transposed", "i8", "tensor"): "D2u", ("transposed", "i8", "channel"): "D2u",
    ("inner", "u8", "tensor"): "F2u", ("inner", "i8", "tensor"): "F2u", ("inner", "i8", "channel"): "D2u",
}  # fmt: skip
_TENSORFLOW_2_5 = {
    **{key: rule for key, rule in _OPTIMIZED.items() if key != ("inner", "i8", "channel")},
    ("normal", "u8", "tensor"): "F2", ("normal", "i8", "tensor"): "D1", ("normal", "i8", "channel"): "D1",
    ("inner", "u8", "tensor"): "F2", ("inner", "i8", "tensor"): "F1",
    ("inner single", "u8", "tensor"): "F2u", ("inner single", "i8", "tensor"): "F2u",
}  # fmt: skip


def _every(rule: str, *precisions: str, granularities: Sequence[str] = ("tensor", "channel"), **kinds: str) -> Mapping:
    rules = {"normal": rule, "grouped": rule, "depthwise": rule, "transposed": rule, "inner": rule, **kinds}
    return {(kind, p, g): name for kind, name in rules.items() if name for p in precisions for g in granularities}


WEIGHTED = {
    "tflite-reference": _REFERENCE,
    "tflite-optimized": _OPTIMIZED,
    "tflite-2.5": _TENSORFLOW_2_5,
    "tflite-xnnpack": {
        **_REFERENCE,
        **_every("FF", "i8"),
        **_every("FF", "u8", granularities=("tensor",), depthwise=""),
    },
    "onnx": _every("FF", "u8", "i8", transposed=""),
    "caffe2": _every("FF2", "u8", granularities=("tensor",)),
    "openvino": _every("FQ", "u8", "i8"),
    "torch-qnnpack": _every("FF", "i8", transposed=""),
    "torch-fbgemm": _every("FF", "i8", transposed=""),
    "torch-x86": _every("FFz", "i8", inner="FF", depthwise="FF", transposed=""),
    "torch-onednn": _every("FFz", "i8", transposed=""),
}


def weighted_rule(
    method: str, kind: str, precision: str, per_channel: bool, *, single: bool = False, depth: int = 8, rows: int = 4
) -> str:
    """The name of the rule (see `requantization`) by which a framework requantizes.

    ``kind``: "normal", "grouped", "depthwise", "transposed" or "inner"; ``precision`` of the weights; ``single``: one
    output position; ``depth``: input channels times kernel size, ``rows``: output channels (the matrix-vector kernel
    wants enough of both).

    Raises `InputError` where the framework has no such operator or precision.
    """
    rules = cell(kind, WEIGHTED, method)
    granularity = "channel" if per_channel else "tensor"
    if single and depth >= 8 and rows >= 4:
        special = {"normal": "single", "inner": "inner single"}.get(kind)
        if (special, precision, granularity) in rules:
            return rules[special, precision, granularity]
    if (kind, precision, granularity) not in rules:
        operator = {"inner": "inner product", "transposed": "deconvolution"}.get(kind, f"{kind} convolution")
        raise InputError(
            f"{METHODS[resolve(method)]} has no such operator: {operator} with {precision} weights per {granularity}; "
            f"use other weights or another method."
        )
    return rules[kind, precision, granularity]


def convolution(
    x: ArrayLike,
    x_quantization: Quantization,
    w: ArrayLike,
    w_quantization: Quantization,
    bias: ArrayLike | None,
    output: Quantization,
    *,
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    groups: int = 1,
    method: str = "tflite",
) -> np.ndarray:
    """Quantized convolution: normal, pointwise, grouped or depthwise, with any number of spatial dimensions.

    ``x``: [N, I, ...] (NCHW), ``w``: [O, I / groups, ...] (OIHW; per-channel weights have ``axis`` 0), ``bias``: int32
    [O] of scale ``input * weight`` and zero point 0, or None. Returns [N, O, ...] of ``output``'s precision. Padding is
    real zero. Spatial arguments as in `convolution_accumulator`.

    Source: the rule per framework, kernel set, precision and granularity is `WEIGHTED`, measured against the runtimes.
    Raises `InputError` where the framework has no such convolution, or shapes do not fit.
    """
    x, w = np.asarray(x), np.asarray(w)
    accumulator = convolution_accumulator(
        x_quantization.centered(x), _centered_weights(w, w_quantization), strides=strides, pads_begin=pads_begin,
        pads_end=pads_end, dilations=dilations, groups=groups,
    )  # fmt: skip
    channels = x.shape[1]
    kind = "normal" if groups == 1 else "depthwise" if groups == channels else "grouped"
    single = accumulator[:, 0].size == 1
    rule = weighted_rule(
        method, kind, w_quantization.precision, w_quantization.per_channel,
        single=single, depth=w[0].size, rows=w.shape[0],
    )  # fmt: skip
    return _requantized(rule, accumulator, x_quantization, w_quantization, bias, output)


def deconvolution(
    x: ArrayLike,
    x_quantization: Quantization,
    w: ArrayLike,
    w_quantization: Quantization,
    bias: ArrayLike | None,
    output: Quantization,
    *,
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    groups: int = 1,
    method: str = "tflite",
) -> np.ndarray:
    """Quantized transposed convolution.

    ``x``: [N, I, ...], ``w``: [I, O / groups, ...] (IOHW; per-channel weights have ``axis`` 1), ``bias``: int32 [O] or
    None. Returns [N, O, ...] of ``output``'s precision. Spatial arguments as in `transposed_accumulator`.

    Source: TFLite TRANSPOSE_CONV, Caffe2 Int8ConvTranspose, rules as in `convolution`.
    Raises `InputError` where the framework has no such operator, or shapes do not fit.
    """
    x, w = np.asarray(x), np.asarray(w)
    rule = weighted_rule(method, "transposed", w_quantization.precision, w_quantization.per_channel)
    accumulator = transposed_accumulator(
        x_quantization.centered(x), _centered_weights(w, w_quantization), strides=strides, pads_begin=pads_begin,
        pads_end=pads_end, dilations=dilations, output_padding=output_padding, groups=groups,
    )  # fmt: skip
    return _requantized(rule, accumulator, x_quantization, w_quantization, bias, output)


def inner_product(
    x: ArrayLike,
    x_quantization: Quantization,
    w: ArrayLike,
    w_quantization: Quantization,
    bias: ArrayLike | None,
    output: Quantization,
    *,
    method: str = "tflite",
) -> np.ndarray:
    """Quantized inner product (FullyConnected, FC, QGemm): ``x`` [N, K], ``w`` [O, K], ``bias`` int32 [O] or None → [N, O].

    Per-channel weights have ``axis`` 0. Source: rules as in `convolution`.
    Raises `InputError` where the framework has no such operator, or shapes do not fit.
    """
    x, w = np.asarray(x), np.asarray(w)
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[1]:
        raise InputError(f"An input {x.shape} does not meet weights {w.shape}: give [N, K] and [O, K].")
    centered = x_quantization.centered(x)
    largest = int(np.abs(centered).max(initial=0))
    accumulator = matrix_accumulator(_centered_weights(w, w_quantization), centered.T, largest).T
    rule = weighted_rule(
        method, "inner", w_quantization.precision, w_quantization.per_channel,
        single=len(x) == 1, depth=x.shape[1], rows=len(w),
    )  # fmt: skip
    return _requantized(rule, accumulator, x_quantization, w_quantization, bias, output)


def fake_quantized(real: ArrayLike, scale: ArrayLike, output: Quantization, method: str = "openvino") -> np.ndarray:
    """FQ: OpenVINO's CPU plugin stores ``real`` float32 values, of scale ``scale``, as integers of ``output``.

    ``rint(clip(fma(real, a, b), low, high))`` with float32 ``a = steps / (high' - low')``, ``b = low - low' * a``, where
    ``low' = f32(f32((low - zero_point) * output_scale) / scale)`` and high' alike are the FakeQuantize's interval in
    units of ``scale``. Source: the plugin's fused post-operations (int8 convolution → FakeQuantize).
    """
    cell("FakeQuantize", {"openvino": None}, method)
    scale, f32 = np.asarray(scale, np.float32), np.float32
    ends = [f32(end - output.zero_point) * output.scale / scale for end in (output.low, output.high)]
    width = ends[1] - ends[0]
    steps = f32(output.high - output.low)
    shift = -ends[0] * steps / width
    return output.store(np.rint(multiply_add(real, steps / width, shift)) + output.low)


def _requantized(
    rule: str,
    accumulator: np.ndarray,
    x: Quantization,
    w: Quantization,
    bias: ArrayLike | None,
    output: Quantization,
) -> np.ndarray:
    shape = (-1, *(1,) * (accumulator.ndim - 2))
    weight_scale = w.scale.reshape(shape) if w.per_channel else w.scale
    addend = np.int64(0) if bias is None else np.asarray(bias, np.int64).reshape(shape)
    if rule == "FQ":
        real = accumulator.astype(np.float32) + addend.astype(np.float32)
        return fake_quantized(real, x.scale * weight_scale, output)
    return RULES[rule](accumulator + addend, x.scale, weight_scale, output)


def _centered_weights(w: np.ndarray, quantization: Quantization) -> np.ndarray:
    return quantization.centered(w).astype(np.int32)
