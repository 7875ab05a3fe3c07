"""A Clamp of integers stays part of the layer before it, unless its ends lie between two of them or no layer follows."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import opset1
from tests.graphs import f32, fake_quantize, i64, model, parameter
from tests.prerequisites.test_quantize_dequantize import assert_as_stock
from tools.fuzz.graphs import Form
from tools.fuzz.numbers import compiled_as_it_stands, dropped_in, run, transformed
from tools.parity.pipeline import DEFAULT, NATIVE, STOCK, pipeline


def convolution(data):
    kernel = fake_quantize(f32(np.random.default_rng(0).uniform(-0.4, 0.4, (16, 16, 3, 3))), -1.0, 1.0, 255)
    return opset1.convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1])


def signed(data, high: float = 4.0):
    return fake_quantize(data, -high, high * 127 / 128)


def network(low: float, high: float, between=lambda value: value):
    layer = signed(convolution(fake_quantize(parameter((1, 16, 8, 8)), 0.0, 2.55)))
    return model(convolution(signed(between(opset1.clamp(layer, low, high)))))


@pytest.mark.parametrize("low, high", [(0.0, 6.0), (-1.0, 1.0), (-9.0, 2.5)])
def test_ends_on_the_grid(low, high, core):
    """In steps of 1 / 32: whole numbers, or beyond i8."""
    graph = network(low, high)
    result = pipeline(graph, core)
    assert result.equal, result.differences
    assert result.executed[DEFAULT].count <= result.executed[STOCK].count
    assert result.executed[NATIVE].low == result.executed[STOCK].low
    assert_as_stock(graph, core)


@pytest.mark.parametrize("low, high", [(-0.7, 0.71), (0.0, 1.009)])
@pytest.mark.parametrize("between", [lambda value: value, opset1.relu], ids=["", "relu"])
def test_ends_between_integers_are_not_rounded(low, high, between, core):
    """Stock rounds them; the layer more is the price."""
    executed = pipeline(network(low, high, between), core).executed
    assert executed[DEFAULT].sqnr[0] >= max(executed[STOCK].sqnr[0], 40)


@pytest.mark.parametrize("low, high, ends", [(-2.8, -1.9, (0.0, 6.0)), (0.6, 3.0, (-1.0, 0.0))])
def test_an_end_beyond_all_integers_is_not_rounded(low, high, ends):
    """Of an interval without 0 all is cut to 0, which was as much as a step beside it once a pool had been passed."""
    clamped = opset1.clamp(fake_quantize(parameter((1, 8, 4, 4)), low, high), *ends)
    graph = model(opset1.reduce_mean(clamped, i64(1), keep_dims=False))
    data = [np.random.default_rng(0).uniform(low, high, (1, 8, 4, 4)).astype(np.float32)]
    for change in (transformed, compiled_as_it_stands, dropped_in):
        assert (np.abs(run(change(graph), data, "NO")[0]) < 1e-6).all(), change


def test_a_clamp_that_an_interval_after_a_zero_point_makes_needless():
    """OpenVINO drops it, and the FakeQuantize then reports the integers' type: off by a third, without the common optimizations."""
    ends = [f32(end) for end in (-0.82, 0.8393, -128.0, 127.0)]
    stored = opset1.convert(opset1.convert(opset1.fake_quantize(parameter((8,)), *ends, 256), "i8"), "f32")
    zero_point = opset1.convert(opset1.constant(np.int32(-2)), "f32")
    restored = opset1.multiply(opset1.subtract(stored, zero_point), f32(0.0065))
    graph = model(fake_quantize(opset1.clamp(restored, 0.0, 6.0), 0.0, 0.88, 255))
    data = [np.linspace(-1, 1, 8, dtype=np.float32)]
    for change in (transformed, compiled_as_it_stands, dropped_in):
        np.testing.assert_allclose(run(change(graph), data, "NO")[0], run(graph, data, "NO")[0], atol=0.01)


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize("low", [-1.26786, -0.83, -1.91])
def test_the_real_zero_stays_one(low, shared, precision, core):
    """Where the zero point after a Clamp is multiplied out, a comparison with 0 depends on a rounding."""
    clamped = opset1.clamp(fake_quantize(parameter((12,)), low, 1.69823), 0.0, 1.0)
    results = [opset1.convert(opset1.greater(clamped, f32(0)), "f32")]
    graph = model(*results, *([fake_quantize(clamped, 0.0, 0.9)] if shared else []))
    graph = Form(precision).apply(graph)
    data = [np.linspace(-1, 1, 12, dtype=precision.replace("f", "float"))]
    expected = (data[0] > 0).astype(np.float32)
    for change in (transformed, compiled_as_it_stands, dropped_in):
        assert (run(change(graph), data, "NO")[0] == expected).all(), change


@pytest.mark.parametrize("share", [0.05, 0.7])
def test_what_a_clamp_leaves_of_a_mask_in_f16(share):
    """Its large constants were added to the small one after it in f16: 0.0625 in place of 0.07."""
    mask = opset1.convert(opset1.greater(parameter((1, 6, 12)), f32(0)), "f32")
    hidden = opset1.multiply(opset1.subtract(mask, f32(1)), f32(100))
    moved = opset1.subtract(f32(share), opset1.clamp(hidden, 0.0, 6.0))
    graph = Form("f16").apply(model(fake_quantize(moved, -1.0, 1.0, 65536)))
    data = [np.random.default_rng(0).standard_normal((1, 6, 12)).astype(np.float16)]
    for change in (transformed, compiled_as_it_stands, dropped_in):
        assert np.abs(run(change(graph), data, "NO")[0] - share).max() < 0.005, change


@pytest.mark.parametrize("low, high", [(-1.3, 2.0), (0.0, 2.0), (-1.0, 0.0)])
@pytest.mark.parametrize("kind", ["product", "convolution", "constant first"])
def test_an_interval_beyond_the_ends_of_a_clamp(kind, low, high, core):
    """As of dead channels where a normalization follows a Clamp: the plugin gave the end of the Clamp, beyond the interval."""
    shape = (1, 16) if kind == "product" else (1, 16, 4, 4)
    x, random = parameter(shape), np.random.default_rng(0)
    data = fake_quantize(x, -1.28, 1.27)
    if kind == "product":
        weights = fake_quantize(f32(random.uniform(-0.4, 0.4, (16, 16))), -1.0, 1.0, 255)
        layer = opset1.matmul(data, weights, False, True)
    else:
        layer = convolution(data)
    clamped = opset1.clamp(layer, -0.5, 0.7)
    shift = np.linspace(-3, 3, 16, dtype=np.float32).reshape(1, 16, *[1] * (len(shape) - 2))
    total = opset1.add(f32(shift), clamped) if kind == "constant first" else opset1.add(clamped, f32(shift))
    net, before = model(fake_quantize(total, low, high)), model(clamped)
    inputs = [random.uniform(-2, 2.5, shape).astype(np.float32)]
    expected = np.clip(run(before, inputs, "NO")[0] + shift, low, high)
    found = [run(change(net), inputs, "NO")[0] for change in (transformed, compiled_as_it_stands, dropped_in)]
    for values in (*found, simulate(net, core)(inputs)[0]):
        np.testing.assert_allclose(values, expected, atol=(high - low) / 255 * 1.01)


def test_a_clamp_that_its_interval_meets_is_fused():
    """Nothing is put between them, which would be a layer of its own."""
    graph = network(-0.5, 0.7, lambda value: opset1.add(value, f32(np.full((1, 16, 1, 1), 2.0))))
    assert "Maximum" not in {node.get_type_name() for node in compiled_as_it_stands(graph).get_ops()}
