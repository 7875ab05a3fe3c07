"""Where the CPU plugin computes something else than the model: named, and kept right where ovlpt can."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import has_avx512
from ovlpt.device.hazards import epilogue, hazards
from ovlpt.device.int8_layers import is_int8_layer
from ovlpt.fake_quantize.chain import Eltwise, Relu
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.graphs import opset5
from tests.lowered import drop_in
from tests.networks import const, convolution, model, parameter, quantized

CHANNELS, STEP = 32, np.float32(2.55) / np.float32(255)
rng = np.random.default_rng(0)
MIXED = rng.choice([-1, 1], (1, CHANNELS, 1, 1)) * rng.uniform(0.5, 2, (1, CHANNELS, 1, 1))
PER_TENSOR = np.float32(-0.5)
SLOPES = rng.uniform(0.1, 0.5, CHANNELS)


def as_natively(net, core):
    return ovlpt.transform(net, core=core, native_only=True)


def network(scale, prelu: bool, followed: bool):
    x = parameter([1, 16, 8, 8])
    product = convolution(quantized(x, 0, 2.55), CHANNELS, kernel=1, name="conv")
    active = opset1.prelu(product, const(SLOPES)) if prelu else opset1.relu(product)
    scaled = opset1.multiply(active, const(scale))
    return model(opset1.tanh(scaled) if followed else scaled, x)


def in_numpy(net, levels: np.ndarray, scale, prelu: bool, followed: bool) -> np.ndarray:
    """The network in float64, on weights read from its own convolution."""
    node = next(each for each in net.get_ordered_ops() if each.get_type_name() == "Convolution")
    result = ovlpt.openvino_api.opset1.result(node.input_value(1))
    weights = ovlpt.openvino_api.Core().compile_model(ovlpt.openvino_api.Model([result], [], "weights"), "CPU", EXACT)(
        []
    )[0]
    product = np.einsum("oi,nihw->nohw", weights[:, :, 0, 0].astype(np.float64), levels * np.float64(STEP))
    slopes = SLOPES.reshape(1, -1, 1, 1) if prelu else 0
    scaled = np.where(product > 0, product, product * slopes) * scale
    return np.tanh(scaled) if followed else scaled


@pytest.mark.parametrize("prelu", [False, True], ids=["relu", "prelu"])
@pytest.mark.parametrize("scale", [MIXED, PER_TENSOR], ids=["per_channel", "per_tensor"])
@pytest.mark.parametrize("followed", [False, True], ids=["last", "followed"])
def test_a_negative_scale_stays_after_a_relu(core, prelu, scale, followed):
    net = network(scale, prelu, followed)
    levels = np.random.default_rng(1).integers(0, 256, (1, 16, 8, 8))
    inputs = [(levels * STEP).astype(np.float32)]
    expected = in_numpy(net, levels, scale, prelu, followed)
    tolerance = 1e-4 * np.abs(expected).max()
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    assert np.abs(compiled(inputs)[0] - expected).max() <= tolerance
    layers = ovlpt.execution_types(compiled).executed
    assert [layer.is_int8 for layer in layers if layer.layer_type == "Convolution"] == [True]
    assert not [
        layer for layer in layers if layer.layer_type in ("Eltwise", "Relu", "PRelu", "Multiply")
    ]  # all in the layer
    own_prelu = prelu and not has_avx512(core)  # which lets no scale through
    if (followed or scale is MIXED) and not own_prelu:  # what is kept right here: the plugin's own LPT is wrong
        assert np.abs(core.compile_model(net, "CPU", EXACT)(inputs)[0] - expected).max() > 100 * tolerance


NEGATIVE = {
    "constant less it": lambda value: opset1.subtract(const(0.5), value),
    "after a scale": lambda value: opset1.subtract(const(0.5), opset1.multiply(value, const(np.abs(MIXED)))),
    "after a shift": lambda value: opset1.multiply(opset1.add(value, const(SLOPES.reshape(MIXED.shape))), const(MIXED)),
    "divided": lambda value: opset1.divide(value, const(MIXED)),
    "negative": lambda value: opset1.add(opset1.negative(value), const(SLOPES.reshape(MIXED.shape))),
}


@pytest.mark.parametrize("build", NEGATIVE.values(), ids=NEGATIVE)
@pytest.mark.parametrize(
    "active", [opset1.relu, lambda value: opset1.prelu(value, const(SLOPES))], ids=["relu", "prelu"]
)
@pytest.mark.parametrize("how", [ovlpt.transform, as_natively, drop_in], ids=lambda each: each.__name__)
def test_what_becomes_a_negative_scale_after_a_relu(core, infer, how, active, build):
    """The plugin makes one factor of what it finds after the Relu, and of the layer: more than 100 % off."""
    x = parameter([1, 16, 8, 8])
    net = model(build(active(convolution(quantized(x, -1, 1.5), CHANNELS, kernel=1))), x)
    inputs = inputs_of(net)
    expected = infer(net, inputs, "NO")
    assert_close(infer(how(net, core=core), inputs), expected, level=0.02 * float(np.abs(expected[0]).max()), share=1)


@pytest.mark.parametrize("prelu", [False, True], ids=["relu", "prelu"])
def test_a_negative_scale_is_named(core, prelu):
    transformed = ovlpt.transform(network(MIXED, prelu, True), core=core, lowered=False)
    (hazard,) = hazards(transformed)
    assert (hazard.layer, hazard.reason.code, hazard.avoided) == ("conv", "negative_scale_after_relu", True)


def test_a_positive_scale_is_no_hazard(core):
    assert hazards(ovlpt.transform(network(np.abs(MIXED), False, True), core=core, lowered=False)) == []


def test_a_clip_apart_from_the_range_after_it_is_named(core):
    x = parameter([1, 16, 8, 8])
    clipped = opset1.clamp(convolution(quantized(x, 0, 2.55), CHANNELS, bias=True, name="conv"), 5.0, 6.0)
    net = model(convolution(quantized(clipped, -2.56, 2.54), 8), x)
    found = hazards(ovlpt.transform(net, core=core, lowered=False))
    assert "clip_apart_from_range" in [hazard.reason.code for hazard in found if not hazard.avoided]


def recurrent(low: float, high: float, quantize=quantized, size: int = 32, steps: int = 8):
    values = np.random.default_rng(2).uniform(-0.3, 0.3, (2, 1, 4 * size, size))
    kernels = (quantize(const(each), -0.6, 0.6, 255) for each in values)  # halves of the range, which no CPU saturates
    x, state = parameter([1, steps, size]), const(np.zeros((1, 1, size)))
    bias = const(np.random.default_rng(3).uniform(-0.3, 0.3, (1, 4 * size)))
    data = quantized(x, low, high)
    sequence = opset5.lstm_sequence(data, state, state, const([steps], "i64"), *kernels, bias, size, "forward")
    return model(opset1.squeeze(sequence.output(0), const([1], "i64")), x)


def in_steps(node, low: float, high: float, levels: int):
    """What a FakeQuantize makes of a constant."""
    step = (high - low) / (levels - 1)
    return const(np.round((node.data - low) / step) * step + low)


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("low, high, clipped", [(-1.28, 1.27, False), (-1.0, 1.0, False), (0.0, 2.55, True)])
def test_a_hidden_state_is_stored_as_the_data_is(core, low, high, clipped, native_only):
    net, plain = recurrent(low, high), recurrent(low, high, in_steps)
    clipped = clipped and native_only
    found = hazards(ovlpt.transform(net, core=core, lowered=False, native_only=native_only))
    assert [(hazard.reason.code, hazard.avoided) for hazard in found] == [("clipped_state", False)] * clipped
    inputs = [np.random.default_rng(4).uniform(low, high, (1, 8, 32)).astype(np.float32)]
    expected = core.compile_model(plain, "CPU", TRUTH)(inputs)[0]
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT, native_only=native_only)
    assert [each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"] == [True]
    lost = np.square(compiled(inputs)[0] - expected).sum() / np.square(expected).sum()
    assert (lost > 0.1) == clipped
    assert (lost < 0.003) != clipped  # 25 dB


def test_the_operations_after_a_layer_are_read(core):
    net = network(np.abs(MIXED), False, True)
    transformed = ovlpt.transform(net, core=core, lowered=False)
    (node,) = [each for each in transformed.get_ordered_ops() if is_int8_layer(each)]
    read = epilogue(node)
    assert isinstance(read.steps[0], Relu)
    assert isinstance(read.steps[-1], Eltwise)
    assert not read.bias
    assert len(read.names) == len(read.steps) + (read.dequantization is not None)
    assert epilogue(node, held=frozenset(read.names[:1])).names == read.names[:1]
