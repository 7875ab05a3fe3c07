"""Layers of which dynamic sizes may leave one element a channel: one test for each trap that the lowering avoids."""

from __future__ import annotations

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt.device import PluginLowering, execution_types
from ovlpt.device.lowering.links import merged_target
from ovlpt.openvino_api import Manager, NodeFactory, opset1
from tests.conftest import EXACT, TRUTH, assert_close
from tests.lowered import FORMS, compiled_in, drop_in, layer_of_eight, weighted
from tests.networks import (
    const,
    convolution,
    depthwise,
    int8_weights,
    model,
    parameter,
    quantized,
)
from tools.fuzz.graphs import Form


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("batch", "height", "width"), [(-1, 1, 1), (1, -1, 1), (-1, -1, -1), (1, -1, -1)], ids=lambda size: f"{size}"
)
def test_one_element_of_open_sizes(by_form, form, batch, height, width):
    """What stands for a per-channel constant is then as large as the data, and another kernel takes it wrongly."""
    x = parameter([batch, 32, height, width])
    data = quantized(x, -3, 3.1)
    for seed, shape in enumerate(((8, 32, 1, 1), (32, 8, 1, 1))):
        layer = opset1.convolution(data, int8_weights(shape, seed=seed), [1, 1], [0, 0], [0, 0], [1, 1])
        layer = opset1.add(layer, const(np.linspace(-1, 1, shape[0]).reshape(1, -1, 1, 1)))
        data = quantized(opset1.relu(layer), 0, 2)
    net = model(layer, x)
    for shape in ((1, 32, 1, 1), (1, 32, 3, 2), (2, 32, 1, 1)):
        if all(size in (-1, given) for size, given in zip((batch, height, width), (shape[0], *shape[2:]), strict=True)):
            inputs = [np.random.default_rng(0).uniform(-3, 3, shape).astype(np.float32)]
            expected = by_form(net, inputs)
            assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


_IDLE = {
    "Add": lambda data: opset1.add(data, const(0.0)),
    "Broadcast": lambda data: NodeFactory("opset3").create(
        "Broadcast", [data.output(0), const([1, 1, 1], "i64").output(0)], {"mode": "bidirectional"}
    ),
    "Concat": lambda data: opset1.concat([data], 1),
    "Convert": lambda data: opset1.convert(data, "f32"),
    "Pad": lambda data: opset1.pad(data, const([0] * 4, "i64"), const([0] * 4, "i64"), "constant"),
    "Tile": lambda data: opset1.tile(data, const([1, 1, 1, 1], "i64")),
    "Transpose": lambda data: opset1.transpose(data, const([0, 1, 2, 3], "i64")),
    "through f16": lambda data: data,
}


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("kind", ["factor", "divisor"])
@pytest.mark.parametrize("also", [lambda before, after: before, lambda before, after: after], ids=["before", "after"])
@pytest.mark.parametrize("idle", list(_IDLE))
def test_what_another_reader_of_a_layer_gets_across_what_does_nothing(core, idle, also, kind, size):
    """The plugin dropped it, and fused what one of two readers computes per channel into the layer, for both of them."""
    x = parameter([-1, 16, -1, -1])
    layer = convolution(quantized(x, -1.5, 1.5, 255), 16, kernel=1)
    after = _IDLE[idle](layer)
    scale = const(np.linspace(0.5, 2, 16).reshape(1, 16, 1, 1))
    computed = (opset1.divide if kind == "divisor" else opset1.multiply)(after, scale)
    net = Form("f16" if idle == "through f16" else "f32").apply(model([computed, also(layer, after)], x))
    real = np.float16 if idle == "through f16" else np.float32
    data = [np.random.default_rng(0).uniform(-1.5, 1.5, (1, 16, size, size)).astype(real)]
    fixed = net.clone()
    fixed.reshape([1, 16, size, size])
    lowered = drop_in(net, core)
    found, expected = (
        list(core.compile_model(each, "CPU", {**TRUTH, "LP_TRANSFORMS_MODE": "NO"})(data).values())
        for each in (lowered, fixed)
    )
    for one, other in zip(found, expected, strict=True):
        assert_close([one], [other], level=0.03 * np.abs(other).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1.28], ids=["u8", "zero_point"])
def test_two_factors_of_open_sizes(core, by_form, form, low):
    """Squeeze and excitation: the integers, and what they are multiplied with, go into the product without a layer that
    converts them.
    """
    x = parameter([-1, 16, -1, -1])
    data = quantized(opset1.tanh(convolution(quantized(x, 0, 2.55), 16)), low, low + 2.55)
    mean = quantized(opset1.reduce_mean(data, const([2, 3], "i64"), True), -1, 1)
    gate = quantized(opset1.sigmoid(convolution(mean, 16, seed=1)), 0, 1)
    net = model(convolution(quantized(opset1.multiply(data, gate), -1.28, 1.27), 8, seed=2), x)
    lowered = ovlpt.transform(net, core=core, serializable=form != "in memory")
    ours, stock = (
        ovlpt.execution_types(core.compile_model(each, "CPU", {**EXACT, **properties})).executed
        for each, properties in ((lowered, {"LP_TRANSFORMS_MODE": "YES" if form == FORMS[2] else "NO"}), (net, {}))
    )
    assert len(ours) <= len(stock)
    for shape in ((1, 16, 1, 1), (1, 16, 5, 4), (2, 16, 3, 3)):
        inputs = [np.random.default_rng(0).uniform(0, 2.6, shape).astype(np.float32)]
        expected = by_form(net, inputs)
        assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("between", "low"),
    [
        (lambda value: value, 0.5),
        (opset1.relu, 0),
        (lambda value: opset1.multiply(opset1.relu(value), const(np.linspace(0.5, 2, 8).reshape(1, 8, 1, 1))), 0),
        (lambda value: opset1.prelu(value, const([0.25])), 1),
    ],
    ids=["nothing", "relu", "scaled relu", "prelu"],
)
@pytest.mark.parametrize("bias", [False, True])
def test_an_interval_by_channel_of_one_element(by_form, form, between, low, bias):
    """As above, with the plugin's own LPT, too: it is part of the layer's scale and bias."""
    x = parameter([-1, 16, -1, -1])
    layer = opset1.convolution(quantized(x, -1, 1.55), int8_weights([8, 16, 1, 1]), [1, 1], [0, 0], [0, 0], [1, 1])
    if bias:
        layer = opset1.add(layer, const(np.linspace(-1, 1, 8).reshape(1, 8, 1, 1)))
    high = np.linspace(1, 3, 8).reshape(1, 8, 1, 1)
    ends = [const(-low * high), const(high)]
    net = model(depthwise(opset1.fake_quantize(between(layer), *ends, *ends, 256)), x)
    for shape in ((1, 16, 1, 1), (1, 16, 4, 3)):
        inputs = [np.random.default_rng(0).uniform(-1, 1.5, shape).astype(np.float32)]
        expected = by_form(net, inputs)
        assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
def test_an_interval_by_channel_of_one_element_whose_shape_is_asked_for(by_form, form):
    """As where the states of a recurrent layer are broadcast to the batch: the real values were integers."""
    x = parameter([-1, 16, 1])
    layer = opset1.convolution(quantized(x, -1, 1.55), int8_weights([8, 16, 1]), [1], [0], [0], [1])
    ends = [const(sign * np.linspace(1, 3, 8).reshape(1, 8, 1)) for sign in (-1, 1)]
    node = opset1.fake_quantize(layer, *ends, *ends, 255)
    net = model([opset1.tanh(node), opset1.broadcast(const(1), opset1.shape_of(node))], x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 16, 1)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.03, share=1)


AFTER = {
    "scale": lambda value, ends: opset1.multiply(opset1.sigmoid(value), ends[1]),
    "shift": lambda value, ends: opset1.add(opset1.relu(value), ends[1]),
    "scale and shift": lambda value, ends: opset1.add(opset1.multiply(opset1.relu(value), ends[0]), ends[1]),
    "interval": lambda value, ends: opset1.fake_quantize(opset1.tanh(value), *ends, *ends, 256),
    "output interval": lambda value, ends: opset1.fake_quantize(opset1.relu(value), const(0), const(1), *ends, 256),
    "dequantization": lambda value, ends: opset1.multiply(quantized(value, -1, 1), ends[1]),
    "shift before an interval": lambda value, ends: quantized(opset1.add(opset1.relu(value), ends[0]), -1, 1.55),
    "slope": lambda value, ends: opset1.prelu(opset1.sigmoid(value), ends[0]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize("batch", [-1, 1])
def test_what_differs_by_channel_after_an_activation_of_one_element(by_form, form, after, batch):
    """As above: the gate of a squeeze and excitation, whose scale comes to differ between channels where a Concat feeds it."""
    x = parameter([batch, 8, 1, 1] if batch < 0 else [batch, 8, -1, -1])
    high = np.linspace(0.5, 2, 8).reshape(1, 8, 1, 1)
    net = model(after(layer_of_eight("point", quantized(x, 0, 2.55)), [const(-high), const(high)]), x)
    for more in (1, 2):
        shape = (more, 8, 1, 1) if batch < 0 else (1, 8, more, more)
        inputs = [np.random.default_rng(0).uniform(0, 2.5, shape).astype(np.float32)]
        expected = by_form(net, inputs)
        assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize(
    ("kind", "low"),
    [
        *(("point", -1.28), ("stride", -1.28), ("window", 0)),
        *(("groups", 0), ("groups", -1.28), ("groups of two", 0), ("groups of two", -1.28), ("groups of one", 0)),
    ],
)
def test_layers_over_one_pixel_of_open_sizes(core, after, kind, low):
    """As above, with the precision that the CPU has by default, too. It costs no layer where older kernels have the groups; strides
    take a pool.
    """
    x = parameter([-1, 8, -1, -1])
    high = np.linspace(0.5, 2, 8).reshape(1, 8, 1, 1)
    net = model(after(layer_of_eight(kind, quantized(x, low, low + 2.55)), [const(-high), const(high)]), x)
    values = [np.random.default_rng(0).uniform(low, low + 2.5, (1, 8, 1, 1)).astype(np.float32)]
    fixed = net.clone()
    fixed.reshape([1, 8, 1, 1])
    expected = core.compile_model(fixed, "CPU", TRUTH)(values)[0]
    stock = len(execution_types(core.compile_model(net, "CPU", EXACT)).executed)
    for properties in (EXACT, {}):
        mine = ovlpt.compile_model(net, "CPU", properties, core=core)
        assert_close([mine(values)[0]], [expected], level=0.03 * np.abs(expected).max(), share=1)
        assert len(execution_types(mine).executed) <= stock + (kind in ("groups of two", "stride"))


def test_equal_shifts_of_two_branches_over_one_pixel(core, infer):
    """The plugin merges them, and would take the one that is left into the layer."""
    x = parameter([1, 8, -1, -1])
    layer = opset1.group_convolution(
        quantized(x, -1.7716718, 2.19), int8_weights([8, 1, 1, 1, 1]), [2, 1], [0, 0], [0, 0], [1, 1]
    )
    factor = const(np.linspace(0.5, 2, 8).reshape(1, 8, 1, 1))
    net = model([layer, opset1.multiply(layer, factor)], x)
    values = [np.random.default_rng(0).uniform(-1.7, 2.1, (1, 8, 1, 1)).astype(np.float32)]
    fixed = net.clone()
    fixed.reshape([1, 8, 1, 1])
    assert_close(infer(ovlpt.transform(net, core=core), values), infer(fixed, values, "NO"))


def test_sizes_that_leave_more_than_one_pixel_keep_their_kernels(core):
    x = opset1.parameter(openvino.PartialShape([1, 8, (2, 64), -1]), np.float32, name="x")
    net = model(
        opset1.add(opset1.relu(layer_of_eight("point", quantized(x, 0, 2.55))), const(np.ones((1, 8, 1, 1)))), x
    )
    trace = ovlpt.Trace()
    ovlpt.transform(net, core=core, trace=trace)
    assert "compute_by_channel" not in {event.transformation for event in trace}


@pytest.mark.parametrize("low", [0.0, -1.5], ids=["symmetric", "zero_point"])
@pytest.mark.parametrize("activation", [opset1.relu, lambda value: value], ids=["relu", "none"])
@pytest.mark.parametrize("shape", [(-1, 16, 1, 1), (1, 16, -1, -1)], ids=["batch", "space"])
def test_one_element_after_a_float_layer_in_bf16(by_form, low, activation, shape):
    """Its bias is its own; an interval that differed by channel for it was read wrongly, where stock's is right."""
    x = parameter(shape)
    filters = const(np.random.default_rng(0).standard_normal((16, 16, 1, 1)))
    layer = opset1.convolution(x, filters, [1, 1], [0, 0], [0, 0], [1, 1])
    layer = activation(opset1.add(layer, const(np.linspace(-1, 1, 16).reshape(1, 16, 1, 1))))
    data = quantized(layer, low, 2)
    net = model(opset1.convolution(data, int8_weights((8, 16, 1, 1)), [1, 1], [0, 0], [0, 0], [1, 1]), x)
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 16, 1, 1)).astype(np.float32)]
    expected = by_form(net, inputs)
    found = by_form(net, inputs, "in memory", INFERENCE_PRECISION_HINT="bf16")
    assert_close([found], [expected], level=0.08 * np.abs(expected).max(), share=1)


_BY_CHANNEL = const(np.linspace(0.3, 2, 16).reshape(1, 16, 1, 1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("in_groups", [False, True], ids=["whole", "groups"])
@pytest.mark.parametrize(
    "after",
    [
        lambda layer: opset1.prelu(layer, const(np.linspace(-2, 2, 16))),
        lambda layer: opset1.add(opset1.relu(layer), _BY_CHANNEL),
        lambda layer: opset1.multiply(opset1.sigmoid(layer), _BY_CHANNEL),
        lambda layer: opset1.fake_quantize(layer, const(0), _BY_CHANNEL, const(0), _BY_CHANNEL, 256),
    ],
    ids=["slopes", "shift", "scale", "interval"],
)
def test_constants_by_channel_after_a_float_layer_of_one_element_in_bf16(by_form, after, in_groups, form):
    """After its bias they were read wrongly, by stock and in a network of floats, too."""
    x, at = parameter([-1, 16, -1, -1]), ([1, 1], [0, 0], [0, 0], [1, 1])
    filters = const(np.random.default_rng(0).standard_normal((4, 4, 4, 1, 1) if in_groups else (16, 16, 1, 1)))
    layer = (opset1.group_convolution if in_groups else opset1.convolution)(x, filters, *at)
    layer = after(opset1.add(layer, const(np.linspace(-1, 1, 16).reshape(1, 16, 1, 1))))
    net = model(opset1.convolution(quantized(layer, -2, 2), int8_weights((8, 16, 1, 1)), *at), x)
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 16, 1, 1)).astype(np.float32)]
    expected = by_form(net, inputs)
    found = by_form(net, inputs, form, INFERENCE_PRECISION_HINT="bf16")
    assert_close([found], [expected], level=0.08 * np.abs(expected).max(), share=1)


@pytest.mark.filterwarnings("ignore:.*passes unchanged")
def test_slopes_of_one_element_in_bf16_in_a_model_that_passes_unchanged(core):
    """Beside compressed weights, which alone are quantized."""
    x, at, random = parameter([-1, 16, -1, -1]), ([1, 1], [0, 0], [0, 0], [1, 1]), np.random.default_rng(0)
    layer = opset1.add(
        opset1.convolution(x, const(random.standard_normal((16, 16, 1, 1))), *at), const(np.ones((1, 16, 1, 1)))
    )
    pooled = opset1.reduce_mean(opset1.prelu(layer, const(np.linspace(-2, 2, 16))), const([2, 3], "i64"), False)
    net = model(opset1.matmul(pooled, int8_weights([8, 16]), False, True), x)
    inputs = [random.uniform(-1, 1, (1, 16, 1, 1)).astype(np.float32)]
    (expected,) = core.compile_model(net, "CPU", TRUTH)(inputs).values()
    compiled = ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"}, core=core)
    assert_close([compiled(inputs)[0]], [expected], level=0.08 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("operation", [opset1.add, opset1.subtract])
def test_a_bias_in_f16_of_one_element_of_open_sizes(core, infer, operation):
    """The guard looked for a bias in f32, and left this one to the plugin."""
    x = parameter([-1, 16, -1, -1])
    layer = opset1.convolution(quantized(x, -1, 1.1), int8_weights((8, 16, 1, 1)), [1, 1], [0, 0], [0, 0], [1, 1])
    net = model(operation(layer, const(np.linspace(-1, 1, 8).reshape(1, -1, 1, 1))), x)
    values = np.random.default_rng(0).uniform(-1, 1, (1, 16, 1, 1)).astype(np.float16)
    (expected,) = core.compile_model(net, "CPU", TRUTH)([values.astype(np.float32)]).values()
    (found,) = infer(drop_in(Form("f16").apply(net.clone()), core), [values])
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("low", [0, -1.7], ids=["no zero point", "zero point"])
@pytest.mark.parametrize("form", FORMS)
def test_a_broadcast_after_a_layer_of_one_element_of_open_sizes(by_form, form, low):
    """The zero point after it was subtracted before it, and lost."""
    x = parameter([-1, 16, -1, -1])
    widened = opset1.broadcast(convolution(quantized(x, low, 2.3), 6, 1), const([1, 6, 3, 3], "i64"))
    inputs = [np.random.default_rng(0).standard_normal((1, 16, 1, 1)).astype(np.float32)]
    net = model(widened, x)
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.02, share=1)


@pytest.mark.parametrize("operation", [opset1.add, opset1.multiply])
@pytest.mark.parametrize("form", FORMS)
def test_a_constant_before_a_layer_of_one_element_of_open_sizes(by_form, form, operation):
    """Rules that look for a constant in the second place did not see it: one channel's was that of all others."""
    layer = convolution(quantized(parameter([-1, 16, -1, -1]), -1.7, 2.3), 6, 1)
    x = layer.input_value(0).get_node().input_value(0).get_node()
    shifted = operation(const(np.linspace(0.5, 2, 6).reshape(1, 6, 1, 1)), layer)
    net = model([shifted, quantized(shifted, -1, 1.5)], x)
    inputs = [np.random.default_rng(0).standard_normal((1, 16, 1, 1)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.02, share=1)


def test_of_equal_readers_the_same_is_followed_each_time():
    """The order of what OpenVINO gives differs from call to call: a rule that went the way of another threw at its end."""
    for _ in range(10):
        relu = opset1.relu(parameter([1, 16, -1, -1]))
        readers = [opset1.add(relu, const(1)) for _ in range(8)]
        assert {merged_target(relu).get_node().get_friendly_name() for _ in range(10)} == {
            readers[0].get_friendly_name()
        }


@pytest.mark.parametrize("form", FORMS)
def test_the_sum_of_a_depthwise_layer_and_integers_of_one_element(by_form, form):
    """The layer stays in float, and the sum is scaled per channel."""
    x, y = (parameter([1, 16, -1, -1], name=name) for name in "xy")
    weights = const(np.random.default_rng(1).uniform(-1, 1, (16, 1, 1, 1, 1)))
    layer = opset1.group_convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    scale = const(np.linspace(0.5, 2, 16).reshape(1, 16, 1, 1))
    net = model(opset1.multiply(opset1.add(layer, quantized(y, -2.56, 2.54)), scale), [x, y])
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (1, 16, 1, 1)).astype(np.float32) for seed in range(2)]
    closed = net.clone()
    closed.reshape({value: (1, 16, 1, 1) for value in closed.inputs})
    assert_close([by_form(net, inputs, form)], [by_form(closed, inputs)])


@pytest.mark.parametrize("sizes", [(-1, 1, -1), (-1, 4, -1, -1)], ids=["rank_3", "rank_4"])
@pytest.mark.parametrize("last", [opset1.relu, lambda value: quantized(value, -2, 2)], ids=["relu", "quantization"])
@pytest.mark.parametrize("shift", ["", "add", "subtract"], ids=["at once", "after a sum", "after a difference"])
def test_a_layer_of_open_sizes_that_is_an_output_and_divided_by_channel(core, infer, sizes, last, shift):
    """What the layer gives was divided, too: the plugin divides before it adds."""
    x, ones, zeros = parameter(sizes), [1] * (len(sizes) - 2), [0] * (len(sizes) - 2)
    layer = opset1.convolution(quantized(x, -1, 2), int8_weights((8, sizes[1], *ones)), ones, zeros, zeros, ones)
    read = getattr(opset1, shift)(layer, const(0.9)) if shift else layer
    divided = opset1.divide(read, const(np.linspace(0.5, 2, 8).reshape(1, 8, *ones)))
    net = openvino.Model([opset1.result(layer), opset1.result(last(divided))], [x], "divided")
    shape = [2, *(5 if size == -1 else size for size in sizes[1:])]
    values, fixed = [np.random.default_rng(0).uniform(-1, 2, shape).astype(np.float32)], net.clone()
    fixed.reshape(shape)
    for found, expected in zip(infer(drop_in(net, core), values), infer(fixed, values, "NO"), strict=True):
        assert_close([found], [expected], level=4 / 255)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("groups", [1, 2], ids=["convolution", "groups"])
@pytest.mark.parametrize("slopes", [1, 14])
@pytest.mark.parametrize("batch", [-1, 1])
def test_a_slope_after_a_layer_of_one_element(by_form, form, groups, slopes, batch):
    """What the zero point leaves to add stays in the layer with the scale; it was all zeros, or other memory."""
    x = parameter([batch, 14, 1, 1])
    stored = np.random.default_rng(0).integers(-63, 64, (groups, 14 // groups, 14 // groups, 1, 1))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(0.01))
    data = quantized(x, -0.19, 0.16)
    layer = opset1.group_convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    net = model(opset1.prelu(layer, const(np.linspace(0.1, 0.5, slopes))), x)
    inputs = [np.random.default_rng(0).uniform(-0.2, 0.2, (1, 14, 1, 1)).astype(np.float32)]
    expected = by_form(net, inputs)
    assert_close([by_form(net, inputs, form)], [expected], level=1e-3 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("levels", [255, 256])
def test_a_scale_before_a_float_interval_of_open_sizes(by_form, form, levels):
    """What LPT leaves before a FakeQuantize the plugin fuses into it, and reads it wrongly; its own LPT on or off."""
    x = parameter([-1, 4, 1, 8])
    moved = opset1.add(x, const(np.linspace(-1, 1, 8).reshape(1, 1, 1, 8)))
    factor = np.array([1.9, 1.4, 1.5, 1.6], np.float32).reshape(1, 4, 1, 1)
    net = model([quantized(opset1.multiply(const(factor), moved), -2.5, 4.1, levels), moved], x)
    for batch in (1, 3):
        data = np.random.default_rng(0).uniform(-2, 2, (batch, 4, 1, 8)).astype(np.float32)
        exact = (data + np.linspace(-1, 1, 8).astype(np.float32)) * factor
        found = by_form(net, [data], form)
        np.testing.assert_allclose(found, np.clip(exact, -2.5, 4.1), atol=0.014)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("activation", ["Gelu", "Sigmoid", "Relu"])
def test_a_scale_by_column_after_the_activation_of_a_layer_of_open_sizes(core, by_form, form, activation):
    """As smooth quantization has it between the layers of a transformer: the layer takes all of it."""
    x = parameter([-1, 6, 16])
    layer = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([32, 16]), False, True)
    biased = opset1.add(layer, const(np.linspace(-1, 1, 32).reshape(1, 1, 32)))
    active = NodeFactory("opset7").create(activation, [biased.output(0)])
    scaled = opset1.multiply(active, const(np.linspace(0.5, 1.5, 32).reshape(1, 1, 32)))
    net = model(opset1.matmul(quantized(scaled, -0.5, 4.6), int8_weights([8, 32], seed=1), False, True), x)
    inputs = [np.random.default_rng(0).uniform(-1.28, 1.27, (1, 6, 16)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.1, share=0.1)
    layers = ovlpt.execution_types(ovlpt.compile_model(net, "CPU", EXACT, core=core), inputs).executed
    assert not [layer for layer in layers if layer.layer_type == "Eltwise"]


@pytest.mark.parametrize("kind", ["add", "subtract"])
@pytest.mark.parametrize("shift", [0.3, np.linspace(-1, 1, 16).reshape(1, 16, 1, 1)], ids=["scalar", "channels"])
@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_a_shift_of_what_is_read_without_it_as_well(core, infer, kind, shift, precision):
    """As beside a recurrent layer, with the plugin's own LPT on, which would apply the layer's scale twice."""
    x = parameter([-1, 8, 4, 4])
    layer = convolution(quantized(x, 0, 2.55), 16)
    read = layer if precision == "f32" else opset1.convert(layer, "f16")
    net = model([getattr(opset1, kind)(read, const(shift, precision)), read], x)
    manager = Manager()
    manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core, "CPU")))
    manager.register_pass(PluginLowering("CPU", lpt_on=True))
    lowered = net.clone()
    manager.run_passes(lowered)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (2, 8, 4, 4)).astype(np.float32)]
    plain = infer(model([layer], x), inputs, "NO")[0]
    exact = plain + (1 if kind == "add" else -1) * np.asarray(shift, np.float32)
    found = [value.astype(np.float32) for value in infer(lowered, inputs, "YES")]
    assert_close(found, [exact, plain], share=precision == "f16", level=2e-3 * np.abs(plain).max())


@pytest.mark.parametrize("other", ["minimum", "result"])
def test_a_scale_that_a_clipped_quantization_and_others_read(core, infer, other):
    """As beside a recurrent layer, with the plugin's own LPT on, which would give the quantization the scale twice: all zero."""
    x = parameter([-1, 8, -1, 4])
    stored = const(np.random.default_rng(5).integers(-63, 64, (16, 8, 1, 1)), "i8")
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(0.01))
    layer = opset1.convolution(quantized(x, -1.28, 1.27), weights, [1, 1], [0, 0], [0, 0], [1, 1])
    integers = opset1.convert(opset1.fake_quantize(layer, *map(const, (-2.0, 14.0, 0.0, 255.0)), 256), "u8")
    clipped = opset1.minimum(opset1.maximum(integers, const(0, "u8")), const(60, "u8"))
    restored = opset1.multiply(opset1.subtract(opset1.convert(clipped, "f32"), const(32.0)), const(16 / 255))
    if other == "minimum":
        bounds = const(np.linspace(-1, 1, 16).reshape(1, 16, 1, 1))
        layer = opset1.reduce_mean(quantized(opset1.minimum(bounds, layer), -2, 2), const([2, 3], "i64"), True)
    net = model([restored, layer], x)
    manager, lowered = Manager(), net.clone()
    manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core, "CPU")))
    manager.register_pass(PluginLowering("CPU", lpt_on=True))
    manager.run_passes(lowered)
    for shape in ((1, 8, 1, 4), (2, 8, 4, 4)):
        inputs = [np.random.default_rng(0).uniform(-1.28, 1.27, shape).astype(np.float32)]
        assert_close(infer(lowered, inputs, "YES"), infer(net, inputs, "NO"), level=0.07, share=0.01)


@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_two_shifts_by_channel_without_common_optimizations(core, infer, precision):
    """Which would make one of them; the second was read wrongly."""
    x = parameter([-1, 24, 1, 1])
    layer = convolution(quantized(x, -1, 1.55), 8, kernel=1)
    for values in (np.linspace(-1, 1, 8), np.linspace(0.5, -2, 8)):
        shift = const(values.reshape(1, 8, 1, 1), precision)
        layer = opset1.add(layer, shift if precision == "f32" else opset1.convert(shift, "f32"))
    net = model(layer, x)
    for batch in (1, 2):
        inputs = [np.random.default_rng(0).uniform(-1, 1.5, (batch, 24, 1, 1)).astype(np.float32)]
        expected = infer(net, inputs, "NO")
        assert_close(infer(drop_in(net, core), inputs, "NO"), expected, level=0.03 * float(np.abs(expected[0]).max()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("moved", [False, True], ids=["next", "transposed"])
@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (1, 1, 1, 8)], ids=["channels", "columns"])
@pytest.mark.parametrize("kind", ["add", "multiply", "subtract"])
def test_a_scale_before_two_tensors_meet_and_are_quantized(by_form, form, kind, shape, moved):
    """A FakeQuantize is not moved through what two tensors give, so that nothing has to keep it from the scale."""
    x, y = parameter([-1, 4, -1, 8], name="x"), parameter([-1, 4, -1, 8], name="y")
    scaled = opset1.multiply(x, const(np.linspace(0.5, 2, shape[1] * shape[3]).reshape(shape)))
    met = getattr(opset1, kind)(scaled, y)
    met = opset1.transpose(met, const([0, 2, 1, 3], "i64")) if moved else met
    net = model(opset1.matmul(quantized(met, -3, 3), int8_weights([6, 8]), False, True), [x, y])
    for sizes in ((1, 4, 1, 8), (1, 4, 3, 8), (2, 4, 1, 8)):
        inputs = [np.random.default_rng(seed).uniform(-1.5, 1.5, sizes).astype(np.float32) for seed in (0, 1)]
        expected = by_form(net, inputs)
        assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first", ["constant", "tensor"])
@pytest.mark.parametrize("kind", ["add", "multiply"])
def test_a_constant_by_column_after_a_product_that_is_read_without_it_as_well(infer, by_form, form, kind, first):
    """As scores of an attention, or what a mixer makes of tokens: the plugin fuses it into the FakeQuantize, and reads it as one
    by channel, in the simulation, too.
    """
    x = parameter([-1, 6, 12, 8])
    weights = const(np.random.default_rng(0).normal(0, 0.3, (12, 12)))
    product = opset1.matmul(*((weights, x) if first == "constant" else (x, x)), False, first == "tensor")
    columns = 8 if first == "constant" else 12
    with_constant = getattr(opset1, kind)(product, const(np.linspace(0.5, 1.5, columns).reshape(1, 1, 1, columns)))
    layer = opset1.matmul(quantized(with_constant, -2.56, 2.54), int8_weights([6, columns]), False, True)
    net = model([layer, product], x)
    for batch in (1, 2):
        inputs = [np.random.default_rng(batch).normal(0, 0.5, (batch, 6, 12, 8)).astype(np.float32)]
        fixed = net.clone()
        fixed.reshape([batch, 6, 12, 8])
        expected = infer(fixed, inputs, "NO")[0]
        assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


def test_a_rotation_of_positions_before_a_quantization_stays_one_layer(core):
    """As in ModernBERT; the scale by the cosines was kept from the FakeQuantize, and the plugin did not see the rotation."""
    x, y = parameter([-1, 12, 4, 8], name="x"), parameter([-1, 4, 12, 8], name="y")
    heads = opset1.transpose(x, const([0, 2, 1, 3], "i64"))
    angles = np.outer(np.arange(12), np.tile([1, 0.5, 0.2, 0.1], 2)).reshape(1, 1, 12, 8)
    steps, masks = const([1, 1, 1, 1], "i64"), ([1, 1, 1, 0], [1, 1, 1, 0])
    low, high = (
        opset1.strided_slice(heads, const([0, 0, 0, begin], "i64"), const([0, 0, 0, begin + 4], "i64"), steps, *masks)
        for begin in (0, 4)
    )
    rotated = opset1.concat([opset1.multiply(high, const(-1)), low], -1)
    turned = opset1.add(opset1.multiply(heads, const(np.cos(angles))), opset1.multiply(rotated, const(np.sin(angles))))
    net = model(opset1.matmul(quantized(turned, -3, 3), quantized(y, -3, 3), False, True), [x, y])
    inputs = [np.zeros((1, 12, 4, 8), np.float32), np.zeros((1, 4, 12, 8), np.float32)]
    stock = ovlpt.execution_types(core.compile_model(net, "CPU", EXACT), inputs).executed
    trace = ovlpt.Trace()
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core, trace=trace)
    assert "keep_scale_before" not in {event.transformation for event in trace}
    assert len(ovlpt.execution_types(compiled, inputs).executed) <= len(stock)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(8, 1, 1), (8, 4, 1), (8, 1, 4), (3, 16, 16), (-1, 4, 4)])
@pytest.mark.parametrize("activation", [lambda value: value, opset1.relu, opset1.tanh], ids=["", "Relu", "Tanh"])
def test_one_column_between_two_products(core, by_form, activation, rows, inputs, outputs, form, tmp_path):
    """Of known sizes the plugin made a Subgraph of both and threw, with its own LPT, too."""
    x = parameter([rows, inputs])
    narrow = activation(opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([1, inputs]), False, True))
    net = model(opset1.matmul(quantized(narrow, -1, 2), int8_weights([outputs, 1]), False, True), x)
    data = [np.random.default_rng(0).uniform(-1.2, 1.2, (max(rows, 2), inputs)).astype(np.float32)]
    assert_close([by_form(net, data, form)], [by_form(net, data)])
    assert all(layer.is_int8 for layer in weighted(execution_types(compiled_in(form, net, core, tmp_path))))
