from tests.graphs import quantized


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Gather space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,2,4] = Gather(x, [0,2]:i64, 2:i64) {batch_dims=0}
        y/DequantizationSubtract: f32[2,4,2,4] = Subtract(y_original, 3)
        y: f32[2,4,2,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_space_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Gather space", "space", 3), "Gather", "not_per_channel")


def test_channels_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Gather channels", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,2,4,4] = Gather(x, [3,1]:i64, 1:i64) {batch_dims=0}
        y/DequantizationSubtract: f32[2,2,4,4] = Subtract(y_original, 3)
        y: f32[2,2,4,4] = Multiply(y/DequantizationSubtract, [2,1])
        """,
    )


def test_1_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Gather 1", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,3,4,4] = Gather(x, [3,1,0]:i64, -3:i64)
        y/DequantizationSubtract: f32[2,3,4,4] = Subtract(y_original, 3)
        y: f32[2,3,4,4] = Multiply(y/DequantizationSubtract, [2,1,0.5])
        """,
    )
