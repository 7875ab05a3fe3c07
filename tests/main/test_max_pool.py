from tests.graphs import quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("MaxPool", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,3,3] = MaxPool(x) {kernel=[2, 2]}
        y/DequantizationSubtract: f32[2,4,3,3] = Subtract(y_original, 3)
        y: f32[2,4,3,3] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("MaxPool", "space", 3), "MaxPool", "not_per_channel")
