import pytest

from ovlpt import Params
from tests.graphs import quantized

NATIVE = Params(native_only=True)


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Transpose space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = Transpose(x, [0,1,3,2]:i64)
        y/DequantizationSubtract: f32[2,4,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_space_along_space_zero_point_stays_in_native_only(assert_rejected):
    assert_rejected(quantized("Transpose space", "space", 3), "Transpose", "not_per_channel", NATIVE)


def test_channels_per_channel_zero_point_stays_in_native_only(assert_rejected):
    assert_rejected(quantized("Transpose channels", "channel", 3), "Transpose", "channel_moves", NATIVE)


def test_channels_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Transpose channels", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = Transpose(x, [0,2,3,1]:i64)
        y/DequantizationSubtract: f32[2,4,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


@pytest.mark.parametrize("name, granularity", [("Transpose channels", "channel"), ("Transpose space", "space")])
def test_a_scale_that_is_not_per_channel_after_it_stays(assert_rejected, name, granularity):
    assert_rejected(quantized(name, granularity, 3), "Transpose", "channel_moves")


def test_tokens_along_space_zero_point(assert_transformed):
    result = assert_transformed(
        quantized("Transpose tokens", "space", 3),
        """
        x: u8[2,6,4] = Parameter
        y_original: u8[2,4,6] = Transpose(x, [0,2,1]:i64)
        y/DequantizationSubtract: f32[2,4,6] = Subtract(y_original, 3)
        y: f32[2,4,6] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )
    multiply = next(node for node in result.after.get_ops() if node.get_friendly_name() == "y")
    assert list(multiply.input_value(1).get_shape()) == [1, 4, 1]
