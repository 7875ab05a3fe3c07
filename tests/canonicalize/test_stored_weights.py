from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT
from tests.graphs import f32, fake_quantize, model, parameter

_LIMITS = {"i4": (-8, 7, 0), "u4": (0, 15, 7)}


def restored_weights(values: np.ndarray, kind: str, scale: np.ndarray):
    """A QuantizeLinear and a DequantizeLinear of float weights, as OpenVINO reads them."""
    low, high, zero_point = _LIMITS[kind]
    ends = (f32((end - zero_point) * scale) for end in (low, high))
    quantize = opset1.fake_quantize(f32(values), *ends, f32(low), f32(high), 16)
    centred = opset1.subtract(opset1.convert(opset1.convert(quantize, kind), "f32"), f32(zero_point))
    return opset1.multiply(centred, f32(scale))


def layer(name: str, kind: str):
    rng = np.random.default_rng(0)
    x = parameter([2, 8, 6, 6]) if name == "Convolution" else parameter([2, 6, 8])
    data = fake_quantize(x, -1.28, 1.27, 256, "data")
    shape = (4, 8, 1, 1) if name == "Convolution" else (4, 8)
    scale = np.linspace(0.02, 0.1, 4).astype(np.float32).reshape(4, *[1] * (len(shape) - 1))
    weights = restored_weights(rng.uniform(-0.6, 0.6, shape).astype(np.float32), kind, scale)
    if name == "Convolution":
        return model(opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)
    return model(opset1.matmul(data, weights, False, True), x)


@pytest.mark.parametrize("kind", _LIMITS)
@pytest.mark.parametrize("name", ["Convolution", "MatMul"])
def test_float_weights_that_are_quantized_to_4_bits(core, name, kind):
    """The layer stayed in float."""
    net = layer(name, kind)
    size = net.inputs[0].get_shape()
    inputs = [np.random.default_rng(1).uniform(-1.28, 1.27, size).astype(np.float32)]
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    layers = [each for each in ovlpt.execution_types(compiled, inputs).executed if each.is_int8]
    assert {each.layer_type for each in layers} & {"Convolution", "FullyConnected"}
    expected, found = simulate(net, core)(inputs)[0], compiled(inputs)[0]
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


def test_native_only_leaves_them(core):
    """As the native library does: the layer stays in float."""
    net = layer("Convolution", "i4")
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core, native_only=True)
    (found,) = (each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Convolution")
    assert not found.is_int8
