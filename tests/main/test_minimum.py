import numpy as np

from ovlpt.openvino_api import opset1
from tests.graphs import dequantization, model, parameter, quantized


def test_a_constant_of_one_value(assert_transformed):
    assert_transformed(
        quantized("Minimum constant", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = Minimum(3:u8, x)
        y/DequantizationSubtract: f32[2,4,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_a_negative_scale_stays(assert_rejected):
    """The least of the integers is the greatest of the real values."""
    x, y = (dequantization(parameter((1, 4), name, np.uint8), -0.5) for name in "ab")
    assert_rejected(model(opset1.minimum(x, y)), "Minimum", "negative_scale")
