import numpy as np
import pytest

import ovlpt
from ovlpt.openvino_api import opset1
from tests import graphs
from tests.conftest import EXACT
from tests.lowered import drop_in
from tests.networks import const, int8_weights, model, parameter, quantized


def test_space_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(graphs.quantized("Pad space", "channel", 3), "Pad", "padded_axes")


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
    assert_transformed(graphs.quantized(*case), PADDED[case])


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize(("low", "value"), [(0, 0.5), (-1, 0), (-100, 1)])
@pytest.mark.parametrize("axis", [1, 2])
def test_padding_along_an_axis_of_one_element(core, how, low, value, axis):
    """The scale and zero point of the data were those of the padding, too, in stock as well."""
    x, ones = parameter([1, 1, 1, 3]), [int(each == axis) for each in range(4)]
    padded = opset1.pad(quantized(x, low, low + 255), const(ones, "i64"), const(ones, "i64"), "constant", const(value))
    channels = 3 if axis == 1 else 1
    weights = int8_weights([8, channels, 1, 1])
    net = model(opset1.convolution(padded, weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)
    data = np.array([[[[low, low + 100, low + 255]]]], np.float32)
    widths = [(each, each) for each in ones]
    (stored,) = core.compile_model(model(weights, parameter([1])), "CPU")([np.zeros(1, np.float32)]).values()
    expected = np.einsum("oi,bihw->bohw", stored[:, :, 0, 0], np.pad(data, widths, constant_values=value))
    (found,) = core.compile_model(how(net, core=core), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})([data]).values()
    assert np.abs(found - expected).max() <= 1e-3 * np.abs(expected).max()
