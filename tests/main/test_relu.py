from ovlpt import Params
from tests.graphs import quantized


def test_per_channel_zero_point_stays_in_native_only(assert_rejected):
    assert_rejected(quantized("Relu", "channel", 3), "Relu", "zero_point", Params(native_only=True))


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Relu", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = Maximum(x, 3:u8)
        y/DequantizationSubtract: f32[2,4,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_fractional_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Relu", "tensor", 3.5), "Relu", "zero_point")


def test_per_channel(assert_transformed):
    assert_transformed(
        quantized("Relu", "channel", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = Relu(x)
        y: f32[2,4,4,4] = Multiply(y_original, [0.5,1,1.5,2])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Relu", "space", 3), "Relu", "not_per_channel")
