from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Clamp", "channel", 3), "Clamp", "per_channel")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Clamp", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = Clamp(x) {max=5.0, min=3.2}
        y/DequantizationSubtract: f32[2,4,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Clamp", "space", 3), "Clamp", "not_per_channel")
