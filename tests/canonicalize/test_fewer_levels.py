from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.graph.constants import precision_of
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import Transformed
from tests.graphs import fake_quantize, model, parameter
from tests.test_beyond_native import convolution

NAME = "FewerLevels"


def quantized(low, high, levels, shape=(1, 16, 8, 8)):
    return fake_quantize(parameter(shape), low, high, name="data", levels=levels)


def rewritten(graph, params=None):
    result = Transformed(graph, params)
    outcomes = [event.outcome for event in result.trace if event.transformation == NAME]
    return result, outcomes == [Outcome.TRANSFORMED]


@pytest.mark.parametrize("levels", [3, 31, 128, 200, 254])
@pytest.mark.parametrize("below", [0, 1 / 3, 1 / 2])  # of the levels, which zero
def test_a_layer_reads_them_as_integers(levels, below):
    first = -int(below * levels)
    graph = model(convolution(quantized(0.02 * first, 0.02 * (first + levels - 1), levels)))
    result, done = rewritten(graph)
    assert done
    (layer,) = (node for node in result.after.get_ops() if node.get_type_name() == "Convolution")
    assert precision_of(layer.input_value(1)) != "f32"
    (quantize,) = (node for node in result.after.get_ops() if node.get_type_name() == "FakeQuantize")
    assert precision_of(quantize.output(0)) == "u8"
    assert quantize.get_attributes()["levels"] == levels
    assert not any(node.get_type_name() == "Clamp" for node in result.after.get_ops())
    result.assert_numbers()


def test_they_stay_within_seven_bits():
    result, _ = rewritten(model(convolution(quantized(-0.64, 0.63, 128))))
    (quantize,) = (node for node in result.after.get_ops() if node.get_type_name() == "FakeQuantize")
    assert precision_of(quantize.output(0)) == "u8"
    assert quantize.input_value(4).get_node().data.max() == 127


def test_a_pool_is_quantized_once():
    pool = opset1.max_pool(quantized(0, 1.27, 128), [2, 2], [0, 0], [0, 0], [2, 2], "floor")
    result = Transformed(model(convolution(fake_quantize(pool, 0, 1.27, name="again", levels=128))))
    assert sum(node.get_type_name() == "FakeQuantize" for node in result.after.get_ops()) == 1
    result.assert_numbers()


@pytest.mark.parametrize("levels", [2, 512])
def test_others_stay(levels):
    assert not rewritten(model(convolution(quantized(0, 2.55, levels))))[1]


def test_intervals_of_channels_stay():
    low = np.linspace(-1, -2, 16).reshape(1, 16, 1, 1)
    assert not rewritten(model(convolution(quantized(low, -low, 128))))[1]


def test_an_interval_without_zero_stays():
    assert not rewritten(model(convolution(quantized(-0.995, 1.545, 128))))[1]


def test_a_float_operation_keeps_them():
    assert not rewritten(model(opset1.erf(quantized(0, 2.55, 128))))[1]


def test_not_as_the_native_library():
    assert not rewritten(model(convolution(quantized(0, 2.55, 128))), Params(native_only=True))[1]
