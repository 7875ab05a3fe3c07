from tests.graphs import quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("NormalizeL2", "channel", 3), "NormalizeL2", "zero_point")


def test_per_channel_stays(assert_rejected):
    assert_rejected(quantized("NormalizeL2", "channel", None), "NormalizeL2", "per_channel")


def test_per_tensor(assert_transformed):
    assert_transformed(
        quantized("NormalizeL2", "tensor", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = NormalizeL2(x, 1:i64) {eps=3.999999886872274e-09, eps_mode=add}
        y: f32[2,4,4,4] = Multiply(y_original, 1)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("NormalizeL2", "space", 3), "NormalizeL2", "not_per_channel")


def test_all_per_tensor(assert_transformed):
    assert_transformed(
        quantized("NormalizeL2 all", "tensor", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = NormalizeL2(x, [1,2,3]:i64) {eps=3.999999886872274e-09, eps_mode=add}
        y: f32[2,4,4,4] = Multiply(y_original, 1)
        """,
    )
