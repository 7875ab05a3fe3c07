from tests.graphs import quantized


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("StridedSlice space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,2,2] = StridedSlice(x, [0,0,1,0]:i64, [0,0,3,4]:i64, [1,1,1,2]:i64) {begin_mask=[1, 1, 0, 0], ellipsis_mask=[], end_mask=[1, 1, 0, 0], new_axis_mask=[], shrink_axis_mask=[]}
        y/DequantizationSubtract: f32[2,4,2,2] = Subtract(y_original, 3)
        y: f32[2,4,2,2] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_channels_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("StridedSlice channels", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,2,4,4] = StridedSlice(x, [0,1]:i64, [0,4]:i64, [1,2]:i64) {begin_mask=[1, 0], ellipsis_mask=[], end_mask=[1, 0], new_axis_mask=[], shrink_axis_mask=[]}
        y/DequantizationSubtract: f32[2,2,4,4] = Subtract(y_original, 3)
        y: f32[2,2,4,4] = Multiply(y/DequantizationSubtract, [1,2])
        """,
    )


def test_one_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("StridedSlice one", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,4] = StridedSlice(x, [0,0,1]:i64, [0,0,2]:i64, [1,1,1]:i64) {begin_mask=[1, 1, 0], ellipsis_mask=[], end_mask=[1, 1, 0], new_axis_mask=[], shrink_axis_mask=[0, 0, 1]}
        y/DequantizationSubtract: f32[2,4,4] = Subtract(y_original, 3)
        y: f32[2,4,4] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )
