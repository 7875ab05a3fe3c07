"""Convolution, Deconvolution and InnerProduct: exact accumulators, then the framework's requantization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.reference.accumulation import convolution_accumulator, matrix_accumulator, transposed_accumulator
from ovlpt.reference.methods import METHODS, cell, resolve
from ovlpt.reference.quantization import Quantization, require_activations
from ovlpt.reference.requantization import RULES, float_multiplier
from ovlpt.reference.rounding import multiply_add
from ovlpt.trace import InputError

KINDS = ("normal", "grouped", "depthwise", "transposed", "inner")


def _rules(rule: str, precision: str, granularities: str, kinds: Sequence[str] = KINDS) -> dict:
    return {(kind, precision, granularity): rule for kind in kinds for granularity in granularities.split()}


# (kind, weight precision, granularity) → rule. "single" kinds are matrix products with one column, which
# TensorFlow 2.5 gives to a matrix-vector kernel of its own rounding; "many groups" are more than 100; "pointwise" kinds
# have a kernel of size 1.
_REFERENCE = {
    **_rules("F2", "u8", "tensor"),
    **_rules("D2", "i8", "tensor channel"),
    **_rules("R", "u8", "tensor", ["inner"]),
    **_rules("R", "i8", "tensor channel", ["inner"]),
}
_OPTIMIZED = {
    **_rules("F2u", "u8", "tensor"),
    **_rules("D2u", "i8", "tensor channel"),
    **_rules("F2u", "i8", "tensor", ["inner"]),
    # left to the reference kernels
    **_rules("F2", "u8", "tensor", ["depthwise", "grouped"]),
    **_rules("D2", "i8", "tensor channel", ["grouped"]),
}
_TENSORFLOW_2_5 = {
    **_rules("F2", "u8", "tensor", ["normal", "depthwise", "inner"]),
    **_rules("F2u", "u8", "tensor", ["transposed", "single normal", "single inner"]),
    **_rules("D1", "i8", "tensor channel", ["normal"]),
    **_rules("D2u", "i8", "tensor channel", ["depthwise", "transposed", "single normal"]),
    **_rules("F1", "i8", "tensor", ["inner"]),
    **_rules("F2u", "i8", "tensor", ["single inner"]),
}
_SNPS = {  # scale granularity × group, as the document has it
    **_rules("D2", "u8", "tensor", ["normal"]),
    **_rules("D2", "i8", "tensor", ["normal"]),
    **_rules("F2", "u8", "tensor", ["depthwise", "pointwise normal"]),
    **_rules("F2", "i8", "tensor", ["depthwise", "pointwise normal"]),
    **_rules("D1", "i8", "channel", ["normal", "pointwise normal"]),
    **_rules("D2", "i8", "channel", ["depthwise"]),
}
_DIRECT = ("normal", "grouped", "depthwise", "inner")

WEIGHTED = {
    "tflite-reference": _REFERENCE,
    "tflite-optimized": _OPTIMIZED,
    "tflite-2.5": _TENSORFLOW_2_5,
    "tflite-xnnpack": {**_rules("FF", "u8", "tensor"), **_rules("FF", "i8", "tensor channel")},
    "onnx": {
        **_rules("FF", "u8", "tensor channel", _DIRECT),
        **_rules("FF", "i8", "tensor channel", _DIRECT),
    },
    "caffe2": _rules("FF2", "u8", "tensor"),
    "openvino": {**_rules("FQ", "u8", "tensor channel"), **_rules("FQ", "i8", "tensor channel")},
    "torch-qnnpack": _rules("FF", "i8", "tensor channel", _DIRECT),
    "torch-fbgemm": _rules("FF", "i8", "tensor channel", _DIRECT),
    "torch-x86": {
        **_rules("FFz", "i8", "tensor channel", _DIRECT),
        **_rules("FF", "i8", "tensor channel", ["inner", "many groups"]),
    },
    "torch-onednn": _rules("FFz", "i8", "tensor channel", _DIRECT),
    "snps": _SNPS,
}


def weighted_rule(
    method: str,
    kind: str,
    precision: str,
    per_channel: bool,
    *,
    single: bool = False,
    groups: int = 1,
    pointwise: bool = False,
) -> str:
    """The name of the rule (see `requantization`) by which a framework requantizes.

    ``kind``: "normal", "grouped", "depthwise", "transposed" or "inner"; ``precision`` of the weights;
    ``single``: one output position, at least 8 weights for each of at least 4 output channels; ``pointwise``: a kernel of
    size 1 in every dimension.

    Raises `InputError` where the framework has no such operator or precision.
    """
    rules = cell(kind, WEIGHTED, method)
    granularity = "channel" if per_channel else "tensor"
    specials = ((f"single {kind}", single), ("many groups", groups > 100), (f"pointwise {kind}", pointwise))
    for special, holds in specials:
        if holds and (special, precision, granularity) in rules:
            return rules[special, precision, granularity]
    if (kind, precision, granularity) not in rules:
        operator = {"inner": "inner product", "transposed": "deconvolution"}.get(kind, f"{kind} convolution")
        raise InputError(
            f"{METHODS[resolve(method)]} has no such quantized operator: {operator} with {precision} weights "
            f"per {granularity}; use other weights or another method."
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

    ``x``: [N, I, ...] (NCHW), ``w``: [O, I / groups, ...] (OIHW; per-channel weights have ``axis`` 0),
    ``bias``: int32 [O] of scale ``input * weight`` and zero point 0, or None. Returns [N, O, ...] of
    ``output``'s precision. Padding is real zero. Spatial arguments as in `convolution_accumulator`.

    Source: the rule per framework, kernel set, precision and granularity is `WEIGHTED`, measured against the
    runtimes on an x86 with VNNI. Without VNNI, ONNX Runtime's and fbgemm's u8 x i8 products may saturate in
    int16 and PyTorch's engine x86 follows fbgemm throughout. PyTorch takes the bias as float: with scales
    other than powers of two its conversion may move an output that sits on a tie.
    Raises `InputError` where the framework has no such convolution, or shapes do not fit.
    """
    x, w = np.asarray(x), np.asarray(w)
    accumulator = convolution_accumulator(
        x_quantization.centered(x), _centered_weights(w, w_quantization), strides=strides,
        pads_begin=pads_begin, pads_end=pads_end, dilations=dilations, groups=groups,
    )  # fmt: skip
    channels = x.shape[1]
    kind = "normal" if groups == 1 else "depthwise" if groups == channels else "grouped"
    single = accumulator[:, 0].size == 1 and w[0].size >= 8 and len(w) >= 4
    pointwise = all(size == 1 for size in w.shape[2:])
    rule = weighted_rule(
        method,
        kind,
        w_quantization.precision,
        w_quantization.per_channel,
        single=single,
        groups=groups,
        pointwise=pointwise,
    )
    return _requantized(method, rule, accumulator, x_quantization, w_quantization, bias, output)


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

    ``x``: [N, I, ...], ``w``: [I, O / groups, ...] (IOHW; per-channel weights have ``axis`` 1), ``bias``:
    int32 [O] or None. Returns [N, O, ...] of ``output``'s precision. Spatial arguments as in
    `transposed_accumulator`.

    Source: TFLite TRANSPOSE_CONV, Caffe2 Int8ConvTranspose, rules as in `convolution`.
    Raises `InputError` where the framework has no such operator, or shapes do not fit.
    """
    x, w = np.asarray(x), np.asarray(w)
    rule = weighted_rule(method, "transposed", w_quantization.precision, w_quantization.per_channel)
    accumulator = transposed_accumulator(
        x_quantization.centered(x), _centered_weights(w, w_quantization), strides=strides,
        pads_begin=pads_begin, pads_end=pads_end, dilations=dilations, output_padding=output_padding,
        groups=groups,
    )  # fmt: skip
    return _requantized(method, rule, accumulator, x_quantization, w_quantization, bias, output)


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
    """Quantized inner product (FullyConnected, FC, QGemm).

    ``x``: [N, K], ``w``: [O, K] (per-channel weights have ``axis`` 0), ``bias``: int32 [O] or None. Returns
    [N, O] of ``output``'s precision.

    Source: rules as in `convolution`. With a bias, OpenVINO multiplies accumulator and bias by the output's
    scale before it adds them; of 906 240 outputs, most of them around ties, 109 differ by one there, the
    order of its kernel's roundings being unknown.
    Raises `InputError` where the framework has no such operator, or shapes do not fit.
    """
    x, w = np.asarray(x), np.asarray(w)
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[1]:
        raise InputError(f"An input {x.shape} does not meet weights {w.shape}: give [N, K] and [O, K].")
    centered = x_quantization.centered(x)
    largest = int(np.abs(centered).max(initial=0))
    accumulator = matrix_accumulator(_centered_weights(w, w_quantization), centered.T, largest).T
    single = len(x) == 1 and x.shape[1] >= 8 and len(w) >= 4
    rule = weighted_rule(method, "inner", w_quantization.precision, w_quantization.per_channel, single=single)
    return _requantized(method, rule, accumulator, x_quantization, w_quantization, bias, output)


def fake_quantized(real: ArrayLike, scale: ArrayLike, output: Quantization, *, method: str = "openvino") -> np.ndarray:
    """FQ: ``real * scale`` through the FakeQuantize of ``output``, as OpenVINO's CPU plugin computes it.

    ``real``: float32, ``scale``: float32 that broadcasts against it (the dequantization that LPT moves into
    the FakeQuantize), per tensor or per channel. With ``low'``, ``high'`` the ends of ``output``'s interval
    divided by ``scale``, ``a = steps / (high' - low')`` and ``b = low - low' * steps / (high' - low')`` (of
    the first channel; zero where it is below 1e-5 of the range), all in float32: ``rint(fma(real, a, b))``
    per tensor, ``rint(f32(real * a) + b)`` per channel, saturated.

    Source: the plugin's fused post-operations of an int8 convolution, its snippets alike.
    Raises `InputError` for another method.
    """
    cell("FakeQuantize", {"openvino": None}, method)
    real, scale, steps = np.asarray(real, np.float32), np.asarray(scale, np.float32), np.float32(255)
    ends = [np.float32(end - output.zero_point) * output.scale for end in (output.low, output.high)]
    low, high = (end / scale for end in ends)
    factor = steps / (high - low)
    shift = np.ravel(-low * steps / (high - low))[0] + np.float32(output.low)
    if abs(shift) < np.float32(1e-5) * steps:
        shift = np.float32(0)
    return output.store(np.rint(multiply_add(real, factor, shift) if scale.size == 1 else real * factor + shift))


def _requantized(
    method: str,
    rule: str,
    accumulator: np.ndarray,
    x: Quantization,
    w: Quantization,
    bias: ArrayLike | None,
    output: Quantization,
) -> np.ndarray:
    require_activations("Convolution, deconvolution or inner product", method, x, output)
    if w.precision != x.precision and method.startswith(("tflite", "caffe2", "snps")):
        raise InputError(
            f"{x.precision} tensors meet {w.precision} weights: the method {method} needs both of one precision."
        )
    if method == "caffe2" and (float_multiplier(x.scale, w.scale, output.scale) >= 1).any():
        raise InputError(
            "Caffe2 needs input scale * weight scale below the output scale: choose a larger output scale."
        )
    shape = (-1, *(1,) * (accumulator.ndim - 2))
    weight_scale = w.scale.reshape(shape) if w.per_channel else w.scale
    addend = np.int64(0) if bias is None else np.asarray(bias, np.int64).reshape(shape)
    if rule == "FQ":
        scale, real = x.scale * weight_scale, accumulator.astype(np.float32)
        if bias is None:
            return fake_quantized(real, scale, output)
        constant = (addend * scale.astype(np.float64)).astype(np.float32)
        if accumulator.ndim > 2:
            return fake_quantized(real * scale + constant, 1, output)
        factor = np.float32(1) / output.scale
        total = real * (scale * factor) + (constant * factor + output.zero_point.astype(np.float32))
        return output.store(np.rint(total))
    return RULES[rule](accumulator + addend, x.scale, weight_scale, output)


def _centered_weights(w: np.ndarray, quantization: Quantization) -> np.ndarray:
    return quantization.centered(w).astype(np.int32)
