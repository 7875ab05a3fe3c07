from tests.graphs import quantized


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("GatherElements space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,3,4] = GatherElements(x, i64[2,4,3,4]) {axis=2}
        y/DequantizationSubtract: f32[2,4,3,4] = Subtract(y_original, 3)
        y: f32[2,4,3,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_channels_per_channel_stays(assert_rejected):
    assert_rejected(quantized("GatherElements channels", "channel", None), "GatherElements", "gathered_scale")
