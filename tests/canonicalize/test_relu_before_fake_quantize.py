from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import Transformed
from tests.graphs import f32, fake_quantize, model, parameter
from tests.test_beyond_native import convolution

NAME = "ReluBeforeFakeQuantize"


def layer():
    return opset1.add(convolution(fake_quantize(parameter((1, 16, 8, 8)), 0, 2.55)), f32(np.ones((1, 16, 1, 1))))


def repaired(data, params=None):
    graph = model(convolution(opset1.relu(data)))
    result = Transformed(graph, params)
    outcomes = [event.outcome for event in result.trace if event.transformation == NAME]
    return result, outcomes == [Outcome.TRANSFORMED]


@pytest.mark.parametrize("low, high", [(-1, 1.55), (-1.28, 1.27), (np.float32(-0.3), np.float32(2.25))])
def test_zero_is_one_of_the_values(low, high):
    result, done = repaired(fake_quantize(layer(), low, high, name="middle"))
    assert done
    kinds = [node.get_type_name() for node in result.after.get_ordered_ops()]
    assert "Maximum" not in kinds
    assert kinds.index("Relu") < len(kinds) - 1 - kinds[::-1].index("FakeQuantize")
    result.assert_numbers()


def per_channel():
    low = np.linspace(-1, -2, 16).reshape(1, 16, 1, 1)
    return fake_quantize(layer(), low, -low * 127 / 128, name="middle")


def test_an_interval_for_each_channel():
    assert repaired(per_channel())[1]


@pytest.mark.parametrize(
    "data",
    [
        fake_quantize(layer(), -1.005, 1.545, name="middle"),  # zero lies between two values
        fake_quantize(layer(), 0, 2.55, name="middle"),  # nothing negative
        fake_quantize(parameter((1, 16, 8, 8)), -1, 1.55, name="middle"),  # no layer to become part of
    ],
)
def test_it_stays(data):
    assert not repaired(data)[1]


def test_it_stays_where_others_read_the_quantized_data():
    quantized = fake_quantize(layer(), -1, 1.55, name="middle")
    result = Transformed(model(convolution(opset1.relu(quantized)), opset1.softmax(quantized, 1)))
    assert not any(event.transformation == NAME for event in result.trace)


def test_with_native_only_it_stays():
    assert not repaired(fake_quantize(layer(), -1, 1.55, name="middle"), Params(native_only=True))[1]


def test_an_output_keeps_its_name():
    result = Transformed(model(opset1.relu(fake_quantize(layer(), -1, 1.55, name="middle"))))
    assert any(event.transformation == NAME for event in result.trace)
    (end,) = result.after.get_results()
    assert end.input_value(0).get_node().get_friendly_name() == "y"
    result.assert_numbers()
