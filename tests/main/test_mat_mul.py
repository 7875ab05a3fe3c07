from tests.graphs import quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("MatMul", "channel", 3),
        """
        x: u8[2,3,4] = Parameter
        y_original: f32[2,3,5] = MatMul(x, i8[5,4]) {transpose_b=True}
        y/DequantizationSubtract: f32[2,3,5] = Subtract(y_original, f32[1,1,5])
        y: f32[2,3,5] = Multiply(y/DequantizationSubtract, [0.005,0.0125,0.02])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("MatMul", "space", 3), "MatMul", "contracted_scale")


def test_2_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("MatMul 2", "tensor", 3),
        """
        x: u8[3,4] = Parameter
        y_original: f32[3,5] = MatMul(x, i8[4,5])
        y/DequantizationSubtract: f32[3,5] = Subtract(y_original, f32[1,5])
        y: f32[3,5] = Multiply(y/DequantizationSubtract, 0.01)
        """,
    )


def test_transposed_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("MatMul transposed", "tensor", 3),
        """
        x: u8[2,4,3] = Parameter
        y_original: f32[2,3,5] = MatMul(x, i8[4,5]) {transpose_a=True}
        y/DequantizationSubtract: f32[2,3,5] = Subtract(y_original, f32[1,1,5])
        y: f32[2,3,5] = Multiply(y/DequantizationSubtract, 0.01)
        """,
    )
