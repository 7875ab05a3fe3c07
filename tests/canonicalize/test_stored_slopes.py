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
    assert [event.reason.code for event in result.trace if event.transformation == "StoredSlopes"] == ["stored_slope"]
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
    assert not [event for event in result.trace if event.transformation == "StoredSlopes"]
