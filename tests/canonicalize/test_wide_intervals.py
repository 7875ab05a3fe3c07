from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, opset1
from tests.conftest import EXACT
from tests.networks import const, model, parameter, quantized

KEYS, VISIBLE = 8, 5


def masked(bound: float, in_integers: bool, is_open: bool) -> Model:
    """Scores with a mask of ``bound``, quantized as they are."""
    shape = [-1, -1, KEYS] if is_open else [1, 4, KEYS]
    x, mask = parameter(shape), parameter(shape, name="mask")
    keys = const(np.random.default_rng(0).uniform(-1, 1, (KEYS, KEYS)))
    scores = opset1.matmul(quantized(x, -1.28, 1.27), keys, False, True)
    scores = opset1.add(scores, opset1.multiply(mask, const(bound)))
    if not in_integers:
        return model(opset1.softmax(quantized(scores, bound, 0), 2), [x, mask])
    levels = opset1.fake_quantize(scores, const(bound), const(0.0), const(0.0), const(255.0), 256)
    stored = opset1.convert(opset1.convert(levels, "u8"), "f32")
    restored = opset1.multiply(opset1.subtract(stored, const(255.0)), const(-bound / 255))
    return model(opset1.softmax(restored, 2), [x, mask])


@pytest.mark.parametrize("bound", [-1e37, -3.4e38, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("in_integers", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_mask_of_nearly_all_numbers(core, bound, in_integers, is_open):
    """All scores are at the last level then. Stock gives no numbers, or ignores the mask, but for one of the four forms."""
    net, random = masked(bound, in_integers, is_open), np.random.default_rng(0)
    mask = np.zeros((1, 4, KEYS), np.float32)
    mask[..., VISIBLE:] = 1
    inputs = [random.uniform(-1, 1, (1, 4, KEYS)).astype(np.float32), mask]
    for compiled in (simulate(net, core), ovlpt.compile_model(net, core=core, properties=EXACT)):
        np.testing.assert_allclose(compiled(inputs)[0], (1 - mask) / VISIBLE, atol=1e-5)


@pytest.mark.parametrize("bound", [-1e37, -3.4e38])
def test_a_quantized_mask_that_is_constant(core, bound):
    """What is shown is at 0, and not at the error of the kernel's shift, -1e30, beside which all scores are the same."""
    mask = np.triu(np.full((KEYS, KEYS), bound, np.float32), 1)
    mask[-1] = bound  # a row that is hidden whole
    x, keys = parameter([1, 4, KEYS, KEYS]), const(np.random.default_rng(0).uniform(-1, 1, (KEYS, KEYS)))
    scores = quantized(opset1.matmul(quantized(x, -1.28, 1.27), keys, False, True), -2.56, 2.54)
    hidden = opset1.add(scores, quantized(const(mask[None, None]), bound, 0))
    net = Model([opset1.softmax(hidden, 3)], [x])
    exact = Model([opset1.softmax(opset1.add(scores, const(mask[None, None])), 3)], [x])
    inputs = [np.random.default_rng(0).uniform(-1, 1, (1, 4, KEYS, KEYS)).astype(np.float32)]
    expected = simulate(exact, core)(inputs)[0]
    for compiled in (simulate(net, core), ovlpt.compile_model(net, core=core, properties=EXACT)):
        np.testing.assert_allclose(compiled(inputs)[0], expected, atol=1e-5)


def test_an_interval_of_all_numbers(core):
    """Its width is infinite in f32."""
    x, bound = parameter([2, 8]), np.float64(3e38)
    net = model(quantized(x, -bound, bound), x)
    levels = np.array([[0, 1, 2, 127, 128, 253, 254, 255]] * 2)
    values = (levels / 255 * 2 - 1) * bound
    for compiled in (simulate(net, core), ovlpt.compile_model(net, core=core, properties=EXACT)):
        np.testing.assert_allclose(compiled([values.astype(np.float32)])[0], values, rtol=1e-5)


def stored(data, low, high, precision, zero_point, scale):
    """As QuantizeLinear and DequantizeLinear of ONNX are read."""
    first = 0.0 if precision == "u8" else -128.0
    levels = opset1.fake_quantize(data, const(low), const(high), const(first), const(first + 255), 256)
    restored = opset1.convert(opset1.convert(levels, precision), "f32")
    return opset1.multiply(opset1.subtract(restored, const(zero_point)), const(scale))


MASKS = {
    "fake_quantize": lambda data, bound: quantized(data, bound, 0),
    "signed": lambda data, bound: quantized(data, bound, -bound * 127 / 128),
    "u8": lambda data, bound: stored(data, bound, 0.0, "u8", 255.0, -bound / 255),
    "i8": lambda data, bound: stored(data, bound, -bound * 127 / 128, "i8", 0.0, -bound / 128),
    "beyond": lambda data, bound: stored(data, bound * 128 / 127, -bound, "i8", 0.0, -bound / 127),
    "beyond, as floats": lambda data, bound: quantized(data, bound * 128 / 127, -bound),
    "beyond 0, as floats": lambda data, bound: quantized(data, bound, -bound * 128 / 127),
    "beyond, u8": lambda data, bound: stored(data, bound * 128 / 127, -bound, "u8", 128.0, -bound / 127),
    "reshaped": lambda data, bound: opset1.reshape(quantized(data, bound, 0), const([0, 0, KEYS], "i64"), True),
}


@pytest.mark.parametrize("bound", [-1e9, -1e20, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("in_integers", [False, True], ids=["scores", "quantized scores"])
@pytest.mark.parametrize("mask", MASKS)
def test_a_quantized_mask_beside_scores(core, mask, in_integers, is_open, bound):
    """Quantized by itself: the scores that it shows are as they were. Stock gives the same for all, or no numbers."""
    shape = [-1, -1, KEYS] if is_open else [1, 4, KEYS]
    x, hides = parameter(shape), parameter(shape, name="mask")
    scores = opset1.matmul(quantized(x, -1.28, 1.27), const(np.eye(KEYS)), False, True)
    if in_integers:
        scores = quantized(scores, -1.28, 1.27)
    with np.errstate(over="ignore"):
        sums = opset1.add(scores, MASKS[mask](opset1.multiply(hides, const(bound)), bound))
    net = model(opset1.softmax(sums, 2), [x, hides])
    values = np.round(np.random.default_rng(0).uniform(-1, 1, (1, 4, KEYS)), 2).astype(np.float32)
    hidden = np.broadcast_to(np.arange(KEYS) >= VISIBLE, values.shape).astype(np.float32)
    expected = np.exp(values) * (1 - hidden)
    expected /= expected.sum(2, keepdims=True)
    for compiled in (simulate(net, core), ovlpt.compile_model(net, core=core, properties=EXACT)):
        np.testing.assert_allclose(compiled([values, hidden])[0], expected, atol=1e-3)
