from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("BatchToSpace", "channel", 3), "BatchToSpace", "per_channel")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("BatchToSpace", "tensor", 3),
        """
        x: u8[4,4,4,4] = Parameter
        y_original: u8[1,4,8,8] = BatchToSpace(x, [1,1,2,2]:i64, [0,0,0,0]:i64, [0,0,0,0]:i64)
        y/DequantizationSubtract: f32[1,4,8,8] = Subtract(y_original, 3)
        y: f32[1,4,8,8] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("BatchToSpace", "space", 3), "BatchToSpace", "not_per_channel")
