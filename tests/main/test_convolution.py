from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Convolution", "channel", 3), "Convolution", "per_channel_activations")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Convolution", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y_original: f32[2,3,4,4] = Convolution(y/ZeroPoint, i8[3,4,1,1])
        y: f32[2,3,4,4] = Multiply(y_original, [0.005,0.01,0.015])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Convolution", "space", 3), "Convolution", "not_per_channel")


def test_zero_point_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Convolution zero point", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y/WeightsZeroPoint: f32[3,4,1,1] = Subtract(i8[3,4,1,1], [3,3,3]:i8)
        y_original: f32[2,3,4,4] = Convolution(y/ZeroPoint, y/WeightsZeroPoint)
        y: f32[2,3,4,4] = Multiply(y_original, 0.005)
        """,
    )
