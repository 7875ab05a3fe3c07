from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(
        quantized("GroupConvolutionBackpropData", "channel", 3),
        "GroupConvolutionBackpropData",
        "per_channel_activations",
    )


def test_a_scale_of_the_weights_by_output_channel(assert_transformed):
    assert_transformed(
        quantized("GroupConvolutionBackpropData", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, 3:u8)
        y_original: f32[2,6,8,8] = GroupConvolutionBackpropData(y/ZeroPoint, i8[2,2,3,2,2]) {output_padding=[0, 0], strides=[2, 2]}
        y: f32[2,6,8,8] = Multiply(y_original, f32[1,6,1,1])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(
        quantized("GroupConvolutionBackpropData", "space", 3), "GroupConvolutionBackpropData", "not_per_channel"
    )
