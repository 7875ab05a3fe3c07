from tests.graphs import quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Concat", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,8,4,4] = Concat(x, x) {axis=1}
        y/DequantizationSubtract: f32[2,8,4,4] = Subtract(y_original, 3)
        y: f32[2,8,4,4] = Multiply(y/DequantizationSubtract, f32[1,8,1,1])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Concat", "space", 3), "Concat", "off_concat_axis")


def test_space_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Concat space", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,8,4] = Concat(x, x) {axis=2}
        y/DequantizationSubtract: f32[2,4,8,4] = Subtract(y_original, 3)
        y: f32[2,4,8,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )
