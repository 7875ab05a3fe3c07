from tests.graphs import quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("GroupConvolution", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y_original: f32[2,4,4,4] = GroupConvolution(y/ZeroPoint, i8[4,1,1,3,3]) {pads_begin=[1, 1], pads_end=[1, 1]}
        y: f32[2,4,4,4] = Multiply(y_original, [0.005,0.02,0.045,0.08])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("GroupConvolution", "space", 3), "GroupConvolution", "not_per_channel")
