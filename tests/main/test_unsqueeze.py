from tests.graphs import quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Unsqueeze", "channel", 3),
        """
        x: u8[2,4,4] = Parameter
        y_original: u8[2,4,1,4] = Unsqueeze(x, 2:i64)
        y/DequantizationSubtract: f32[2,4,1,4] = Subtract(y_original, 3)
        y: f32[2,4,1,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Unsqueeze", "space", 3), "Unsqueeze", "not_per_channel")


def test_front_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Unsqueeze front", "channel", 3),
        """
        x: u8[2,4,4] = Parameter
        y_original: u8[2,1,4,4] = Unsqueeze(x, 1:i64)
        y/DequantizationSubtract: f32[2,1,4,4] = Subtract(y_original, 3)
        y: f32[2,1,4,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )
