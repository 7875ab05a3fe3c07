"""A tensor that a convolution reads, as u8, and a product of two tensors as its second factor, as i8."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import execution_types
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, assert_close, inputs_of
from tests.lowered import FORMS, weighted
from tests.networks import const, convolution, model, parameter, quantized


def _pair(data, low: float, high: float):
    """As in ONNX files, in i8."""
    scale = (high - low) / 255
    zero_point = round(-128 - low / scale)
    ends = const((-128 - zero_point) * scale), const((127 - zero_point) * scale), const(-128.0), const(127.0)
    stored = opset1.convert(opset1.convert(opset1.fake_quantize(data, *ends, 256), "i8"), "f32")
    shifted = opset1.subtract(stored, const(float(zero_point))) if zero_point else stored
    return opset1.multiply(shifted, const(scale))


def _net(quantize, low: float, high: float, size: int = 16, levels: int = 256):
    """What both read keeps to half of the range of i8, so that no CPU saturates the sum of two products."""
    data, other = parameter([1, 8, 12, size]), parameter([1, 8, 12, size], name="z")
    middle = (low + high) / 2
    kept = opset1.clamp(data, middle - 0.6, middle + 0.6)
    shared = quantize(kept, low, high) if levels == 256 else quantized(kept, low, high, levels)
    first = quantized(other, -1.28, 1.27)
    product = opset1.matmul(first, shared, False, True)
    return model([convolution(shared, 4), product], [data, other])


def _kinds(compiled):
    return {each.layer_type: each.is_int8 for each in weighted(execution_types(compiled))}


def _compared(net, core, infer):
    """The compiled model, whose numbers are those of the simulation."""
    inputs = inputs_of(net)
    compiled = ovlpt.compile_model(net.clone(), "CPU", EXACT, core=core)
    assert_close([np.array(value) for value in compiled(inputs).values()], infer(net, inputs), level=0.02, share=0.01)
    return compiled


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("quantize", [quantized, _pair])
@pytest.mark.parametrize("low, high", [(-1.28, 1.27), (-0.5, 2.05), (0.0, 2.55)])
def test_both_layers(core, infer, by_form, form, is_open, quantize, low, high):
    """Both ran in float; with the plugin's own LPT one does, or both where the data is around zero."""
    net = _net(quantize, low, high)
    inputs = inputs_of(net)
    expected = infer(net.clone(), inputs)
    if is_open:
        net.reshape({port: [-1, 8, -1, 16] for port in net.inputs})
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    assert_close([np.array(value) for value in compiled(inputs).values()], expected, level=0.02, share=0.01)
    assert_close([by_form(net, inputs, form)], expected[:1], level=0.02, share=0.01)
    assert _kinds(compiled) == {"Convolution": True, "MatMul": low == -1.28}


def test_around_zero_to_255_levels(core, infer):
    """The zero point of u8 is rounded, and i8 has none."""
    net = _net(quantized, -1.27, 1.27, levels=255)
    assert _kinds(_compared(net, core, infer)) == {"Convolution": True, "MatMul": True}


def test_a_long_product_with_a_zero_point(core, infer):
    net = _net(quantized, -0.5, 2.05, size=160)
    assert _kinds(_compared(net, core, infer)) == {"Convolution": True, "MatMul": True}


def test_a_convolution_in_float_has_no_say(core, infer):
    data, other = parameter([1, 8, 12, 16]), parameter([1, 8, 12, 16], name="z")
    shared = quantized(opset1.clamp(data, -0.6, 0.6), -1.28, 1.27)
    weights = const(np.random.default_rng(0).standard_normal((4, 8, 1, 1)))
    layer = opset1.convolution(shared, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    first = quantized(other, -1.28, 1.27)
    net = model([layer, opset1.matmul(first, shared, False, True)], [data, other])
    assert _kinds(_compared(net, core, infer)) == {"Convolution": False, "MatMul": True}


def test_a_product_that_reads_it_transposed(core, infer):
    """It is in float, and the convolution in int8."""
    data, other = parameter([1, 8, 12, 16]), parameter([1, 8, 12, 16], name="z")
    shared = quantized(opset1.clamp(data, -0.6, 0.6), -1.28, 1.27)
    moved = opset1.relu(opset1.transpose(shared, const([0, 1, 3, 2], "i64")))
    net = model(
        [convolution(shared, 4), opset1.matmul(quantized(other, -1.28, 1.27), moved, False, False)], [data, other]
    )
    assert _kinds(_compared(net, core, infer))["Convolution"]
