from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import Transformed
from tests.graphs import fake_quantize, i64, model, parameter
from tests.test_beyond_native import convolution

NAME = "ReshapesBeforeFakeQuantize"


def image(batch, channels=1):
    """A spectrum as a picture, and that with its channels first; of one channel neither moves any data."""
    pixels = opset1.unsqueeze(parameter((batch, 16, 12 * channels)), i64(3))
    return opset1.reshape(pixels, i64(-1, 16, 12, channels), False)


def channels_first(data, channels=1):
    return opset1.reshape(data, i64(-1, channels, 16, 12), False)


def repaired(data):
    result = Transformed(model(convolution(data)))
    return result, any(event.transformation == NAME and event.outcome == Outcome.TRANSFORMED for event in result.trace)


@pytest.mark.parametrize("batch", [-1, 2])
@pytest.mark.parametrize("low, high", [(0, 2.55), (-1.27, 1.28)])
def test_two_reshapes_are_one(batch, low, high):
    result, done = repaired(channels_first(fake_quantize(image(batch), low, high)))
    assert done
    kinds = [node.get_type_name() for node in result.after.get_ordered_ops()]
    assert kinds[kinds.index("FakeQuantize") :].count("Reshape") == 0
    result.assert_numbers()


def test_intervals_that_differ_along_an_axis_stay():
    rows = np.linspace(1, 2, 16).reshape(1, 16, 1, 1)
    assert not repaired(channels_first(fake_quantize(image(1), -rows, rows)))[1]


def test_it_stays_where_others_read_what_is_reshaped_first():
    first = image(1)
    quantized = channels_first(fake_quantize(first, 0, 2.55))
    result = Transformed(model(convolution(quantized), opset1.softmax(first, 1)))
    assert all(event.transformation != NAME for event in result.trace if event.outcome == Outcome.TRANSFORMED)


@pytest.mark.parametrize("floats", ["f32", "bf16"])
def test_the_cpu_plugin_runs_no_reshape_of_integers(floats):
    """Common optimizations move the FakeQuantize before the Transpose."""
    transposed = opset1.transpose(image(-1), i64(0, 3, 1, 2))
    compiled = ovlpt.compile_model(
        model(convolution(fake_quantize(transposed, 0, 2.55))), "CPU", {"INFERENCE_PRECISION_HINT": floats}
    )
    compiled([np.ones((2, 16, 12), np.float32)])
    reshapes = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Reshape"]
    assert reshapes
    assert not any(each.precision == "u8" for each in reshapes)
