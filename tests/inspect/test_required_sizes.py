"""Inputs of open shapes: the sizes that the first layers have weights for."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.inputs import open_sizes, random_inputs
from ovlpt.inspect.required_sizes import required_sizes
from ovlpt.openvino_api import Model, opset1
from tests import networks
from tests.graphs import opset5
from tests.inspect.faults import pointwise


def _required(build, rank: int = 4) -> dict[int, int]:
    x = networks.parameter([-1] * rank)
    (found,) = required_sizes(networks.model(build(x), x))
    return found


def _group_convolution(x):
    weights = networks.const(np.ones((2, 4, 3, 1, 1), np.float32))
    return opset1.group_convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def _deconvolution(x):
    weights = networks.const(np.ones((5, 2, 1, 1), np.float32))
    return opset1.convolution_backprop_data(x, weights, [1, 1])


def _convolution(x):
    data, weights = networks.quantized(x, -1, 1), networks.int8_weights([3, 7, 1, 1])
    return opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def _channels_last(x):
    return _convolution(opset1.transpose(x, np.array([0, 3, 1, 2])))


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        pytest.param(_convolution, {1: 7}, id="quantized"),
        pytest.param(_channels_last, {3: 7}, id="channels last"),
        pytest.param(_group_convolution, {1: 6}, id="groups"),
        pytest.param(_deconvolution, {1: 5}, id="deconvolution"),
        pytest.param(lambda x: opset1.subtract(networks.const(np.ones((3, 1, 1), np.float32)), x), {1: 3}, id="means"),
        pytest.param(lambda x: opset1.matmul(x, networks.const(np.ones((5, 2))), False, False), {3: 5}, id="factor"),
        pytest.param(lambda x: opset1.matmul(x, networks.const(np.ones((2, 5))), False, True), {3: 5}, id="rows"),
        pytest.param(lambda x: opset1.matmul(x, networks.const(np.ones(5)), True, False), {2: 5}, id="columns"),
        pytest.param(lambda x: opset1.matmul(networks.const(np.ones((2, 5))), x, False, False), {2: 5}, id="second"),
        pytest.param(opset1.relu, {}, id="none"),
    ],
)
def test_sizes_of_the_first_layer(build, expected):
    assert _required(build) == expected


def test_a_recurrent_layer():
    x, h, c = (networks.parameter([-1, -1, -1], name=name) for name in "xhc")
    weights = [networks.const(np.ones(shape, np.float32)) for shape in ((1, 16, 6), (1, 16, 4), (1, 16))]
    layer = opset5.lstm_sequence(x, h, c, networks.const([2], "i64"), *weights, 4, "forward")
    assert required_sizes(Model([opset1.result(layer.output(0))], [x, h, c], "net")) == [{2: 6}, {2: 4}, {2: 4}]


def test_what_is_known_is_not_asked():
    x = networks.parameter([1, 7, -1, -1])
    assert required_sizes(networks.model(_convolution(x), x)) == [{}]


def test_inputs_and_numbers_of_a_model_that_is_open_throughout():
    net: Model = pointwise([-1, -1, -1, -1])
    assert [array.shape for array in random_inputs(net)] == [(1, 16, 64, 64)]
    assert open_sizes(net) == [(1, 64), (1, 1), (2, 64), (2, 1)]
    found = ovlpt.check(net)
    assert found.ok
    assert {record.inputs for record in found.numbers.records} >= {"[1,16,1,1]", "[2,16,64,64]"}
