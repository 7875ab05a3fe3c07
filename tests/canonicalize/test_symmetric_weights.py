from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import Transformed, run
from tests.graphs import dequantization, f32, fake_quantize, model, parameter

KINDS = ("CoarserIntegerWeights", "SymmetricIntegerWeights", "SymmetricQuantizedWeights")


def convolution(weights):
    data = fake_quantize(parameter((1, 4, 6, 6)), 0, 2.55)
    return model(opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1]))


def stored(values, zero_point, kind=np.uint8):
    scale = np.linspace(0.01, 0.03, 3).reshape(3, 1, 1, 1)
    return dequantization(opset1.constant(values.astype(kind)), scale, zero_point, "w")


def integers(low, high, seed=0):
    """With both ends among them."""
    values = np.random.default_rng(seed).integers(low, high + 1, (3, 4, 1, 1))
    values.flat[:2] = low, high
    return values


def quantized(low, high, levels, values=None):
    if values is None:
        values = np.linspace(np.min(low), np.max(high), 12).reshape(3, 4, 1, 1)
    return opset1.fake_quantize(f32(values), f32(low), f32(high), f32(low), f32(high), levels)


def said(result):
    return [(event.outcome, event.reason.code) for event in result.trace if event.transformation in KINDS]


AFTER = """
x: f32[1,4,6,6] = Parameter
fq: u8[1,4,6,6] = FakeQuantize(x, 0, 2.55, 0, 255) {levels=256}
y_original: f32[1,3,6,6] = Convolution(fq, i8[3,4,1,1])
y: f32[1,3,6,6] = Multiply(y_original, SCALE)
"""


@pytest.mark.parametrize(
    "weights",
    [
        lambda: stored(integers(0, 255), 128),
        lambda: stored(integers(60, 215), 120),
        lambda: stored(integers(30, 150), np.array([128, 140, 30]).reshape(3, 1, 1, 1)),
        lambda: stored(integers(0, 127), None),
        lambda: stored(integers(-20, 100), 10, np.int8),
    ],
    ids=["around 128", "around 120", "per channel", "no zero point", "i8"],
)
def test_stored_integers(assert_transformed, weights):
    result = assert_transformed(convolution(weights()), AFTER.replace("SCALE", "[0.0001,0.0002,0.0003]"))
    assert said(result) == [(Outcome.TRANSFORMED, "weights_zero_point")]
    kept = Transformed(convolution(weights()), Params(native_only=True))
    assert said(kept) == []


@pytest.mark.parametrize(
    "low, high, levels, step",
    [(-1.5, 1.5, 15, 1.5 / 7), (-2, 1.75, 16, 0.25), (-63, 63, 127, 1), (-0.25, 0.75, 101, 0.01), (0, 1, 128, 1 / 127)],
)
def test_grids_with_a_zero(assert_transformed, low, high, levels, step):
    result = assert_transformed(convolution(quantized(low, high, levels)), AFTER.replace("SCALE", f"{0.01 * step:.6g}"))
    assert said(result) == [(Outcome.TRANSFORMED, "weights_grid")]


def test_an_asymmetric_interval_whose_values_fit(assert_transformed):
    """Of the 256 levels from -64 to 191 only those up to 127 occur."""
    values = np.linspace(-64, 120, 12).reshape(3, 4, 1, 1)
    assert_transformed(convolution(quantized(-64.0, 191.0, 256, values)), AFTER.replace("SCALE", "0.01"))


def test_channels_of_one_value():
    high = np.array([0, 2, -0.5]).reshape(3, 1, 1, 1)
    low = np.array([0, -2, -0.5]).reshape(3, 1, 1, 1)
    result = Transformed(convolution(quantized(low, high, 17)))
    assert said(result) == [(Outcome.TRANSFORMED, "weights_grid")]
    result.assert_numbers()


@pytest.mark.parametrize(
    "weights, code",
    [
        (lambda: stored(integers(0, 255), 120), "weights_range"),
        (lambda: stored(integers(0, 255), 127.5), "fractional_zero_point"),
        (lambda: quantized(-1, 1, 256), "weights_grid"),  # zero lies between two levels
        (lambda: quantized(-1, 1.4, 256), "weights_grid"),
        (lambda: quantized(-64.0, 191.0, 256), "weights_range"),
        (lambda: quantized(-1, 1, 513), "weights_range"),
    ],
)
def test_refusals(weights, code):
    result = Transformed(convolution(weights()))
    assert said(result) == [(Outcome.REJECTED, code)]
    result.assert_numbers()


@pytest.mark.parametrize("weights", [lambda: quantized(-1, 1, 255), lambda: stored(integers(-100, 100), None, np.int8)])
def test_what_low_precision_takes_is_no_concern(weights):
    assert said(Transformed(convolution(weights()))) == []


def test_constants_that_are_no_weights_are_no_concern():
    data = fake_quantize(parameter((1, 4, 6, 6)), 0, 2.55)
    assert said(Transformed(model(opset1.add(data, quantized(-1.5, 1.5, 15, np.ones((1, 4, 1, 1))))))) == []


@pytest.mark.parametrize("scale", [0.01, np.linspace(0.01, 0.03, 3).reshape(3, 1)], ids=["per tensor", "by row"])
def test_weights_that_stand_first(scale):
    """In a MatMul: by data, where a FakeQuantize in this place is one of data."""

    def product(data, native_only=False):
        values = np.random.default_rng(0).integers(-128, 128, (3, 4)) * scale
        weights = fake_quantize(f32(values), -128 * scale, 127 * scale)
        return Transformed(model(opset1.matmul(weights, data, False, False)), Params(native_only=native_only))

    result = product(fake_quantize(parameter((2, 4, 5)), -1.28, 1.27))
    assert said(result) == [(Outcome.TRANSFORMED, "weights_grid")]
    layer = next(node for node in result.after.get_ops() if node.get_type_name() == "MatMul")
    assert [value.get_element_type().get_type_name() for value in layer.input_values()] == ["i8", "i8"]
    result.assert_numbers(1e-6)
    assert said(product(fake_quantize(parameter((2, 4, 5)), -1.28, 1.27), native_only=True)) == []
    product(parameter((2, 4, 5))).assert_numbers(1e-6)


def depthwise(values, last):
    """``last``: weights that are stored with the channels last, as in TFLite files, and moved."""
    shape = (1, 3, 2, 2) if last else (2, 1, 1, 3, 2)
    w = dequantization(opset1.constant(values.astype(np.uint8).reshape(shape)), 0.01, 120.0, "w")
    if last:
        w = opset1.transpose(opset1.reshape(w, np.array([3, 2, 2, 1, 1]), False), np.array([2, 3, 4, 0, 1]))
    data = fake_quantize(parameter((1, 2, 6, 6)), 0, 2.55)
    return model(opset1.group_convolution(data, w, [1, 1], [0, 0], [0, 0], [1, 1]))


def product(values, transposed):
    shape = (3, 4) if transposed else (4, 3)
    w = dequantization(opset1.constant(values.astype(np.uint8).reshape(shape)), 0.01, 120.0, "w")
    return model(opset1.matmul(fake_quantize(parameter((2, 4)), 0, 2.55), w, False, transposed))


@pytest.mark.parametrize(
    "layer",
    [
        lambda values: convolution(stored(values, 120)),
        lambda values: depthwise(values, False),
        lambda values: depthwise(values, True),
        lambda values: product(values, False),
        lambda values: product(values, True),
    ],
    ids=["Convolution", "GroupConvolution", "GroupConvolution, channels last", "MatMul", "MatMul, transposed"],
)
def test_a_coarser_step_where_it_is_asked_for(layer):
    """Of the output channel that reaches beyond i8; the others keep their integers."""
    values = integers(60, 180)
    values.flat[0] = 255
    net = layer(values)
    result = Transformed(net, Params(coarser_weights=True))
    assert said(result) == [(Outcome.TRANSFORMED, "weights_range")]
    kind = net.get_results()[0].input_value(0).get_node().get_type_name()
    read = next(node for node in result.after.get_ops() if node.get_type_name() == kind)
    assert [value.get_element_type().get_type_name() for value in read.input_values()] == ["u8", "i8"]
    given = np.random.default_rng(0).uniform(0, 2.55, tuple(net.inputs[0].shape)).astype(np.float32)
    before, after = (run(each, [given], 1)[0] for each in (net, result.after))
    axis = 1 if kind != "MatMul" else before.ndim - 1
    apart = np.abs(before - after).max(tuple(at for at in range(before.ndim) if at != axis))
    assert (apart > 1e-4).sum() == 1
    assert apart[0] < 0.02 * np.abs(before).max()


def test_no_coarser_step_without_need():
    exact = Transformed(convolution(stored(integers(60, 215), 120)), Params(coarser_weights=True))
    assert said(exact) == [(Outcome.TRANSFORMED, "weights_zero_point")]
    fractional = Transformed(convolution(stored(integers(0, 255), 127.5)), Params(coarser_weights=True))
    assert said(fractional) == [(Outcome.REJECTED, "fractional_zero_point")]
