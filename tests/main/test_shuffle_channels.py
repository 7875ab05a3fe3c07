import numpy as np

from ovlpt.openvino_api import opset8
from tests.graphs import dequantization, model, parameter, quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("ShuffleChannels", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = ShuffleChannels(x) {axis=1, group=2}
        y/DequantizationSubtract: f32[2,4,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4,4] = Multiply(y/DequantizationSubtract, [0.5,1.5,1,2])
        """,
    )


def test_a_scale_by_column_of_fewer_axes(assert_transformed):
    """It gets all axes, as in the native pass: without those of rows and columns, a later pass takes it for one by channel."""
    x = parameter((2, 4, 4, 4), precision=np.uint8)
    scaled = dequantization(x, np.float32([[0.5, 1.5, 1, 2]]), 3)
    transformed = assert_transformed(
        model(opset8.shuffle_channels(scaled, 1, 2)),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = ShuffleChannels(x) {axis=1, group=2}
        y/DequantizationSubtract: f32[2,4,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4,4] = Multiply(y/DequantizationSubtract, [0.5,1.5,1,2])
        """,
    )
    (scale,) = (node for node in transformed.after.get_ops() if node.get_friendly_name() == "y")
    assert list(scale.get_input_shape(1)) == [1, 1, 1, 4]
