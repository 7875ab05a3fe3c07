from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("DepthToSpace", "channel", 3), "DepthToSpace", "per_channel")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("DepthToSpace", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,1,8,8] = DepthToSpace(x) {block_size=2, mode=blocks_first}
        y/DequantizationSubtract: f32[2,1,8,8] = Subtract(y_original, 3)
        y: f32[2,1,8,8] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("DepthToSpace", "space", 3), "DepthToSpace", "not_per_channel")
