from tests.graphs import quantized


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
