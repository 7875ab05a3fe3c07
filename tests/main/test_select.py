import numpy as np

from ovlpt.openvino_api import opset1
from tests.graphs import dequantization, f32, model, parameter


def test_per_channel_zero_point(assert_transformed):
    scale = np.array([0.5, 1, 1.5, 2]).reshape(1, 4, 1, 1)
    x, y = (dequantization(parameter((1, 4, 1, 2), name, np.uint8), scale, 3) for name in "ab")
    assert_transformed(
        model(opset1.select(opset1.constant(np.array([True, False])), x, y)),
        """
        b: u8[1,4,1,2] = Parameter
        a: u8[1,4,1,2] = Parameter
        y_original: u8[1,4,1,2] = Select([1,0]:boolean, a, b)
        y/DequantizationSubtract: f32[1,4,1,2] = Subtract(y_original, 3)
        y: f32[1,4,1,2] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_a_negative_scale_passes(assert_transformed):
    """Values are chosen, not compared."""
    x, y = (dequantization(parameter((2,), name, np.uint8), -0.5) for name in "ab")
    assert_transformed(
        model(opset1.select(opset1.constant(np.array([True, False])), x, y)),
        """
        b: u8[2] = Parameter
        a: u8[2] = Parameter
        y_original: u8[2] = Select([1,0]:boolean, a, b)
        y: f32[2] = Multiply(y_original, -0.5)
        """,
    )


def test_a_condition_that_is_computed_stays_as_it_is(assert_transformed):
    x, y = (dequantization(parameter((2,), name, np.uint8), 0.5) for name in "ab")
    condition = opset1.greater(parameter((2,), "c"), f32(0))
    condition.set_friendly_name("greater")
    assert_transformed(
        model(opset1.select(condition, x, y)),
        """
        c: f32[2] = Parameter
        b: u8[2] = Parameter
        a: u8[2] = Parameter
        greater: boolean[2] = Greater(c, 0)
        y_original: u8[2] = Select(greater, a, b)
        y: f32[2] = Multiply(y_original, 0.5)
        """,
    )
