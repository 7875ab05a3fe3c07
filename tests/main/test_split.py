from tests.graphs import quantized


def test_channels_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Split channels", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,2,4,4], u8[2,2,4,4] = Split(x, 1:i64) {num_splits=2}
        y.1/DequantizationSubtract: f32[2,2,4,4] = Subtract(y_original.1, 3)
        y: f32[2,2,4,4] = Multiply(y.1/DequantizationSubtract, [1.5,2])
        """,
    )


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Split space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,2,4], u8[2,4,2,4] = Split(x, 2:i64) {num_splits=2}
        y.0/DequantizationSubtract: f32[2,4,2,4] = Subtract(y_original.0, 3)
        y: f32[2,4,2,4] = Multiply(y.0/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )
