import pytest

from tests.graphs import quantized


def test_space_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Pad space", "channel", 3), "Pad", "padded_axes")


PADDED = {
    ("Pad space", "channel", None): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,4,6,6] = Pad(x, [0,0,1,1]:i64, [0,0,1,1]:i64, 0:u8) {pad_mode=constant}
    y: f32[2,4,6,6] = Multiply(y_original, [0.5,1,1.5,2])
    """,
    ("Pad channels", "channel", 3): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,7,4,4] = Pad(x, [0,1,0,0]:i64, [0,2,0,0]:i64, 0:u8) {pad_mode=constant}
    y/DequantizationSubtract: f32[2,7,4,4] = Subtract(y_original, f32[1,7,1,1])
    y: f32[2,7,4,4] = Multiply(y/DequantizationSubtract, f32[1,7,1,1])
    """,
    ("Pad one axis", "channel", 3): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,4,4,5] = Pad(x, [0,0,0,1]:i64, [0,0,0,0]:i64, 0:u8) {pad_mode=constant}
    y/DequantizationSubtract: f32[2,4,4,5] = Subtract(y_original, f32[1,1,1,5])
    y: f32[2,4,4,5] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
    """,
    ("Pad with 2", "channel", 3): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,5,4,4] = Pad(x, [0,1,0,0]:i64, [0,0,0,0]:i64, 2:u8) {pad_mode=constant}
    y/DequantizationSubtract: f32[2,5,4,4] = Subtract(y_original, f32[1,5,1,1])
    y: f32[2,5,4,4] = Multiply(y/DequantizationSubtract, f32[1,5,1,1])
    """,
    ("Pad edge", "channel", 3): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,5,6,4] = Pad(x, [0,1,1,0]:i64, [0,0,1,0]:i64, 0:u8) {pad_mode=edge}
    y/DequantizationSubtract: f32[2,5,6,4] = Subtract(y_original, 3)
    y: f32[2,5,6,4] = Multiply(y/DequantizationSubtract, f32[1,5,1,1])
    """,
    ("Pad reflect", "tensor", 3): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,6,4,4] = Pad(x, [0,1,0,0]:i64, [0,1,0,0]:i64, 0:u8) {pad_mode=reflect}
    y/DequantizationSubtract: f32[2,6,4,4] = Subtract(y_original, 3)
    y: f32[2,6,4,4] = Multiply(y/DequantizationSubtract, 0.5)
    """,
    ("Pad symmetric", "channel", 3): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,5,6,4] = Pad(x, [0,0,2,0]:i64, [0,1,0,0]:i64, 0:u8) {pad_mode=symmetric}
    y/DequantizationSubtract: f32[2,5,6,4] = Subtract(y_original, 3)
    y: f32[2,5,6,4] = Multiply(y/DequantizationSubtract, f32[1,5,1,1])
    """,
    ("Pad crops and adds", "channel", 3): """
    x: u8[2,4,4,4] = Parameter
    y_original: u8[2,5,4,4] = Pad(x, [0,-1,0,0]:i64, [0,2,0,0]:i64, 0:u8) {pad_mode=edge}
    y/DequantizationSubtract: f32[2,5,4,4] = Subtract(y_original, 3)
    y: f32[2,5,4,4] = Multiply(y/DequantizationSubtract, f32[1,5,1,1])
    """,
}


@pytest.mark.parametrize("case", PADDED, ids=str)
def test_padding(case, assert_transformed):
    assert_transformed(quantized(*case), PADDED[case])
