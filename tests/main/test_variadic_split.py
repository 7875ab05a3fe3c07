from tests.graphs import quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("VariadicSplit", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,1,4,4], u8[2,3,4,4] = VariadicSplit(x, 1:i64, [1,3]:i64)
        y.1/DequantizationSubtract: f32[2,3,4,4] = Subtract(y_original.1, 3)
        y: f32[2,3,4,4] = Multiply(y.1/DequantizationSubtract, [1,1.5,2])
        """,
    )
