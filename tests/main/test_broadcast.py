import pytest

from ovlpt.config import Params
from ovlpt.openvino_api import opset8
from tests.conftest import Transformed
from tests.graphs import fake_quantize, i64, model, parameter, quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Broadcast", "channel", 3),
        """
        x: u8[2,4,1,1] = Parameter
        y_original: u8[2,4,3,3] = Broadcast(x, [2,4,3,3]:i64, [0,1,2,3]:i64) {mode=none}
        y/DequantizationSubtract: f32[2,4,3,3] = Subtract(y_original, 3)
        y: f32[2,4,3,3] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_3_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Broadcast 3", "channel", 3),
        """
        x: u8[2,4,1,1] = Parameter
        y_original: u8[2,4,3,3] = Broadcast(x, [2,4,3,3]:i64, [0,1,2,3]:i64) {mode=explicit}
        y/DequantizationSubtract: f32[2,4,3,3] = Subtract(y_original, 3)
        y: f32[2,4,3,3] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_rank_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Broadcast rank", "channel", 3),
        """
        x: u8[2,4] = Parameter
        y_original: u8[2,4,3,3] = Broadcast(x, [2,4,3,3]:i64, [0,1]:i64) {mode=explicit}
        y/DequantizationSubtract: f32[2,4,3,3] = Subtract(y_original, 3)
        y: f32[2,4,3,3] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_after_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Broadcast after", "channel", 3), "Broadcast", "channel_moves")


def test_after_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Broadcast after", "tensor", 3),
        """
        x: u8[2,4] = Parameter
        y_original: u8[3,2,4] = Broadcast(x, [3,2,4]:i64, [1,2]:i64) {mode=explicit}
        y/DequantizationSubtract: f32[3,2,4] = Subtract(y_original, 3)
        y: f32[3,2,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_numpy_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Broadcast numpy", "channel", 3),
        """
        x: u8[2,4,1,1] = Parameter
        y_original: u8[2,4,3,3] = Broadcast(x, [2,4,3,3]:i64) {mode=numpy}
        y/DequantizationSubtract: f32[2,4,3,3] = Subtract(y_original, 3)
        y: f32[2,4,3,3] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_both_ways_to_another_rank(assert_transformed, assert_rejected):
    """Zeros that an exporter expands to the state of recurrent layers."""
    assert_transformed(
        quantized("Broadcast both ways", "tensor", 3),
        """
        x: u8[2,4] = Parameter
        y_original: u8[3,2,4] = Broadcast(x, [3,1,1]:i64) {mode=bidirectional}
        y/DequantizationSubtract: f32[3,2,4] = Subtract(y_original, 3)
        y: f32[3,2,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )
    assert_rejected(quantized("Broadcast both ways", "channel", 3), "Broadcast", "broadcast_rank")


@pytest.mark.parametrize("native_only", [False, True])
def test_one_number(native_only):
    """As the zeros of a recurrent layer's state: it has no axis of channels, for which the native library's rule looked."""
    data = fake_quantize(parameter(()), 0.0, 2.55)
    spread = opset8.broadcast(data, i64(3, 4), broadcast_spec="numpy")
    result = Transformed(model(spread), Params(native_only=native_only))
    assert result.transformed("Broadcast")
    result.assert_numbers()
