from tests.graphs import quantized


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("ReduceMean space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4] = ReduceMean(x, [2,3]:i64) {keep_dims=False}
        y/DequantizationSubtract: f32[2,4] = Subtract(y_original, 3)
        y: f32[2,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_space_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("ReduceMean space", "space", 3), "ReduceMean", "reduced_scale")


def test_channels_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("ReduceMean channels", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,1,4,4] = ReduceMean(x, 1:i64) {keep_dims=True}
        y/DequantizationSubtract: f32[2,1,4,4] = Subtract(y_original, 3)
        y: f32[2,1,4,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )
