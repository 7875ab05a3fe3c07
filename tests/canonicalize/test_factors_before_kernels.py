"""A factor by row or column before a convolution of as many; the truth is numpy's, as OpenVINO's float networks are wrong, too."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, assert_close
from tests.lowered import ways
from tests.networks import const, model, parameter, quantized

CHANNELS, ROWS, COLUMNS = 4, 3, 5
SHAPE = (2, CHANNELS, ROWS, COLUMNS)
FACTORS = {
    "row": [1, 1, ROWS, 1],
    "row of lower rank": [ROWS, 1],
    "row and channel": [1, CHANNELS, ROWS, 1],
    "column": [COLUMNS],
    "place": [ROWS, COLUMNS],
}


def stored(in_groups: bool) -> np.ndarray:
    shape = [2, 3, 2, ROWS, COLUMNS] if in_groups else [6, CHANNELS, ROWS, COLUMNS]
    return np.random.default_rng(1).integers(-63, 64, shape)


def graph(factor, divide, in_groups, is_open, quantize="data"):
    """``quantize``: the data, before the factor, and the weights; or the weights alone; or the data by the factor."""
    x = parameter([-1, CHANNELS, -1, -1] if is_open else SHAPE)
    if quantize == "by factor":
        value = quantized(x, -128 * factor, 127 * factor)
    else:
        value = quantized(x, -1.28, 1.27) if quantize == "data" else x
        value = opset1.divide(value, const(factor)) if divide else opset1.multiply(value, const(factor))
    weights = opset1.multiply(opset1.convert(const(stored(in_groups), "i8"), "f32"), const(0.01))
    layer = opset1.group_convolution if in_groups else opset1.convolution
    return model(layer(value, weights, [1, 1], [1, 2], [1, 2], [1, 1]), x)


def convolved(values, in_groups):
    """By hand, of one image after the other."""
    padded = np.pad(values, ((0, 0), (0, 0), (1, 1), (2, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (ROWS, COLUMNS), axis=(2, 3))
    if in_groups:
        windows = windows.reshape(2, 2, 2, *windows.shape[2:])
        return np.einsum("gochw,ngcyxhw->ngoyx", stored(True) * 0.01, windows).reshape(2, 6, ROWS, COLUMNS)
    return np.einsum("ochw,ncyxhw->noyx", stored(False) * 0.01, windows)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("in_groups", [False, True])
@pytest.mark.parametrize("divide", [False, True])
@pytest.mark.parametrize("name", FACTORS)
def test_the_result(core, name, divide, in_groups, is_open):
    factor = np.linspace(0.5, 2, int(np.prod(FACTORS[name]))).reshape(FACTORS[name])
    data = np.random.default_rng(0).integers(-128, 128, SHAPE) / 100
    truth = convolved(data / factor if divide else data * factor, in_groups)
    net, inputs = graph(factor, divide, in_groups, is_open), [data.astype(np.float32)]
    compiled = {**ways(net, core), "floats": core.compile_model(without_fake_quantize(net), "CPU", EXACT)}
    for each in compiled.values():
        assert_close([each(inputs)[0]], [truth])


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", ["row", "column", "place"])
def test_the_scale_of_a_quantization(core, name, is_open):
    """A dequantization that stays before a layer in float."""
    factor = np.linspace(0.005, 0.02, int(np.prod(FACTORS[name]))).reshape(
        [1] * (4 - len(FACTORS[name])) + FACTORS[name]
    )
    places = np.random.default_rng(0).integers(-128, 128, SHAPE)
    net, inputs = graph(factor, False, False, is_open, "by factor"), [(places * factor).astype(np.float32)]
    for each in ways(net, core).values():
        assert_close([each(inputs)[0]], [convolved(places * factor, False)])


def test_weights_that_are_compressed_alone(core):
    """A model that passes unchanged."""
    factor = np.linspace(0.5, 2, ROWS).reshape(FACTORS["row"])
    data = np.random.default_rng(0).integers(-128, 128, SHAPE) / 100
    net = graph(factor, False, False, True, "weights")
    with pytest.warns(UserWarning, match="compressed weights only"):
        found = ways(net, core)
    for each in found.values():
        assert_close([each([data.astype(np.float32)])[0]], [convolved(data * factor, False)])
