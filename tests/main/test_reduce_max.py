from tests.graphs import quantized


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("ReduceMax space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,1,1] = ReduceMax(x, [2,3]:i64) {keep_dims=True}
        y/DequantizationSubtract: f32[2,4,1,1] = Subtract(y_original, 3)
        y: f32[2,4,1,1] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_space_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("ReduceMax space", "space", 3), "ReduceMax", "reduced_scale")
