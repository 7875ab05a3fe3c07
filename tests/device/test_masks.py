"""Masks of booleans, which the CPU plugin stores as integers of 8 bits."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import execution_types
from ovlpt.openvino_api import opset1
from ovlpt.precisions import NUMPY
from tests.conftest import EXACT, assert_close
from tests.lowered import FORMS, weighted
from tests.networks import const, convolution, int8_weights, model, parameter, quantized

_SHAPE = (2, 8, 6, 6)


def _hidden(data, by: float):
    """0 where the data is positive, and -``by`` elsewhere."""
    mask = opset1.convert(opset1.greater(data, const(0.0123)), "f32")
    return opset1.multiply(opset1.subtract(mask, const(1)), const(by))


def _inputs():
    return [np.random.default_rng(0).standard_normal(_SHAPE).astype(np.float32)]


def _open(net):
    net.reshape({net.input(0): [-1, _SHAPE[1], -1, -1]})
    return net


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("kind", ["Convolution", "MatMul"])
def test_a_mask_into_a_layer(by_form, core, form, is_open, kind):
    """It ran in float, where the plugin's own LPT has it in int8."""
    data = parameter(_SHAPE)
    hidden = _hidden(data, 100)
    layer = opset1.matmul(hidden, int8_weights((4, 6)), False, True) if kind == "MatMul" else convolution(hidden, 4)
    net = model([layer, quantized(data, -1.28, 1.27)], data)
    inputs = _inputs()
    expected = by_form(net, inputs)
    net = _open(net) if is_open and kind == "Convolution" else net
    assert_close([by_form(net, inputs, form)], [expected])
    (found,) = weighted(execution_types(ovlpt.compile_model(net, "CPU", EXACT, core=core)))
    assert found.is_int8


def test_a_mask_before_a_quantization(core):
    """No layer converts it to floats."""
    data = parameter(_SHAPE)
    moved = opset1.reshape(_hidden(data, 100), const([0, 0, -1, 1], "i64"), True)
    net = _open(model(convolution(quantized(moved, -100, 0, 255), 4), data))
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    assert "Convert" not in {layer.layer_type for layer in execution_types(compiled).executed}


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_mask_beside_quantized_scores(by_form, core, precision, is_open, first):
    """The zero point of the mask, in steps of the scores, would round these away in bf16 (9 %)."""
    data = parameter(_SHAPE)
    added = [quantized(data, -3, 3, 255), _hidden(data, 100)]
    net = model(opset1.softmax(opset1.add(*(added[::-1] if first else added)), 3), data)
    inputs = _inputs()
    expected = by_form(net, inputs)
    net = _open(net) if is_open else net
    found = ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": precision}, core=core)(inputs)[0]
    assert np.sqrt(((found - expected) ** 2).mean() / (expected**2).mean()) < 0.02


@pytest.mark.parametrize("form", FORMS)
def test_a_mask_that_is_taken_away(by_form, form):
    """Multiplied by -1 and added, the difference became one of floats and integers, and compiling threw."""
    data = parameter(_SHAPE)
    hidden = opset1.reshape(_hidden(data, 100), const([2, 2, 4, 6, 6], "i64"), False)
    difference = opset1.subtract(opset1.transpose(hidden, const([0, 1, 2, 4, 3], "i64")), hidden)
    net, inputs = model([difference, quantized(data, -1.28, 1.27)], data), _inputs()
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)])


@pytest.mark.skipif(not ovlpt.plugin_config.dropped_levels("CPU"), reason="this plugin computes 65536 levels")
@pytest.mark.parametrize("precision", ["u16", "i16"])
def test_a_mask_in_16_bits_whose_end_is_infinite(core, precision):
    """As ONNX Runtime's quantizer writes one of the least number: 65535 steps of its scale, which is rounded up, are beyond
    f32. Stock gives no numbers."""
    x, hides = parameter([1, 4, 8]), parameter([1, 4, 8], name="mask")
    least = np.finfo(np.float32).min
    first = float(np.iinfo(NUMPY[precision]).min)
    levels = opset1.fake_quantize(
        opset1.multiply(hides, const(least)), const(-np.inf), const(0.0), const(first), const(first + 65535.0), 65536
    )
    stored = opset1.convert(opset1.convert(levels, precision), "f32")
    mask = opset1.multiply(opset1.subtract(stored, const(first + 65535.0)), const(-least / np.float32(65535)))
    scores = opset1.matmul(quantized(x, -1.28, 1.27), const(np.eye(8)), False, True)
    net = model(opset1.softmax(opset1.add(scores, mask), 2), [x, hides])
    values = np.round(np.random.default_rng(0).uniform(-1, 1, (1, 4, 8)), 2).astype(np.float32)
    hidden = np.broadcast_to(np.arange(8) >= 5, values.shape).astype(np.float32)
    expected = np.exp(values) * (1 - hidden)
    expected /= expected.sum(2, keepdims=True)
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    np.testing.assert_allclose(compiled([values, hidden])[0], expected, atol=1e-3)
