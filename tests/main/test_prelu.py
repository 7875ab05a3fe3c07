from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("PRelu", "channel", 3), "PRelu", "zero_point")


def test_per_channel(assert_transformed):
    assert_transformed(
        quantized("PRelu", "channel", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = PRelu(x, [0.1,0.2,0.3,0.4])
        y: f32[2,4,4,4] = Multiply(y_original, [0.5,1,1.5,2])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("PRelu", "space", 3), "PRelu", "not_per_channel")
