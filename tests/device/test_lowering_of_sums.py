"""A sum of two tensors that the plugin makes a part of the convolution before it, whose result is quantized to few levels."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, TRUTH, assert_close
from tests.lowered import FORMS, compiled_in
from tests.networks import const, convolution, depthwise, int8_weights, model, parameter, quantized

_SHAPE = (2, 8, 6, 6)
_STEP = 0.0371  # of the sum's levels
_COARSE = {"16 levels": 16, "clamped": 256, "two grids": 8}


def _result(kind: str, layer):
    """As networks that are trained with few bits have it; "clamped" as Brevitas exports them: u8, and a Clip."""
    if kind == "clamped":
        integers = opset1.convert(opset1.fake_quantize(layer, *map(const, (0.0, 255 * 0.713, 0.0, 255.0)), 256), "u8")
        few = opset1.minimum(opset1.maximum(integers, const(0, "u8")), const(7, "u8"))
        return opset1.multiply(opset1.convert(few, "f32"), const(0.713))
    result = quantized(layer, 0.0, 5.03, _COARSE.get(kind, 256))
    return quantized(result, 0.0, 5.71) if kind == "two grids" else result


def network(kind: str, open_sizes: bool = False):
    x, y = (parameter(_SHAPE if not open_sizes else [-1, 8, -1, -1], name=name) for name in "xy")
    layer = opset1.convolution(quantized(x, 0.0, 2.57), int8_weights([8, 8, 3, 3]), [1, 1], [1, 1], [1, 1], [1, 1])
    total = opset1.add(_result(kind, layer), quantized(y, -128 * 0.0213, 127 * 0.0213))
    if kind != "two grids":  # of which one is followed by the other without one after the sum
        total = quantized(total, -128 * _STEP, 127 * _STEP)
    return model(opset1.convolution(total, int8_weights([8, 8, 1, 1]), [1, 1], [0, 0], [0, 0], [1, 1]), [x, y])


def arrays():
    rng = np.random.default_rng(3)
    return [rng.uniform(*ends, _SHAPE).astype(np.float32) for ends in ((0, 2.5), (-2, 2))]


def distance(net, compiled, core) -> float:
    """Of a compiled model from the simulation, in decibels."""
    expected, found = (np.array(each(arrays())[0], np.float64) for each in (simulate(net, core), compiled))
    return 10 * np.log10((expected**2).sum() / max(((found - expected) ** 2).sum(), 1e-20))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", _COARSE)
def test_few_levels_are_rounded_to_before_a_sum(core, tmp_path, kind, form):
    assert distance(network(kind), compiled_in(form, network(kind), core, tmp_path), core) > 60


@pytest.mark.parametrize("kind", _COARSE)
def test_open_sizes(core, kind):
    net = network(kind, open_sizes=True)
    assert distance(net, ovlpt.compile_model(net, "CPU", EXACT, core=core), core) > 60


def test_many_levels_stay_a_part_of_the_layer(core):
    """The plugin drops their rounding, and the sum costs no layer."""
    for kind, count in (("16 levels", 1), ("256 levels", 0)):
        trace = ovlpt.Trace()
        ovlpt.transform(network(kind), core=core, trace=trace)
        assert len([event for event in trace if event.transformation == "part_coarse_from_sum"]) == count


def of_two_convolutions(few_at: int, other: str):
    """Few levels after the convolution that is one input of the sum."""
    inputs = [parameter(_SHAPE, name=name) for name in "xy"]
    layers = [
        opset1.convolution(quantized(x, 0.0, 2.57), int8_weights([8, 8, 3, 3]), [1, 1], [1, 1], [1, 1], [1, 1])
        for x in inputs
    ]
    if other != "float":
        rest = layers[1 - few_at]
        layers[1 - few_at] = opset1.relu(rest) if other == "relu" else quantized(rest, 0.0, 4.03)
    layers[few_at] = quantized(layers[few_at], 0.0, 5.03, 16)
    total = quantized(opset1.add(*layers), -128 * _STEP, 127 * _STEP)
    return model(opset1.convolution(total, int8_weights([8, 8, 1, 1]), [1, 1], [0, 0], [0, 0], [1, 1]), inputs)


@pytest.mark.parametrize("few_at", (0, 1))
@pytest.mark.parametrize("other", ("float", "relu", "256 levels"))
def test_another_convolution_takes_the_sum_in(core, few_at, other):
    """In as many layers as without, but where the plugin would choose the one with few levels."""
    net, trace = of_two_convolutions(few_at, other), ovlpt.Trace()
    assert distance(net, ovlpt.compile_model(net, "CPU", EXACT, core=core), core) > 45
    ovlpt.transform(net, core=core, trace=trace)
    parted = [event for event in trace if event.transformation == "part_coarse_from_sum"]
    assert len(parted) == (other == "256 levels" and few_at == 0)


@pytest.mark.parametrize("size", [1, 6])
def test_a_sum_of_pooled_integers_and_a_layer_before_an_interval_by_channel_of_open_sizes(core, size):
    """A block of Xception: the layer takes the sum in, and quantizes it. The sum was a layer of its own, and stored floats."""
    x, rng = parameter([-1, 8, -1, -1]), np.random.default_rng(0)
    data = quantized(opset1.relu(convolution(quantized(x, -1.28, 1.27), 8)), 0, 2.55)
    pooled = opset1.max_pool(data, [1, 1], [1, 1], [1, 1], [3, 3])
    total = opset1.relu(opset1.add(pooled, quantized(convolution(data, 8, kernel=1, seed=1), -2.56, 2.54)))
    high = const(rng.uniform(2, 5, (1, 8, 1, 1)))
    net = model(depthwise(opset1.fake_quantize(total, const(0), high, const(0), high, 256)), x)
    inputs = [rng.uniform(-1, 1, (3, 8, size, size)).astype(np.float32)]
    stock, mine = core.compile_model(net, "CPU", EXACT), ovlpt.compile_model(net, "CPU", EXACT, core=core)
    closed = net.clone()
    closed.reshape([3, 8, size, size])
    expected = core.compile_model(closed, "CPU", TRUTH)(inputs)[0]
    assert np.abs(mine(inputs)[0] - expected).max() < 0.1
    of_mine, of_stock = (ovlpt.execution_types(each, inputs).executed for each in (mine, stock))
    assert len(of_mine) <= len(of_stock)


SMALL = {  # sizes of the data of channels and space; outputs, kernel
    "a line": ((1, 6), 8, (3,)),
    "a line of few outputs": ((1, 24), 2, (3,)),
    "one row": ((1, 1, 6), 8, (1, 3)),
    "one column of two channels": ((2, 6, 1), 2, (3, 1)),
    "an image": ((1, 3, 3), 3, (2, 2)),
}


@pytest.mark.parametrize("grouped", [False, True], ids=["plain", "one group"])
@pytest.mark.parametrize("bias", [False, True], ids=["at once", "after a bias"])
@pytest.mark.parametrize("first", [False, True], ids=["second", "first"])
@pytest.mark.parametrize("case", SMALL)
def test_a_small_convolution_of_floats_before_a_sum(core, by_form, case, first, bias, grouped):
    """Of open sizes the convolution was lost, and the sum was the other tensor, on CPUs with AVX-512: stock and simulation
    likewise.
    """
    (channels, *space), outputs, kernel = SMALL[case]
    random, open_ = np.random.default_rng(0), [-1] * len(space)
    weights = random.uniform(-0.5, 0.5, (outputs, channels, *kernel)).astype(np.float32)
    shift = np.linspace(-1, 1, outputs, dtype=np.float32).reshape(1, -1, *[1] * len(space)) * bias
    x, y, z = (
        parameter([-1, channels, *open_]),
        parameter([-1, outputs, *open_], name="y"),
        parameter([-1, 8], name="z"),
    )
    ones = [1] * len(space)
    convolution_of = opset1.group_convolution if grouped else opset1.convolution
    layer = convolution_of(
        x, const(weights[None] if grouped else weights), ones, [0] * len(ones), [0] * len(ones), ones
    )
    layer = opset1.add(layer, const(shift)) if bias else layer
    other = opset1.tanh(y)
    int8 = opset1.matmul(quantized(z, -1, 1), int8_weights([4, 8]), False, True)
    net = model([opset1.add(*((layer, other) if first else (other, layer))), int8], [x, y, z])
    data = random.standard_normal((1, channels, *space)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(data[0], kernel, tuple(range(1, 1 + len(space))))
    taps = range(1, 1 + len(kernel))
    expected = np.tensordot(weights, windows, ([1, *(1 + tap for tap in taps)], [0, *(-tap for tap in reversed(taps))]))
    expected = expected[None] + shift
    inputs = [data, random.standard_normal(expected.shape).astype(np.float32), np.zeros((1, 8), np.float32)]
    expected = expected + np.tanh(inputs[1])
    found = {form: by_form(net, inputs, form) for form in FORMS}
    found["simulation"] = simulate(net, core)(inputs)[0]
    assert {form for form, values in found.items() if np.abs(values - expected).max() > 1e-4} == set()
    trace = ovlpt.Trace()
    ovlpt.transform(net, core=core, trace=trace)
    assert [event.transformation for event in trace].count("part_open_from_sum") == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [-1.8, 0.0])
@pytest.mark.parametrize("shape", [[-1, 8, 4, 4], [1, 8, -1, 4], [1, 8, 4, 4]], ids=["batch", "rows", "fixed"])
def test_a_float_layer_and_the_integers_that_are_added_to_it(by_form, shape, low, form):
    """Fused into the layer of open sizes, the sum that is quantized again threw in inference."""
    x = parameter(shape)
    low_of, high_of = (np.linspace(a, b, 8).reshape(1, 8, 1, 1) for a, b in ((-1, -0.5), (0.5, 1.1)))
    data = opset1.fake_quantize(
        x, *map(const, (low_of, high_of, low_of, high_of)), 256
    )  # by channel: the layer is of floats
    summed = opset1.add(data, convolution(data, 8))
    net = model(convolution(quantized(summed, low, 1.8), 8, kernel=1), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1, (1, 8, 4, 4)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.02, share=0.02)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pooled", [False, True])
def test_a_strided_float_layer_before_a_sum_with_integers(by_form, pooled, form):
    """It becomes one of groups, of which no more rules were asked: fused with the sum, it threw in inference, or ended the process."""
    x, rng = parameter([1, 16, -1, -1]), np.random.default_rng(0)
    ends = [const(high * np.linspace(1, 2, 16).reshape(1, 16, 1, 1)) for high in (-1, 1)]
    data = opset1.fake_quantize(x, *ends, *ends, 255)
    other = opset1.max_pool(data, [2, 2], [0, 0], [0, 0], [1, 1]) if pooled else data
    weights = const(rng.uniform(-1, 1, (16, 16, 1, 1)))
    total = opset1.add(other, opset1.convolution(data, weights, [2, 2], [0, 0], [0, 0], [1, 1]))
    net = model(convolution(quantized(total, -2.56, 2.54), 16, 1), x)
    size = 5 if pooled else 1
    inputs = [rng.uniform(-1, 1, (1, 16, size, size)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.02, share=0.9)
