from ovlpt import Params
from tests.graphs import quantized

NATIVE = Params(native_only=True)


def test_per_channel_zero_point_stays_in_native_only(assert_rejected):
    assert_rejected(quantized("Slice", "channel", 3), "Slice", "per_channel", NATIVE)


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Slice", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,2,4] = Slice(x, 1:i64, 3:i64, 1:i64, 2:i64)
        y/DequantizationSubtract: f32[2,4,2,4] = Subtract(y_original, 3)
        y: f32[2,4,2,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Slice", "space", 3), "Slice", "not_per_channel")


def test_channels_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Slice channels", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,2,4,4] = Slice(x, 1:i64, 3:i64, 1:i64, 1:i64)
        y/DequantizationSubtract: f32[2,2,4,4] = Subtract(y_original, 3)
        y: f32[2,2,4,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_channels_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Slice channels", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,2,4,4] = Slice(x, 1:i64, 3:i64, 1:i64, 1:i64)
        y/DequantizationSubtract: f32[2,2,4,4] = Subtract(y_original, 3)
        y: f32[2,2,4,4] = Multiply(y/DequantizationSubtract, [1,1.5])
        """,
    )
