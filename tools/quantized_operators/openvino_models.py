"""A case as an OpenVINO model, run by the CPU plugin with its own low precision transformations."""

from __future__ import annotations

import numpy as np
import openvino

from ovlpt.openvino_api import opset13 as ops
from ovlpt.reference import Quantization
from tools.quantized_operators.cases import Case

CORE = openvino.Core()
CONFIG = {"INFERENCE_PRECISION_HINT": "f32"}
VERSION = f"openvino {openvino.get_version()}"


def run(case: Case) -> np.ndarray:
    """The stored integers: a MaxPool of size 1 at the end keeps the plugin from undoing them."""
    q, o = case.quantizations, case.options
    names = [name for name in case.arrays if name not in ("w", "bias")]
    inputs = [ops.parameter(case.arrays[name].shape, np.float32) for name in names]
    quantized = [_fake_quantize(node, q[name]) for node, name in zip(inputs, names, strict=True)]
    match case.operator:
        case "Convolution" | "InnerProduct":
            y = _weighted(case, quantized[0])
        case "EltwiseSum":
            y = ops.add(*quantized)
        case "AveragePool":
            y = ops.avg_pool(quantized[0], o["strides"], [0, 0], [0, 0], o["kernel"], True)
    y = _fake_quantize(y, q["output"])
    shape = tuple(y.shape)
    if len(shape) == 2:
        y = ops.reshape(y, ops.constant([*shape, 1, 1]), False)
    if case.operator != "EltwiseSum":
        y = ops.max_pool(y, [1, 1], [1, 1], [0, 0], [0, 0], [1, 1], "floor", "explicit")
    compiled = CORE.compile_model(openvino.Model([y], inputs, case.operator), "CPU", CONFIG)
    feed = [(q[name].centered(case.arrays[name]) * q[name].scale).astype(np.float32) for name in names]
    real = compiled(feed)[0].reshape(shape)
    return (np.rint(real / q["output"].scale.astype(np.float64)) + q["output"].zero_point).astype(q["output"].dtype)


def _fake_quantize(node, quantization: Quantization):
    low, high = (
        ops.constant(np.float32(end - quantization.zero_point) * quantization.scale)
        for end in (quantization.low, quantization.high)
    )
    return ops.fake_quantize(node, low, high, low, high, 256)


def _weighted(case: Case, x):
    q, w, groups = case.quantizations, case.arrays["w"], case.options.get("groups", 1)
    o = case.options
    window = [
        o.get("strides", [1, 1]),
        o.get("pads_begin", [0, 0]),
        o.get("pads_end", [0, 0]),
        o.get("dilations", [1, 1]),
    ]
    spatial = (1,) * (w.ndim - 2)
    scale = np.broadcast_to(q["w"].scale, len(w)).reshape(-1, 1, *spatial) if q["w"].per_channel else q["w"].scale
    real = ops.multiply(ops.convert(ops.constant(w), "f32"), ops.constant(scale.astype(np.float32)))
    if case.operator == "InnerProduct":
        return _biased(case, ops.matmul(x, real, False, True))
    if groups > 1:
        shape = [groups, len(w) // groups, *w.shape[1:]]
        scale = scale.reshape(groups, -1, 1, 1, 1) if q["w"].per_channel else scale
        constant = ops.convert(ops.constant(w.reshape(shape)), "f32")
        real = ops.multiply(constant, ops.constant(scale.astype(np.float32)))
        y = ops.group_convolution(x, real, *window)
    else:
        y = ops.convolution(x, real, *window)
    return _biased(case, y)


def _biased(case: Case, y):
    if "bias" not in case.arrays:
        return y
    q = case.quantizations
    bias = (case.arrays["bias"] * (q["x"].scale.astype(np.float64) * q["w"].scale)).astype(np.float32)
    return ops.add(y, ops.constant(bias.reshape(1, -1, *(1,) * (len(y.shape) - 2))))
