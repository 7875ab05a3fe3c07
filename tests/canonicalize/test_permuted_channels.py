"""A permutation of channels before a convolution; the truth is numpy's, as OpenVINO's float networks are wrong, too."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.openvino_api import opset1, opset8
from tests.conftest import EXACT, Transformed
from tests.lowered import ways
from tests.networks import const, model, parameter, quantized

CHANNELS = 8
ORDERS = {
    "rotated": [1, 2, 3, 4, 5, 6, 7, 0],
    "shuffled": [0, 4, 1, 5, 2, 6, 3, 7],
    "any": [5, 2, 7, 0, 1, 3, 6, 4],
    "from the end": [-3, -6, -1, -8, -7, -5, -2, -4],
    "reversed": [7, 6, 5, 4, 3, 2, 1, 0],
}
FACTORS = np.linspace(-1, 1, CHANNELS).reshape(1, CHANNELS, 1, 1)
BETWEEN = {
    "nothing": (lambda value: value, lambda values: values),
    "a factor": (
        lambda value: opset1.relu(opset1.multiply(value, const(FACTORS))),
        lambda v: np.maximum(v * FACTORS, 0),
    ),
    "a quantization": (lambda value: quantized(value, -1.28, 1.27), lambda values: values),
}


def stored(in_groups: bool) -> np.ndarray:
    shape = [4, 2, 2, 1, 1] if in_groups else [6, CHANNELS, 1, 1]
    return np.random.default_rng(1).integers(-63, 64, shape)


def graph(order, between="nothing", in_groups=False, last=False, quantize=True):
    """``last``: the channels are the last axis of the data. Not ``quantize``: only the weights are integers."""
    x = parameter([-1, 4, 5, CHANNELS] if last else [-1, CHANNELS, 4, 5])
    value = quantized(x, -1.28, 1.27) if quantize else x
    value = opset8.gather(value, const(order, "i64"), const(3 if last else 1, "i64"))
    if last:
        value = opset1.transpose(value, const([0, 3, 1, 2], "i64"))
    value = BETWEEN[between][0](value)
    if quantize:
        value = quantized(value, -1.28, 1.27)
    weights = opset1.multiply(opset1.convert(const(stored(in_groups), "i8"), "f32"), const(0.01))
    layer = opset1.group_convolution if in_groups else opset1.convolution
    return model(layer(value, weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)


def truth(data: np.ndarray, order, between="nothing", in_groups=False, last=False) -> np.ndarray:
    values = data.astype(np.float64).take(order, 3 if last else 1)
    values = BETWEEN[between][1](values.transpose(0, 3, 1, 2) if last else values)
    if in_groups:
        values = values.reshape(1, 4, 2, *values.shape[2:])
        return np.einsum("goi,bgihw->bgohw", stored(True)[..., 0, 0] * 0.01, values).reshape(1, CHANNELS, 4, 5)
    return np.einsum("oi,bihw->bohw", stored(False)[..., 0, 0] * 0.01, values)


def samples(last: bool = False) -> np.ndarray:
    """On the grid of the quantization."""
    shape = (1, 4, 5, CHANNELS) if last else (1, CHANNELS, 4, 5)
    return np.random.default_rng(0).integers(-128, 128, shape).astype(np.float32) * np.float32(0.01)


def ways_and_float(net, core) -> dict:
    return {**ways(net, core), "float": core.compile_model(without_fake_quantize(net), "CPU", EXACT)}


@pytest.mark.parametrize(("in_groups", "last"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("order", ORDERS)
def test_the_channels_that_a_convolution_reads(core, order, between, in_groups, last):
    net, data = graph(ORDERS[order], between, in_groups, last), samples(last)
    expected = truth(data, ORDERS[order], between, in_groups, last)
    step = 0 if between == "nothing" else 0.01 * 63 * 0.01 * CHANNELS  # a factor leaves the grid
    for name, run in ways_and_float(net, core).items():
        assert np.abs(np.array(run([data])[0]) - expected).max() < 1e-4 + step, name


@pytest.mark.parametrize("order", ["rotated", "reversed"])
def test_of_floats(core, order):
    net, data = graph(ORDERS[order], quantize=False), samples()
    with pytest.warns(UserWarning, match="passes unchanged"):
        found = ovlpt.compile_model(net, "CPU", EXACT, core=core)([data])[0]
    assert np.abs(found - truth(data, ORDERS[order])).max() < 1e-4


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_that_is_its_own_inverse_stays(order):
    gathers = [node for node in Transformed(graph(ORDERS[order])).after.get_ops() if node.get_type_name() == "Gather"]
    assert len(gathers) == (1 if order == "reversed" else 2)


def test_what_no_convolution_reads_stays():
    x = parameter([1, CHANNELS, 4, 5])
    value = opset8.gather(quantized(x, -1.28, 1.27), const(ORDERS["rotated"], "i64"), const(1, "i64"))
    result = Transformed(model(opset8.softmax(value, 1), x)).after
    assert sum(node.get_type_name() == "Gather" for node in result.get_ops()) == 1


@pytest.mark.parametrize("channels", [3, 6])
@pytest.mark.parametrize("order", [(1, 2, 0), (2, 1, 0), (0, 2, 1)])
def test_three_parts_that_a_concat_permutes(core, order, channels):
    """Of several channels each compiling threw, of one they were rotated the other way."""
    x = parameter([-1, channels, 4, 5])
    parts = opset1.split(quantized(x, -1.28, 1.27), const(1, "i64"), 3).outputs()
    value = quantized(opset1.concat([parts[part] for part in order], 1), -1.28, 1.27)
    integers = np.random.default_rng(1).integers(-63, 64, [6, channels, 1, 1])
    weights = opset1.multiply(opset1.convert(const(integers, "i8"), "f32"), const(0.01))
    net = model(opset1.convolution(value, weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)
    data = samples()[:, :channels]
    permuted = np.concatenate([np.split(data, 3, 1)[part] for part in order], 1)
    expected = np.einsum("oi,bihw->bohw", integers[..., 0, 0] * 0.01, permuted.astype(np.float64))
    for name, run in ways_and_float(net, core).items():
        assert np.abs(np.array(run([data])[0]) - expected).max() < 1e-4, name
