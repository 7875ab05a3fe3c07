import numpy as np

from ovlpt.openvino_api import opset1
from tests.graphs import dequantization, f32, model, parameter


def test_per_channel_zero_point(assert_transformed):
    scale = np.array([0.5, 1, 1.5, 2]).reshape(1, 4, 1, 1)
    x, y = (dequantization(parameter((1, 4, 2, 2), name, np.uint8), scale, 3) for name in "ab")
    assert_transformed(
        model(opset1.maximum(x, y)),
        """
        b: u8[1,4,2,2] = Parameter
        a: u8[1,4,2,2] = Parameter
        y_original: u8[1,4,2,2] = Maximum(a, b)
        y/DequantizationSubtract: f32[1,4,2,2] = Subtract(y_original, 3)
        y: f32[1,4,2,2] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_a_negative_scale_stays(assert_rejected):
    """The greatest of the integers is the least of the real values."""
    x, y = (dequantization(parameter((1, 4), name, np.uint8), -0.5) for name in "ab")
    assert_rejected(model(opset1.maximum(x, y)), "Maximum", "negative_scale")


def test_a_constant_becomes_an_integer(assert_transformed):
    assert_transformed(
        model(opset1.maximum(dequantization(parameter((1, 4), "x", np.uint8), 0.5, 3), f32(-1))),
        """
        x: u8[1,4] = Parameter
        y_original: u8[1,4] = Maximum(x, 1:u8)
        y/DequantizationSubtract: f32[1,4] = Subtract(y_original, 3)
        y: f32[1,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )
