from tests.graphs import quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Squeeze", "channel", 3),
        """
        x: u8[2,4,1,4] = Parameter
        y_original: u8[2,4,4] = Squeeze(x, 2:i64)
        y/DequantizationSubtract: f32[2,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_end_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Squeeze end", "channel", 3),
        """
        x: u8[2,4,4,1] = Parameter
        y_original: u8[2,4,4] = Squeeze(x, -1:i64)
        y/DequantizationSubtract: f32[2,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_end_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Squeeze end", "space", 3), "Squeeze", "not_per_channel")
