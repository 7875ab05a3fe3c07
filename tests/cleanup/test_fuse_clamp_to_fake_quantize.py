from __future__ import annotations

import pytest

from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import fake_quantize, model, parameter
from tests.test_beyond_native import convolution


def clamped(low, high):
    return Transformed(model(convolution(fake_quantize(opset1.clamp(parameter((1, 16, 8, 8)), low, high), 0, 2.55))))


def clamps(result):
    return sum(node.get_type_name() == "Clamp" for node in result.after.get_ops())


@pytest.mark.parametrize("low, high", [(0, 1.27), (0.1, 2), (0, 2.55)])
def test_one_that_ends_at_two_levels(low, high):
    result = clamped(low, high)
    assert clamps(result) == 0
    result.assert_numbers()


@pytest.mark.parametrize("low, high", [(0, 1.275), (0.105, 2), (-0.1, 1.27), (0, 3), (0.5, 0.51)])
def test_any_other_stays(low, high):
    result = clamped(low, high)
    assert clamps(result) == 1
    result.assert_numbers()


def test_one_that_others_read_stays():
    clamp = opset1.clamp(parameter((1, 16, 8, 8)), 0, 1.27)
    result = Transformed(model(convolution(fake_quantize(clamp, 0, 2.55)), opset1.softmax(clamp, 1)))
    assert clamps(result) == 1
    result.assert_numbers()


@pytest.mark.parametrize("levels", [100, 255])
def test_one_whose_dequantization_comes_back(levels):
    """It got the levels from before the Clamp again where there was a Concat anywhere in the model."""
    x = parameter((1, 4, 8, 8))
    quantize = (
        fake_quantize(x, 0, 0.99, 100) if levels == 100 else fake_quantize(opset1.clamp(x, -0.5, 0.5), -1.27, 1.27, 255)
    )
    result = Transformed(model(opset1.softmax(opset1.matmul(x, quantize, False, False), 3), opset1.concat([x, x], 1)))
    result.assert_numbers()
