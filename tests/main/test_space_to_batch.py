from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("SpaceToBatch", "channel", 3), "SpaceToBatch", "per_channel")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("SpaceToBatch", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[8,4,2,2] = SpaceToBatch(x, [1,1,2,2]:i64, [0,0,0,0]:i64, [0,0,0,0]:i64)
        y/DequantizationSubtract: f32[8,4,2,2] = Subtract(y_original, 3)
        y: f32[8,4,2,2] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("SpaceToBatch", "space", 3), "SpaceToBatch", "not_per_channel")


def test_padded_per_tensor_zero_point_stays(assert_rejected):
    assert_rejected(quantized("SpaceToBatch padded", "tensor", 3), "SpaceToBatch", "zero_point")


def test_padded_per_tensor(assert_transformed):
    assert_transformed(
        quantized("SpaceToBatch padded", "tensor", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[8,4,3,2] = SpaceToBatch(x, [1,1,2,2]:i64, [0,0,2,0]:i64, [0,0,0,0]:i64)
        y: f32[8,4,3,2] = Multiply(y_original, 0.5)
        """,
    )
