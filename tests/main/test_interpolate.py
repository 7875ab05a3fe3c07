import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, opset1
from tests.graphs import dequantization, fake_quantize, interpolate, interpolate_11, model, parameter, quantized


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


def test_linear_that_nothing_quantizes_after_stays(assert_rejected):
    """Kernels give integers for integers, so the means would be rounded."""
    assert_rejected(quantized("Interpolate linear", "channel", 3), "Interpolate", "interpolation_mode")


REFUSED = {
    "antialias": dict(build=lambda x: interpolate(x, mode="linear_onnx", antialias=True)),
    "65536 levels": dict(build=lambda x: interpolate(x, mode="cubic"), levels=65536),
    "read twice": dict(build=lambda x: interpolate(x, mode="linear"), others=True),
    "volume": dict(
        build=lambda x: interpolate(x, mode="linear_onnx", pads_begin=[0] * 5, pads_end=[0] * 5),
        shape=(2, 4, 4, 4, 4),
    ),
}


def before_fake_quantize(build, levels=256, others=False, shape=(2, 4, 4, 4)):
    data = dequantization(parameter(shape, precision=np.uint8), 0.5, 3)
    resized = build(data)
    resized.set_friendly_name("i")
    return model(fake_quantize(resized, 0.0, 2.55, levels), *[opset1.sqrt(resized)] * others)


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_kernel_holds_with_its_fake_quantize(assert_rejected, case):
    assert_rejected(before_fake_quantize(**REFUSED[case]), "Interpolate", "interpolation_mode")


@pytest.mark.skipif(not RELAXES_EVERY_OPSET, reason="this release has no type-relaxed Interpolate of opset4")
def test_linear_with_zero_point_before_a_fake_quantize(assert_transformed):
    assert_transformed(
        before_fake_quantize(lambda x: interpolate(x, mode="linear_onnx")),
        """
        x: u8[2,4,4,4] = Parameter
        i: f32[2,4,8,8] = Interpolate(x, [8,8]:i64, [2,2], [2,3]:i64) {antialias=False, coordinate_transformation_mode=asymmetric, cube_coeff=-0.75, mode=linear_onnx, nearest_mode=floor, pads_begin=[0, 0, 0, 0], pads_end=[0, 0, 0, 0], shape_calculation_mode=sizes}
        y: f32[2,4,8,8] = FakeQuantize(i, 3, 8.1, 0, 2.55) {levels=256}
        """,
    )


def test_linear_of_opset11_stays(assert_rejected):
    """It cannot be type-relaxed; the common optimizations make it one of opset4."""
    graph = before_fake_quantize(lambda x: interpolate_11(x, mode="linear_onnx"))
    assert_rejected(graph, "Interpolate", "release")


def test_channels_that_are_resized(assert_rejected):
    assert_rejected(quantized("Interpolate channels", "channel", 3), "Interpolate", "interpolated_axes")
