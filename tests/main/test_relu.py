from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Relu", "channel", 3), "Relu", "zero_point")


def test_per_channel(assert_transformed):
    assert_transformed(
        quantized("Relu", "channel", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4,4] = Relu(x)
        y: f32[2,4,4,4] = Multiply(y_original, [0.5,1,1.5,2])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Relu", "space", 3), "Relu", "not_per_channel")
