import numpy as np
import pytest

from tests.graphs import dequantization, model, opset1, opset14, parameter, quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("AvgPool", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,3,3] = AvgPool(x) {exclude-pad=True, kernel=[2, 2]}
        y/DequantizationSubtract: f32[2,4,3,3] = Subtract(y_original, 3)
        y: f32[2,4,3,3] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("AvgPool", "space", 3), "AvgPool", "not_per_channel")


@pytest.mark.parametrize("shape", [(8,), (1, 8), (2, 8)], ids=str)
def test_a_row_of_fewer_axes_stays(assert_rejected, shape):
    """It belongs to the last axis, over which the window runs; one of two axes was taken for that of the channels."""
    scale = np.linspace(0.5, 2, int(np.prod(shape))).reshape(shape)
    data = dequantization(parameter((1, 8, 2, 8), precision=np.uint8), scale)
    pool = opset1.avg_pool(data, [2, 2], [0, 0], [0, 0], [2, 2], False)
    assert_rejected(model(pool), "AvgPool", "not_per_channel")


def test_padded_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("AvgPool padded", "channel", 3), "AvgPool", "zero_point")


def test_padded_per_channel(assert_transformed):
    assert_transformed(
        quantized("AvgPool padded", "channel", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,5,5] = AvgPool(x) {exclude-pad=False, kernel=[2, 2], pads_begin=[1, 1], pads_end=[1, 1]}
        y: f32[2,4,5,5] = Multiply(y_original, [0.5,1,1.5,2])
        """,
    )


def test_one_that_rounds_as_pytorch_stays_in_float_where_nothing_reads_integers(assert_rejected):
    """There is no such kernel of integers: they were converted before it, and scaled after it."""
    data = dequantization(parameter((1, 8, -1, -1), precision=np.uint8), 0.5)
    pool = opset14.avg_pool(data, [2, 2], [0, 0], [0, 0], [3, 3], True, "ceil_torch")
    assert_rejected(model(pool), "AvgPool", "ceil_torch")
