from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import Constant, Model, opset1
from tests.conftest import Transformed
from tests.graphs import f32, fake_quantize, model, parameter
from tests.test_beyond_native import convolution

_SHAPE = (1, 16, 8, 8)


def integers():
    """0.05 to 0.4, and again."""
    stored = opset1.constant(np.tile(np.arange(1, 9, dtype=np.int8), 2))
    return opset1.multiply(opset1.convert(stored, "f32"), f32(0.05))


def rounded():
    return fake_quantize(f32(np.linspace(0.05, 0.4, 16)), 0.0, 0.5)


def graph(slope, low: float = -1.28, high: float = 1.27) -> Model:
    return model(convolution(opset1.prelu(fake_quantize(parameter(_SHAPE), low, high), slope)))


@pytest.mark.parametrize("slope", [integers, rounded])
def test_the_dequantization_passes(slope):
    result = Transformed(graph(slope()))
    activation = next(node for node in result.after.get_ops() if node.get_type_name() == "PRelu")
    assert isinstance(activation.input_value(1).get_node(), Constant)
    assert result.transformed("PRelu")
    assert [event.reason.code for event in result.trace if event.transformation == "StoredOperands"] == [
        "stored_operand"
    ]
    result.assert_numbers()


def test_data_that_is_never_negative_stays_integers():
    result = Transformed(graph(integers(), 0.0, 2.55))
    assert result.transformed("Convolution")
    result.assert_numbers()


def test_with_native_only_it_is_said_how_the_slope_is_stored():
    result = Transformed(graph(integers()), Params(native_only=True))
    said = [event.reason for event in result.trace if event.reason and event.reason.code == "not_constant"]
    assert {reason.text for reason in said} == {"the slope is not stored as a constant"}


def test_a_slope_of_data_is_no_concern():
    slope = parameter((16,), "slope")
    result = Transformed(graph(slope))
    assert not [event for event in result.trace if event.transformation == "StoredOperands"]


def padded(value, mode: str = "constant", widths: tuple[int, int] = (1, 1)) -> Model:
    begin, end = ([0, 0, 0, width] for width in widths)
    data = fake_quantize(parameter(_SHAPE), 0.0, 2.55)
    return model(convolution(opset1.pad(data, opset1.constant(begin), opset1.constant(end), mode, value)))


def stored(value: int, zero_point: int):
    integer, shift = (opset1.convert(opset1.constant(np.uint8(each)), "f32") for each in (value, zero_point))
    return opset1.multiply(opset1.subtract(integer, shift), f32(0.05))


@pytest.mark.parametrize("value", [128, 168])
def test_the_dequantization_passes_a_pad_with_a_stored_value(value):
    """As ONNX Runtime's quantizer shares one 0 between quantized operations and pads: reading it threw."""
    result = Transformed(padded(stored(value, 128)))
    assert result.transformed("Pad")
    assert result.transformed("Convolution") == (value == 128)  # else the scale differs along the padded axis
    result.assert_numbers()


@pytest.mark.parametrize("mode", ["constant", "reflect"])
@pytest.mark.parametrize("widths", [(1, 1), (-1, 0)])
@pytest.mark.parametrize("native_only", [False, True])
def test_a_padding_value_of_data_is_refused(mode, widths, native_only):
    value = parameter((), "value")
    result = Transformed(padded(value, mode, widths), Params(native_only=native_only))
    said = [event.reason.text for event in result.trace if event.reason and event.reason.code == "not_constant"]
    assert said == (["the padding value is not stored as a constant"] if mode == "constant" else [])
