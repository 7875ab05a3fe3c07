import pytest

from ovlpt import Params
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import fake_quantize, model, parameter, quantized, weights


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Convolution", "channel", 3), "Convolution", "per_channel_activations")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Convolution", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y_original: f32[2,3,4,4] = Convolution(y/ZeroPoint, i8[3,4,1,1])
        y: f32[2,3,4,4] = Multiply(y_original, [0.005,0.01,0.015])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Convolution", "space", 3), "Convolution", "not_per_channel")


def test_zero_point_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Convolution zero point", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y/WeightsZeroPoint: f32[3,4,1,1] = Subtract(i8[3,4,1,1], [3,3,3]:i8)
        y_original: f32[2,3,4,4] = Convolution(y/ZeroPoint, y/WeightsZeroPoint)
        y: f32[2,3,4,4] = Multiply(y_original, 0.005)
        """,
        params=Params(native_only=True),  # these integers less 3 fit i8, and are stored so by default
    )


def behind_a_fraction(pad: int, groups: int = 0):
    """A zero point of 99.85: no level of the data is zero."""
    data = fake_quantize(parameter((2, 4, 6, 6)), -1.0, 1.554)
    window = [1, 1], [pad, pad], [pad, pad], [1, 1]
    if groups:
        return model(opset1.group_convolution(data, weights([groups, 3, 4 // groups, 2, 2], 0.02), *window))
    return model(opset1.convolution(data, weights([3, 4, 2, 2], 0.02), *window))


@pytest.mark.parametrize("groups", [0, 2])
def test_a_fractional_zero_point_keeps_the_numbers(groups):
    """The native pass rounds it, and every result is shifted."""
    result = Transformed(behind_a_fraction(0, groups))
    assert result.transformed("GroupConvolution" if groups else "Convolution")
    result.assert_numbers()
    native = Transformed(behind_a_fraction(0, groups), Params(native_only=True))
    with pytest.raises(AssertionError):
        native.assert_numbers(1e-4)


def test_a_fractional_zero_point_under_padding_is_rounded():
    """As in the native library: all results are shifted by less than half a step of the data."""
    result = Transformed(behind_a_fraction(1))
    assert result.transformed("Convolution")
    result.assert_numbers(0.01)
