from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(
        quantized("ConvolutionBackpropData", "channel", 3), "ConvolutionBackpropData", "per_channel_activations"
    )


def test_a_scale_of_the_weights_by_output_channel(assert_transformed):
    assert_transformed(
        quantized("ConvolutionBackpropData", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, 3:u8)
        y_original: f32[2,3,8,8] = ConvolutionBackpropData(y/ZeroPoint, i8[4,3,2,2]) {output_padding=[0, 0], strides=[2, 2]}
        y: f32[2,3,8,8] = Multiply(y_original, [0.005,0.01,0.015])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("ConvolutionBackpropData", "space", 3), "ConvolutionBackpropData", "not_per_channel")
