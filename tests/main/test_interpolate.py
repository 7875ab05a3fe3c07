import pytest

from ovlpt import Params
from ovlpt.openvino_api import RELAXES_EVERY_OPSET
from tests.graphs import quantized


def test_4_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Interpolate 4", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,8,8] = Interpolate(x, [8,8]:i64, [2,2], [2,3]:i64) {antialias=False, coordinate_transformation_mode=asymmetric, cube_coeff=-0.75, mode=nearest, nearest_mode=floor, pads_begin=[0, 0, 0, 0], pads_end=[0, 0, 0, 0], shape_calculation_mode=sizes}
        y/DequantizationSubtract: f32[2,4,8,8] = Subtract(y_original, 3)
        y: f32[2,4,8,8] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_4_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Interpolate 4", "space", 3), "Interpolate", "not_per_channel")


def test_linear_in_native_only_stays(assert_rejected):
    graph = quantized("Interpolate linear", "channel", 3)
    assert_rejected(graph, "Interpolate", "interpolation_mode", Params(native_only=True))


@pytest.mark.skipif(not RELAXES_EVERY_OPSET, reason="this release has no type-relaxed Interpolate of opset4")
def test_linear_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Interpolate linear", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,8,8] = Interpolate(x, [8,8]:i64, [2,2], [2,3]:i64) {antialias=False, coordinate_transformation_mode=asymmetric, cube_coeff=-0.75, mode=linear_onnx, nearest_mode=floor, pads_begin=[0, 0, 0, 0], pads_end=[0, 0, 0, 0], shape_calculation_mode=sizes}
        y/DequantizationSubtract: f32[2,4,8,8] = Subtract(y_original, 3)
        y: f32[2,4,8,8] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_linear_of_opset11_stays(assert_rejected):
    """It cannot be type-relaxed; the common optimizations make it one of opset4."""
    assert_rejected(quantized("Interpolate linear 11", "channel", 3), "Interpolate", "release")


def test_channels_that_are_resized(assert_rejected):
    assert_rejected(quantized("Interpolate channels", "channel", 3), "Interpolate", "interpolated_axes")
