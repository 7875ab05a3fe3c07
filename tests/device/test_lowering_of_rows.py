"""Intervals by rows or columns after a product, which the plugin fuses into it along another axis."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import ovlpt
from ovlpt.device import instruction_sets, subprocess_call
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Core, Model, PartialShape, opset1
from tests.conftest import EXACT, TRUTH, assert_close
from tests.lowered import FORMS
from tests.networks import const, model, parameter, quantized

_ROWS, _SIZE = 12, 16
_HIGHEST = np.linspace(0.2, 2, _ROWS, dtype=np.float32)


def _quantize(values: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    step = (high - low) / np.float32(255)
    return np.round((np.clip(values, low, high) - low) / step) * step + low


def _softmax(values: np.ndarray) -> np.ndarray:
    found = np.exp(values - values.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)


# What follows a product, and the same in numpy, by the ends of an interval
AFTER = {
    "activation": (
        lambda s, ends: opset1.fake_quantize(opset1.tanh(s), *ends, *ends, 256),
        lambda s, high: _quantize(np.tanh(s), -high, high),
    ),
    "scale after an activation": (
        lambda s, ends: quantized(opset1.multiply(opset1.tanh(s), ends[1]), -1, 1.25),
        lambda s, high: _quantize(np.tanh(s) * high, -1, 1.25),
    ),
    "scores": (
        lambda s, ends: opset1.softmax(opset1.fake_quantize(s, *ends, *ends, 256), 2),
        lambda s, high: _softmax(_quantize(s, -high, high)),
    ),
    "Relu": (
        lambda s, ends: opset1.fake_quantize(opset1.relu(s), const(0), ends[1], const(0), ends[1], 256),
        lambda s, high: _quantize(np.maximum(s, 0), 0, high),
    ),
}


def product(after: str, axis: str) -> tuple[Model, list[np.ndarray], np.ndarray]:
    """A product of two tensors and what follows it, of one head; inputs; and the result by numpy."""
    high = _HIGHEST.reshape((1, _ROWS, 1) if axis == "rows" else (1, 1, _ROWS))
    factors = [parameter([1, _ROWS, _SIZE], name=name) for name in ("q", "k")]
    follows, by_numpy = AFTER[after]
    scores = opset1.matmul(*(quantized(each, -2, 2) for each in factors), False, True)
    net = model(follows(scores, [const(-high), const(high)]), factors)
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (1, _ROWS, _SIZE)).astype(np.float32) for seed in range(2)]
    first, second = (_quantize(values, -2, 2) for values in inputs)
    return net, inputs, by_numpy(first @ second.swapaxes(1, 2), high)


@pytest.mark.parametrize("threads", [{}, {"INFERENCE_NUM_THREADS": 1}], ids=["threads", "one thread"])
@pytest.mark.parametrize("sizes", [(1, 12, 16), (-1, 12, 16), (1, -1, 16)], ids=["fixed", "batch", "rows"])
@pytest.mark.parametrize("axis", ["rows", "columns"])
@pytest.mark.parametrize("after", AFTER)
def test_an_interval_by_rows_or_columns_of_a_product(core, by_form, after, axis, sizes, threads):
    """The one of a row was read as that of a column, stock and simulation likewise; of open sizes one of columns threw."""
    net, inputs, expected = product(after, axis)
    net.reshape({net.inputs[0]: sizes, net.inputs[1]: (sizes[0], _ROWS, _SIZE)})
    found = {form: by_form(net, inputs, form, **threads) for form in FORMS}
    found["simulation"] = simulate(net, core, properties=threads)(inputs)[0]
    level = 0.02 * float(np.abs(expected).max())
    assert {form for form, values in found.items() if np.abs(values - expected).max() > level} == set()


@pytest.mark.parametrize("threads", [{}, {"INFERENCE_NUM_THREADS": 1}], ids=["threads", "one thread"])
@pytest.mark.parametrize("sizes", [(1, 12, 16), (-1, 12, 16), (1, -1, 16)], ids=["fixed", "batch", "rows"])
@pytest.mark.parametrize("factor", ["weights", "tensor"])
@pytest.mark.parametrize(
    "other", [lambda scores: scores, opset1.sqrt, partial(opset1.softmax, axis=2)], ids=["output", "root", "softmax"]
)
def test_an_interval_by_rows_of_a_product_that_others_read(core, by_form, other, factor, sizes, threads):
    """Nothing fuses it, and nothing has to keep it apart: that was a layer more."""
    random = np.random.default_rng(0)
    values = [random.uniform(-1, 1, (1, _ROWS, _SIZE)).astype(np.float32) for _ in range(2)]
    data = [parameter([1, _ROWS, _SIZE], name=name) for name in ("q", "k")[: 1 + (factor == "tensor")]]
    scores = opset1.matmul(data[0], data[1] if factor == "tensor" else const(values[1][0]), False, True)
    high = _HIGHEST.reshape(1, _ROWS, 1)
    quantize = opset1.fake_quantize(scores, const(-high), const(high), const(-high), const(high), 256)
    net = model([quantize, other(scores)], data)
    net.reshape({each: (sizes[0], sizes[1] if each is net.inputs[0] else _ROWS, _SIZE) for each in net.inputs})
    inputs, product = values[: len(data)], values[0] @ values[1].swapaxes(1, 2)
    for form in FORMS:
        found = by_form(net, inputs, form, **threads)
        assert np.abs(found - _quantize(product, -high, high)).max() < 0.02
    mine = ovlpt.compile_model(net, "CPU", EXACT | threads, core=core)
    kinds = [layer.layer_type for layer in ovlpt.execution_types(mine).executed]
    assert len(kinds) <= (2 if other(scores) is scores else 3), kinds


@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize(
    ("rank", "quantized_there", "axis"),
    [(4, "scores", "rows"), (3, "probabilities", "rows"), (4, "probabilities", "rows"), (3, "scores", "columns")],
)
def test_an_interval_of_an_attention_whose_rank_is_open(core, infer, rank, quantized_there, axis, serializable):
    """Once the rank was known, the plugin read the interval of a row elsewhere, or threw: it ran out of registers, or had no
    kernel for it.
    """
    leading, high = [1] * (rank - 2), _HIGHEST.reshape((_ROWS, 1) if axis == "rows" else (1, _ROWS)) / 2
    ends = [const(sign * high.reshape([*leading, *high.shape])) for sign in (-1, 1)]
    q, k, v = (opset1.parameter(PartialShape.dynamic(), np.float32, name) for name in "qkv")
    scores, at_scores = opset1.matmul(q, k, False, True), quantized_there == "scores"
    if at_scores:
        scores = opset1.fake_quantize(scores, *ends, *ends, 256)
    probabilities = opset1.softmax(scores, rank - 1)
    if not at_scores:
        probabilities = opset1.fake_quantize(probabilities, *ends, *ends, 256)
    net = model(opset1.matmul(probabilities, quantized(v, -1, 1), False, False), [q, k, v])
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    lowered.reshape({port: PartialShape([-1] * rank) for port in lowered.inputs})
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (*leading, _ROWS, 4)).astype(np.float32) for seed in range(3)]
    summed = inputs[0] @ inputs[1].swapaxes(-1, -2)
    shares = _softmax(_quantize(summed, -high, high) if at_scores else summed)
    expected = (shares if at_scores else _quantize(shares, -high, high)) @ _quantize(inputs[2], -1, 1)
    (found,) = infer(lowered, inputs, "NO")
    assert np.abs(found - expected).max() <= 0.02 * np.abs(expected).max()


def test_scores_with_a_scale_by_head_that_are_quantized_before_a_mask(core, by_form):
    """With AVX-512, of an open batch: compiling threw, as the Subgraph had no registers for two ends by head."""
    scale, random = np.reshape([0.8, 0.3], (1, 2, 1, 1)), np.random.default_rng(0)
    shape, mask = (1, 2, 80, 1), random.choice([0, -100], (1, 2, 80, 80), p=[0.8, 0.2]).astype(np.float32)
    data = [parameter([-1, *shape[1:]], name=name) for name in "qkv"]
    q, k, v = quantized(data[0], -1, 2), *(quantized(each, -1, 1, levels=255) for each in data[1:])
    scores = quantized(opset1.multiply(opset1.matmul(q, k, False, True), const(scale)), 0, 2.55)
    shares = quantized(opset1.softmax(opset1.add(scores, const(mask)), 3), 0, 1)
    net = model(opset1.matmul(shares, v, False, False), data)
    inputs = [random.uniform(-1, 1, shape).astype(np.float32) for _ in data]
    for form in FORMS:
        assert_close(by_form(net, inputs, form), simulate(net, core)(inputs)[0], 0.02)


def _by_channel_after_a_matmul(kind):
    """A network of one MatMul with weights and what varies by channel after it, its data and what it gives in numpy."""
    random, last = np.random.default_rng(0), 0.0
    kernel, data = (
        random.uniform(-0.9, 0.9, (8, 8)).astype(np.float32),
        random.uniform(-1, 1, (2, 8, 3, 8)).astype("f4"),
    )
    by_channel = np.linspace(-0.3, 0.6, 8, dtype=np.float32)
    x = parameter([2, 8, 3, 8], name="x")
    node = opset1.matmul(quantized(x, -1.28, 1.27), quantized(const(kernel), -1, 1), False, True)
    if kind == "slopes after a bias":
        last = np.linspace(-1, 1, 8, dtype=np.float32)
        node = opset1.add(node, const(last))
    scale = by_channel.reshape(1, 8, 1, 1)
    node = opset1.multiply(node, const(scale)) if kind == "scale" else opset1.prelu(node, const(by_channel))
    summed = _quantize(data, np.float32(-1.28), np.float32(1.27)) @ _quantize(kernel, -1, 1).T + last
    return model(node, [x]), data, np.where((summed > 0) & (kind != "scale"), summed, summed * scale)


@pytest.mark.parametrize("threads", [{}, {"INFERENCE_NUM_THREADS": 1}], ids=["threads", "one thread"])
@pytest.mark.parametrize("sizes", [(2, 8, 3, 8), (-1, 8, 3, 8), (2, 8, -1, 8), (-1, -1, -1, 8)])
@pytest.mark.parametrize("kind", ["slopes", "slopes after a bias", "scale"])
def test_what_varies_by_channel_after_a_matmul_with_weights(core, by_form, kind, sizes, threads):
    """Slopes were read as those of columns at any sizes, a scale at open ones: stock and simulation likewise."""
    net, data, expected = _by_channel_after_a_matmul(kind)
    net.reshape({net.inputs[0]: sizes})
    found = {form: by_form(net, [data], form, **threads) for form in FORMS}
    found["simulation"] = simulate(net, core, properties=threads)([data])[0]
    level = 0.02 * float(np.abs(expected).max())
    assert {form for form, values in found.items() if np.abs(values - expected).max() > level} == set()


@pytest.mark.parametrize("sizes", [(2, 8, 3, 8), (-1, 8, -1, 8)], ids=["fixed", "open"])
@pytest.mark.parametrize("factor", ["weights", "weights by head", "tensor"])
@pytest.mark.parametrize("lowest", [-1.0, 0.5])
@pytest.mark.parametrize("after", ["scale shift", "shift scale", "scale relu shift", "relu scale", "relu shift"])
def test_what_varies_by_channel_between_a_matmul_and_a_quantization(core, by_form, after, lowest, factor, sizes):
    """A scale that is negative somewhere, or before an activation, becomes one of the weights, which makes the MatMul one of
    two tensors; the interval that absorbed the rest was read as that of columns, stock and simulation likewise.
    """
    random, axes = np.random.default_rng(0), (1, 8, 1, 1)
    data = random.uniform(-2, 2, (2, 8, 3, 8)).astype(np.float32)
    kernel = random.uniform(-1, 1, (8, 8) if factor == "weights" else (1, 8, 8, 8)).astype(np.float32)
    scale = np.append(lowest, np.linspace(0.5, 2, 7)).reshape(axes).astype(np.float32)
    shift = np.linspace(-0.5, 0.5, 8).reshape(axes).astype(np.float32)
    x, y = parameter(sizes, name="x"), parameter(kernel.shape, name="y")
    is_tensor = factor == "tensor"
    node, expected = opset1.matmul(x, y if is_tensor else const(kernel), False, True), data @ kernel.swapaxes(-1, -2)
    for kind in after.split():
        if kind == "relu":
            node, expected = opset1.relu(node), np.maximum(expected, 0)
        elif kind == "scale":
            node, expected = opset1.multiply(node, const(scale)), expected * scale
        else:
            node, expected = opset1.add(node, const(shift)), expected + shift
    net, inputs = model(quantized(node, -1.5, 1.5), [x, y][: 1 + is_tensor]), [data, kernel][: 1 + is_tensor]
    found = {form: by_form(net, inputs, form) for form in FORMS}
    found["simulation"] = simulate(net, core)(inputs)[0]
    expected = _quantize(expected, -1.5, 1.5)
    assert {form for form, values in found.items() if np.abs(values - expected).max() > 0.02} == set()


@pytest.mark.parametrize("rows", [1, 5])
def test_a_bias_that_an_activation_and_a_quantization_read_of_open_sizes(core, by_form, rows):
    """The quantization of a gate's data takes no constants that others read, and needs nothing that keeps them out of it."""
    rng, x = np.random.default_rng(0), parameter([-1, 12])
    summed = opset1.add(opset1.matmul(x, const(rng.uniform(-1, 1, (8, 12))), False, True), const(np.linspace(-3, 2, 8)))
    gate = quantized(opset1.sigmoid(summed), 0, 1)
    net = model(quantized(opset1.multiply(quantized(summed, -4, 3.5), gate), -1, 4), x)
    inputs, fixed = [rng.uniform(-1, 1, (rows, 12)).astype(np.float32)], net.clone()
    fixed.reshape([rows, 12])
    for form in FORMS:
        assert_close([by_form(net, inputs, form)], [by_form(fixed, inputs)], level=0.02, share=0.02)
    mine, stock = (
        ovlpt.execution_types(compiled).executed
        for compiled in (ovlpt.compile_model(net, core=core, properties=EXACT), core.compile_model(net, "CPU", EXACT))
    )
    assert len(mine) <= len(stock)


@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("kind", ["slopes", "slopes after a bias", "scale"])
def test_what_varies_by_channel_after_a_matmul_of_open_rank(core, infer, kind, serializable):
    """Once the rank was known, it was read as what varies by columns."""
    net, data, expected = _by_channel_after_a_matmul(kind)
    net.reshape({net.inputs[0]: PartialShape.dynamic()})
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    lowered.reshape({port: PartialShape([-1] * 4) for port in lowered.inputs})
    (found,) = infer(lowered, [data], "NO")
    assert np.abs(found - expected).max() <= 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("sizes", [(2, 2, 5, 8), (-1, 2, 5, 8)], ids=["fixed", "batch"])
@pytest.mark.parametrize("scale", [(0.4, 0.9), (0.6, -0.5)], ids=["positive", "one negative"])
@pytest.mark.parametrize("mask", ["added", "chosen"])
def test_a_scale_by_head_between_scores_and_their_quantization(core, by_form, mask, scale, sizes):
    """Some of these threw, where the mask became a sum after the quantization, or each head got an interval."""
    x, y = parameter(sizes), parameter(sizes, name="keys")
    keys = opset1.fake_quantize(opset1.clamp(y, -1, 1), *map(const, (-127 / 62, 127 / 62) * 2), 255)
    scores = opset1.matmul(quantized(x, -1, 2), keys, False, True)
    scores = quantized(opset1.multiply(scores, const(np.reshape(scale, (1, 2, 1, 1)))), -1, 2)
    seen = np.tril(np.ones((1, 1, 5, 5), bool))
    if mask == "added":
        scores = opset1.add(scores, const(np.where(seen, np.reshape(scale, (1, 2, 1, 1)), -1e4)))
    else:
        scores = opset1.select(opset1.constant(seen), scores, const(-1e4))
    net = model(opset1.softmax(scores, 3), [x, y])
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (2, 2, 5, 8)).astype(np.float32) for seed in (0, 1)]
    expected = simulate(net, core)(inputs)[0]
    found = {form: by_form(net, inputs, form) for form in FORMS}
    assert {form for form, values in found.items() if np.abs(values - expected).max() > 0.02} == set()


def errors_of_a_scale_by_rows() -> list[float]:
    """Of forms that may be saved, and in memory, as parts of the largest value."""
    core, found = Core(), []
    core.get_property("CPU", "FULL_DEVICE_NAME")
    x, high = parameter([2, 5, 8]), const(np.linspace(1, 2, 5).reshape(1, 5, 1))
    weights = opset1.multiply(opset1.convert(const(2 * np.arange(-32, 32).reshape(8, 8), "i8"), "f32"), const(0.01))
    low = opset1.negative(high)
    data = opset1.fake_quantize(x, low, high, low, high, 255)
    net = model(opset1.matmul(data, weights, False, True), x)
    values = np.random.default_rng(0).uniform(-1.5, 1.5, (2, 5, 8)).astype(np.float32)
    expected = core.compile_model(net, "CPU", TRUTH)(values)[0]
    for serializable in (True, False):
        changed = ovlpt.transform(net, core=core, serializable=serializable)
        values_of = core.compile_model(changed, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})(values)[0]
        found.append(float(np.abs(values_of - expected).max() / np.abs(expected).max()))
    return found


def test_a_scale_by_rows_where_there_are_no_subgraphs():
    """Without AVX2 the layer took the scale of the first row for all."""
    assert max(errors_of_a_scale_by_rows()) < 0.02
    found = subprocess_call.call(errors_of_a_scale_by_rows, environment=instruction_sets.environment("sse41"))[0]
    assert max(found) < 0.02


@pytest.mark.parametrize("apart", ["rows", "heads"])
def test_an_interval_by_column_behind_constants_by_row(core, by_form, apart):
    """Of open sizes, where a zero point by row or by head keeps the interval from the product: the first column's stood for
    all, off by 50 to 90 %, in stock, too.
    """
    columns = np.linspace(1, 2, 8, dtype=np.float32)
    ends = [const(end * columns) for end in (-2, 2, -2, 2)]
    shape = (8, _SIZE) if apart == "rows" else (2, 8, _SIZE)
    stored = opset1.convert(const(np.random.default_rng(1).integers(20, 64, shape), "i8"), "f32")
    weights = opset1.multiply(stored, const(columns.reshape(8, 1) / 200))
    data = parameter([-1, 2, _SIZE] if apart == "rows" else [2, -1, _SIZE])
    rows = np.array([[1], [1.4]] if apart == "rows" else 1)
    read = opset1.fake_quantize(data, *[const(end * rows) for end in (-1, 1.55, -1, 1.55)], 256)
    net = model(opset1.fake_quantize(opset1.matmul(read, weights, False, True), *ends, 256), [data])
    inputs = [np.random.default_rng(0).uniform(-0.5, 0.5, (2, 2, _SIZE)).astype(np.float32)]
    expected = simulate(net, core)(inputs)[0]
    for form in FORMS:
        assert_close([by_form(net, inputs, form, **EXACT)], [expected], level=0.04, share=0.1)
