"""Zero points, which a plugin merges, moves and fuses: one test for each trap that the lowering avoids."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt.device import PluginLowering, execution_types, this_cpu
from ovlpt.graph.weights import folded_constant
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Manager, NodeFactory, opset1, opset8
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.lowered import FORMS, compiled_in, drop_in, weighted
from tests.networks import (
    const,
    convolution,
    depthwise,
    encoder,
    int8_weights,
    model,
    parameter,
    quantized,
    shared_zero_point,
)


def test_zero_points_of_two_consumers_are_not_merged(core, infer):
    """Merged, the second convolution loses its zero point: wrong numbers without an error."""
    net = shared_zero_point()
    inputs = inputs_of(net)
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    layers = weighted(ovlpt.execution_types(compiled, inputs))
    assert [layer.precision for layer in layers] == ["u8", "u8"]
    assert all(layer.is_int8 for layer in layers)
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "YES"))


ON_COPIES = {  # sizes of data; sizes of the weights, stride and padding of two layers that read it
    "repeated channels": ((1, 8, 9, 9), ((8, 2, 1, 3, 3), 2, 1), ((8, 2, 1, 5, 5), 2, 2)),
    "padded alike over three axes": ((1, 8, 5, 6, 4), ((4, 3, 2, 3, 3, 3), 1, 1), ((4, 5, 2, 3, 3, 3), 1, 1)),
    "equal strides": ((1, 8, 6, 6), ((16, 8, 1, 1), 2, 0), ((24, 8, 1, 1), 2, 0)),
}


@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("case", ON_COPIES)
def test_zero_points_of_equal_copies_of_the_data_are_not_merged(core, infer, case, is_open):
    """Each layer had a Gather, a Pad or a MaxPool of its own, of which the plugin made one: float, or -2 dB at open sizes."""
    shape, *layers = ON_COPIES[case]
    axes = len(shape) - 2
    x = parameter([-1, shape[1], *[-1] * axes] if is_open else shape)
    data, results = quantized(x, -1, 1.55), []
    for number, (sizes, stride, pad) in enumerate(layers):
        layer = opset1.group_convolution if len(sizes) > axes + 2 else opset1.convolution
        window = [stride] * axes, [pad] * axes, [pad] * axes, [1] * axes
        results.append(opset1.relu(layer(data, int8_weights(list(sizes), seed=number), *window)))
    net = model(results, x)
    inputs, fixed = [np.random.default_rng(0).uniform(-1, 1.5, shape).astype(np.float32)], net.clone()
    fixed.reshape(shape)
    compiled = core.compile_model(drop_in(net, core), "CPU", EXACT)
    assert all(layer.is_int8 for layer in weighted(execution_types(compiled, inputs)))
    assert_close(list(compiled(inputs).values()), infer(fixed, inputs, "NO"))


def unsqueezed(data):
    return opset1.squeeze(opset1.unsqueeze(data, const([2], "i64")), const([2], "i64"))


def mirrored(data):
    return opset8.gather(data, const(range(7, -1, -1), "i64"), const(1, "i64"))


@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("copy", [lambda data: data, unsqueezed], ids=["the data", "unsqueezed"])
def test_zero_points_of_copies_that_the_plugin_drops_are_not_merged(core, infer, copy, is_open):
    """Of a layer's result: a zero point was lost, and a layer in float."""
    x = parameter([-1, 8, -1, -1] if is_open else [1, 8, 6, 6])
    data = quantized(convolution(quantized(x, -1, 1.55), 8), -2, 3.1)
    layers = [
        opset1.convolution(part, int8_weights([8, 8, 1, 1], seed=5), [1, 1], [0, 0], [0, 0], [1, 1])
        for part in (copy(data), mirrored(data))
    ]
    net = model(layers, x)
    inputs, fixed = [np.random.default_rng(0).uniform(-1, 1.5, [1, 8, 6, 6]).astype(np.float32)], net.clone()
    fixed.reshape([1, 8, 6, 6])
    compiled = core.compile_model(drop_in(net, core), "CPU", EXACT)
    assert all(layer.is_int8 for layer in weighted(execution_types(compiled, inputs)))
    assert_close(list(compiled(inputs).values()), infer(fixed, inputs, "NO"))


def with_zero_point_in_u8(data, low, high):
    """A QuantizeLinear and a DequantizeLinear."""
    scale = (high - low) / 255
    stored = opset1.convert(opset1.fake_quantize(data, const(low), const(high), const(0), const(255), 256), "u8")
    zero_point = opset1.convert(const(round(-low / scale), "u8"), "f32")
    return opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), zero_point), const(scale))


def test_a_sum_of_integers_whose_zero_point_is_stored_in_8_bits(core, infer):
    """The zero point of the sum passes 8 bits, and was cut to them."""
    x = parameter([1, 4, 5, 7])
    net = model(opset1.reduce_sum(with_zero_point_in_u8(x, -2.55, 2.55), const([2, 3], "i64"), True), x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"), level=0.05, share=1)


def arithmetic_of_one_tensor(low: float = -1.3, high: float = 1.7):
    """A layer's result less its mean, and times what follows from that: two readers of integers with a zero point."""
    x = parameter([-1, 3, 6, 6])
    layer = quantized(convolution(quantized(x, 0, 2.55), 8), low, high)
    mean = quantized(opset1.reduce_mean(layer, const([1], "i64"), True), low / 2, high / 2)
    centred = quantized(opset1.subtract(layer, mean), 2 * low, 2 * high)
    scaled = quantized(opset1.multiply(layer, opset1.sigmoid(centred)), low, high)
    return model(convolution(scaled, 4, seed=1), x)


def float_layer_beside_integers(padding: int = 0):
    """A layer in int8 and one in float read a layer's result, the latter perhaps padded."""
    x = parameter([-1, 3, 6, 6])
    layer = quantized(convolution(quantized(x, 0, 2.55), 8), -1.3, 1.7)
    ends = [const([0, 0, side, side], "i64") for side in (padding, 0)]
    data = opset1.pad(layer, *ends, "constant", const(0)) if padding else layer
    floats = const(np.random.default_rng(2).uniform(-1, 1, (8, 1, 1, 3, 3)))
    beside = opset1.group_convolution(data, floats, [1, 1], [1, 1], [1, 1], [1, 1])
    return model([convolution(layer, 4, seed=1), opset1.relu(beside)], x)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize(
    "build",
    [arithmetic_of_one_tensor, float_layer_beside_integers, partial(float_layer_beside_integers, 2)],
    ids=["arithmetic", "layer in float", "padded"],
)
def test_a_zero_point_before_floats_is_no_layer(core, tmp_path, form, precision, build):
    """Each had a Convert, which was a layer in bf16, and the two equal ones were one layer that stored floats."""
    net, hint = build(), {"INFERENCE_PRECISION_HINT": precision}
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (2, 3, 6, 6)).astype(np.float32)]
    stock = core.compile_model(net, "CPU", hint)
    compiled = compiled_in(form, net, core, tmp_path, **hint)
    executed, expected = (
        [layer.layer_type for layer in ovlpt.execution_types(each, inputs).executed] for each in (compiled, stock)
    )
    for kind in ("Convert", "Eltwise"):
        assert executed.count(kind) <= expected.count(kind)
    if precision == "f32":
        assert_close(list(compiled(inputs).values()), list(stock(inputs).values()), share=0.02)


@pytest.mark.parametrize("serializable", [False, True])
def test_a_zero_point_after_a_layer_is_part_of_its_bias(core, infer, serializable):
    """Of a MatMul that became a convolution."""
    net, config = encoder(False), cpu.config(slow_mat_mul=True)
    inputs = inputs_of(net)
    plain, lowered = (
        ovlpt.transform(net, core=core, config=config, lowered=low, serializable=serializable) for low in (False, True)
    )
    kinds, before = ([node.get_type_name() for node in each.get_ops()] for each in (lowered, plain))
    assert "Subtract" in before
    assert "Subtract" not in kinds
    hidden = kinds.count("FakeQuantize") if serializable else 0  # a zero is added to an end of each
    assert kinds.count("Add") - hidden <= before.count("Add")
    assert_close(infer(lowered, inputs), infer(net, inputs, "YES"), level=np.inf, share=1e-3)


def test_a_zero_point_after_one_element_of_open_batch(core):
    """It is the next layer's, and no post-operation by channel: squeeze and excitation had a layer more each time."""
    x = parameter([-1, 16, 1, 1])
    layer = opset1.convolution(quantized(x, 0, 2.55), int8_weights((8, 16, 1, 1)), [1, 1], [0, 0], [0, 0], [1, 1])
    hidden = NodeFactory("opset4").create("Swish", [opset1.add(layer, const(np.full((1, 8, 1, 1), 0.1))).output(0)])
    hidden = quantized(hidden, -0.3, 1.7)
    layer = opset1.convolution(hidden, int8_weights((16, 8, 1, 1)), [1, 1], [0, 0], [0, 0], [1, 1])
    net = model(opset1.sigmoid(opset1.add(layer, const(np.full((1, 16, 1, 1), 0.1)))), x)
    values = np.random.default_rng(0).uniform(0, 2.5, (1, 16, 1, 1)).astype(np.float32)
    stock, mine = core.compile_model(net, "CPU", EXACT), ovlpt.compile_model(net, "CPU", EXACT, core=core)
    assert len(execution_types(mine).executed) <= len(execution_types(stock).executed)
    assert_close([mine(values)[0]], [core.compile_model(net, "CPU", TRUTH)(values)[0]])


@pytest.mark.parametrize("form", FORMS)
def test_a_difference_of_integers(by_form, form):
    """Left as the sum of one and a product by -1 it would become a Subtract of two types, and throw."""
    x = parameter([12])
    data = quantized(x, -1.27, 1.27, 255)
    net, inputs = model(opset1.subtract(data, data), x), [np.linspace(-1, 1, 12, dtype=np.float32)]
    assert_close([by_form(net, inputs, form)], [np.zeros(12)])


@pytest.mark.parametrize("lpt", ["NO", "YES"])
def test_a_shift_that_is_taken_away_after_one_element_of_open_sizes(core, infer, lpt):
    """Without the common optimizations it is no Add: it was lost to a per-channel interval."""
    layer = convolution(quantized(parameter([-1, 8, 1, 1]), -1.28, 1.27), 8, 1)
    x = layer.input_value(0).get_node().input_value(0).get_node()
    shifted = opset1.relu(opset1.subtract(layer, const(np.linspace(-1, 1, 8).reshape(1, 8, 1, 1))))
    net = model(quantized(shifted, 0, 1), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1, (1, 8, 1, 1)).astype(np.float32)]
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs), level=0.02, share=1)


def expanded(x, data, target, mode="bidirectional"):
    shape = NodeFactory("opset3").create("ShapeOf", [x.output(0)], {"output_type": "i64"})
    target = const(target, "i64")
    if mode == "numpy":  # known when the data is
        target = opset1.maximum(shape, target)
    return NodeFactory("opset3").create("Broadcast", [data.output(0), target.output(0)], {"mode": mode})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [[1, 1, 6, 6], [-1, 1, -1, -1]], ids=str)
@pytest.mark.parametrize(
    "widen",
    [
        lambda x, data: opset1.concat([data] * 3, 1),
        lambda x, data: expanded(x, data, [1, 3, 1, 1]),
        lambda x, data: expanded(x, data, [2, 3, 1, 1]),
        lambda x, data: expanded(x, data, [1, 3, 1, 1], "numpy"),
        lambda x, data: expanded(data, data, [1, 3, 1, 1], "numpy"),
    ],
    ids=["concat", "broadcast", "also the batch", "when the data is known", "when the integers are known"],
)
def test_one_channel_with_a_zero_point_becomes_several(core, tmp_path, widen, shape, form):
    """The plugin leaves the Broadcast out: the zero point had more channels than the data."""
    x = parameter(shape)
    layer = opset1.convolution(
        widen(x, quantized(x, -1, 1.55)), int8_weights([8, 3, 3, 3]), [1, 1], [1, 1], [1, 1], [1, 1]
    )
    net = model(layer, x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 1, 6, 6)).astype(np.float32)]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)[0]
    compiled = compiled_in(form, net, core, tmp_path)
    assert [layer.is_int8 for layer in weighted(ovlpt.execution_types(compiled, inputs))] == [True]
    assert_close([compiled(inputs)[0]], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [[1, 8, 6, 6], [-1, 8, 6, 6], [-1, 8, -1, -1]], ids=str)
@pytest.mark.parametrize("sizes", ["own", "larger of its own"])
def test_data_with_a_zero_point_that_is_expanded_to_its_own_shape(core, tmp_path, sizes, shape, form):
    """As `expand_as` leaves it; with a Clamp after it, it was a layer that stock has not."""
    x = parameter(shape)
    data = quantized(opset1.multiply(x, opset1.reduce_mean(x, const([1], "i64"), True)), -1, 1.55)
    target = NodeFactory("opset3").create("ShapeOf", [data.output(0)], {"output_type": "i64"})
    target = target if sizes == "own" else opset1.maximum(target, target)
    wide = NodeFactory("opset3").create("Broadcast", [data.output(0), target.output(0)], {"mode": "bidirectional"})
    net, narrow = (model(convolution(each, 8), x) for each in (wide, data))
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 8, 6, 6)).astype(np.float32)]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)[0]
    compiled, without = (compiled_in(form, each, core, tmp_path) for each in (net, narrow))
    layers = ovlpt.execution_types(compiled, inputs)
    assert [layer.is_int8 for layer in weighted(layers)] == [True]
    assert len(layers.executed) == len(ovlpt.execution_types(without, inputs).executed)
    assert_close([compiled(inputs)[0]], [expected], level=0.03 * np.abs(expected).max(), share=1)


def test_integers_minus_a_float_constant(core, infer):
    """ConvertSubtractWithConstant throws on mixed types."""
    x = parameter([1, 16, 8, 8])
    asymmetric = quantized(x, -1.0, 1.55)
    net = model([convolution(asymmetric, 16), opset1.sigmoid(asymmetric)], x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "YES"))


def test_a_zero_point_of_signed_data(core, infer):
    """Subtracted in i8, the difference would saturate."""
    x = parameter([1, 16, 6, 6])
    net = model(convolution(quantized(x, -0.5, 3), 8), x)
    manager = Manager()
    manager.register_pass(ovlpt.LowPrecision([ovlpt.PrecisionsRestriction.create("Convolution", {0: ["i8"]})]))
    manager.register_pass(PluginLowering("CPU"))
    lowered = net.clone()
    manager.run_passes(lowered)
    inputs = inputs_of(net)
    expected = infer(net, inputs, "NO")
    assert_close(infer(lowered, inputs), expected, level=0.02 * float(np.abs(expected[0]).max()), share=1)


@pytest.mark.parametrize("form", FORMS)
def test_the_zero_of_a_relu_of_data_with_a_zero_point(by_form, form):
    """It was 3e-7, which a comparison takes for more: the zero point is an integer but for a rounding."""
    x = parameter([2, 6, 4, 4])
    data = quantized(x, -2.36692214012146, 2.348430633544922)
    above = opset1.convert(opset1.greater(opset1.relu(data), const(0.0)), "f32")
    net = model([above, depthwise(data)], x)
    inputs = [np.zeros((2, 6, 4, 4), np.float32)]
    assert not by_form(net, inputs, form).any()


@pytest.mark.parametrize("levels", [256, 255])
def test_a_zero_point_that_no_layer_takes_after_a_float_product_of_open_sizes(core, infer, levels):
    """The MatMul took that of the channels for one of columns, and threw; depthwise kernels over three axes are of floats."""
    x = parameter([1, 4, -1, -1, -1])
    product = opset1.matmul(x, const(np.random.default_rng(0).standard_normal((12, 4))), False, True)
    stored = np.random.default_rng(1).integers(-63, 64, (4, 1, 1, 1, 3, 2)).astype(np.int8)
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(0.01))
    ones, zeros = [1, 1, 1], [0, 0, 0]
    data = opset1.fake_quantize(product, *(const(end) for end in (-4.0, 3.0) * 2), levels)
    net, values = (
        model(opset1.group_convolution(data, weights, ones, zeros, zeros, ones), x),
        [np.random.default_rng(2).standard_normal((1, 4, 3, 4, 4)).astype(np.float32)],
    )
    fixed = net.clone()
    fixed.reshape(list(values[0].shape))
    assert_close(infer(drop_in(net, core), values), infer(fixed, values, "NO"), level=0.05)


@pytest.mark.parametrize("reads", ["equal factors", "its shape"])
@pytest.mark.parametrize("shape", [[-1, 4, 6], [-1, 4, 6, 6]], ids=str)
def test_groups_with_a_zero_point_whose_result_is_read_twice(core, infer, shape, reads):
    """A Clamp that keeps the scale apart would be fused into the layer with it, once the readers are one: 28 to 42 % off."""
    axes = len(shape) - 2
    x = parameter(shape)
    weights = int8_weights([2, 12, 2, *[3] * axes])
    layer = opset1.group_convolution(quantized(x, -1, 1), weights, [1] * axes, [0] * axes, [0] * axes, [1] * axes)
    factor = const(np.random.default_rng(0).uniform(0.5, 1.5, [1, 24, *[1] * axes]))
    if reads == "equal factors":
        results = [opset1.relu(opset1.multiply(layer, factor)), opset1.sigmoid(opset1.multiply(layer, factor))]
    else:
        size = NodeFactory("opset3").create("ShapeOf", [layer.output(0)], {"output_type": "i64"})
        flat = opset1.reshape(opset1.multiply(layer, factor), const([0, 2, -1], "i64"), True)
        results = [opset1.reshape(opset1.tanh(flat), size, False)]
    net = model(results, x)
    inputs = [np.random.default_rng(0).uniform(-1, 1, [2, *shape[1:]]).astype(np.float32)]
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, lpt="NO"), level=1e-3)


def test_a_quantization_after_groups_with_a_zero_point_is_part_of_the_layer(core, infer):
    """What keeps a factor from such a layer without VNNI kept its interval from it everywhere: 22 layers more in a RegNet."""
    if this_cpu.multiplies_groups_wrongly():
        pytest.skip("with AVX-512 and no VNNI the interval is kept from the layer: gemm computes it wrongly")
    x, ones = parameter([1, 32, 6, 6]), [1, 1]
    stored = np.random.default_rng(0).integers(-63, 64, (4, 8, 8, 3, 3))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(0.004))
    layer = opset1.group_convolution(quantized(x, -1, 1.55), weights, ones, ones, ones, ones)
    net = model(convolution(quantized(layer, -1, 1.2), 8, kernel=1), x)
    inputs = inputs_of(net)
    mine, stock = (
        execution_types(each)
        for each in (ovlpt.compile_model(net, core=core, properties=EXACT), core.compile_model(net, "CPU", EXACT))
    )
    assert sorted(each.layer_type for each in mine.executed) == sorted(each.layer_type for each in stock.executed)
    found = ovlpt.compile_model(net, core=core, properties=EXACT)(inputs).values()
    assert_close(list(found), infer(net, inputs, "NO"), level=0.02, share=0.05)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("axes", [1, 2])
def test_a_zero_point_of_one_channel_that_no_size_tells(core, tmp_path, axes, precision, form):
    """The layer was in float, and in bf16 compiling threw; with the plugin's own LPT, too."""
    x, pads = parameter([-1] * (axes + 2)), [[1] * axes] * 4
    layer = opset1.convolution(quantized(x, -1, 1.55), int8_weights([16, 1, *[3] * axes]), *pads)
    net = model(
        convolution(quantized(layer, -2, 2), 8, kernel=1) if axes > 1 else opset1.sigmoid(quantized(layer, -2, 2)), x
    )
    compiled = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=precision)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, [2, 1, *[9] * axes]).astype(np.float32)]
    assert all(layer.is_int8 for layer in weighted(ovlpt.execution_types(compiled, inputs)))
    fixed = net.clone()
    fixed.reshape(list(inputs[0].shape))
    expected = core.compile_model(fixed, "CPU", TRUTH)(inputs)[0]
    assert_close([compiled(inputs)[0]], [expected], level=0.02, share=1)


@pytest.mark.parametrize("last", [9, -1])
def test_what_is_known_of_the_sizes_beside_a_channel_that_no_size_tells(core, last):
    """The output was of open columns, whether those of the input were known or not."""
    x, pads = parameter([-1, -1, 8, last]), [[1, 1]] * 4
    layer = opset1.convolution(quantized(x, -1, 1.55), int8_weights([16, 1, 3, 3]), *pads)
    net = model(convolution(quantized(layer, -2, 2), 8, kernel=1), x)
    shapes = [each.outputs[0].get_partial_shape() for each in (net, ovlpt.transform(net, core=core))]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("by_channel", [False, True])
def test_a_padded_grouped_convolution_over_three_axes(core, infer, by_channel):
    """The plugin pads what has a zero point wrongly, with its own LPT too."""
    x = parameter([1, 4, 5, 4, 4])
    integers = np.random.default_rng(0).integers(-63, 64, (2, 2, 2, 2, 2, 2)).astype(np.int8)
    weights = opset1.multiply(opset1.convert(const(integers, "i8"), "f32"), const(np.float32(0.01)))
    ones = [1, 1, 1]
    low = np.array([-85, -130, -40, -20]).reshape(1, 4, 1, 1, 1) / 85 if by_channel else np.array(-1)
    data = opset1.fake_quantize(x, *(const(end) for end in (low, low + 3, low, low + 3)), 256)
    net = model(opset1.group_convolution(data, weights, ones, ones, ones, ones), x)
    inputs = inputs_of(net)
    expected = infer(net, inputs, "NO")
    assert_close(infer(drop_in(net, core), inputs), expected, level=0.03 * float(np.abs(expected[0]).max()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize(
    "space, weights",
    [((7,), (6, 8, 3)), ((7, 5), (6, 16, 1, 1)), ((7, 5), (2, 3, 8, 3, 3)), ((3, 4, 5), (6, 8, 2, 2, 2))],
)
def test_padding_of_zero_points_by_channel(by_form, space, weights, same, form):
    """The plugin pads a block of channels with the zero points of its first four, with its own LPT too."""
    kind = "Group" if len(weights) - len(space) > 2 else ""
    channels, ones = weights[-len(space) - 1] * (weights[0] if kind else 1), [1] * len(space)
    x = parameter([1, channels, *space])
    shift = const(np.random.default_rng(0).integers(90, 200, (1, channels, *ones)) * np.float32(0.01))
    integers = const(np.random.default_rng(1).integers(-63, 64, weights), "i8")
    layer = NodeFactory("opset1").create(
        f"{kind}Convolution",
        [opset1.subtract(quantized(x, 0, 2.55), shift), opset1.multiply(opset1.convert(integers, "f32"), const(0.01))],
        {"strides": ones, "dilations": ones, "pads_begin": ones, "pads_end": ones}
        | ({"auto_pad": "same_upper"} if same else {}),
    )
    net = model(layer, x)
    inputs = inputs_of(net)
    expected = by_form(net, inputs)
    assert_close([by_form(net, inputs, form)], [expected], level=1e-3 * float(np.abs(expected).max()))


def test_strides_after_a_split_with_a_zero_point(core, infer):
    """Moved up to the Split, a stride would be that of another output."""
    x = parameter([1, 16, 6, 6])
    halves = opset1.split(quantized(x, -1, 1.55), const(1, "i64"), 2)
    layers = [
        opset1.convolution(half, int8_weights([8, 8, 1, 1], seed=seed), [2, 2], [0, 0], [0, 0], [1, 1])
        for seed, half in enumerate(halves.outputs())
    ]
    net = model(layers, x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("layers", [1, 2])
def test_strides_of_a_float_layer_after_a_split(core, infer, layers):
    """Moved up to the second half, a stride would be that of the first, in float too: the truth has a slice."""

    def network(half):
        x = parameter([1, 4, 6, 6])
        ones = [1, 1]
        integers = opset1.convolution(quantized(x, -1, 1.55), int8_weights([16, 4, *ones]), ones, [0, 0], [0, 0], ones)
        data = opset1.relu(opset1.add(half(integers), const(np.linspace(-1, 1, 8).reshape(1, 8, 1, 1))))
        for index in range(layers):
            weights = const(np.random.default_rng(index).uniform(-0.3, 0.3, (8, 8, 1, 1)))
            data = opset1.convolution(data, weights, [2 if index == layers - 1 else 1] * 2, [0, 0], [0, 0], [1, 1])
        return model(data, x)

    split = network(lambda data: opset1.split(data, const(1, "i64"), 2).output(1))
    ends = (const(end, "i64") for end in ([0, 8], [0, 0], [1, 1]))
    truth = network(lambda data: opset1.strided_slice(data, *ends, [1, 0], [1, 1]))
    inputs = inputs_of(split)
    assert_close(infer(drop_in(split, core), inputs), infer(truth, inputs))


BETWEEN = {
    "relu": lambda data: opset1.relu(data),
    "clamp": lambda data: opset1.clamp(quantized(data, -2, 2, levels=65536), -1.0, 1.0),
    "elu": lambda data: opset1.elu(data, 1.0),
    "dropped": lambda data: quantized(data, -4, 4, levels=65536),
}
PARTS = {
    "split": lambda x: opset1.split(x, const(1, "i64"), 2).output(1),
    "parts": lambda x: opset1.variadic_split(x, const(1, "i64"), const([4, 4], "i64")).output(1),
    "greatest": lambda x: opset1.topk(x, const(4, "i64"), 1, "max", "value").output(0),
}


@pytest.mark.filterwarnings("ignore:.*passes unchanged")
@pytest.mark.parametrize("way", ["simulated", "compiled", "pipeline"])
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("part", PARTS)
def test_strides_after_one_of_several_outputs(core, infer, part, between, way):
    """OpenVINO makes a MaxPool of the first output, or throws, in a model that passes unchanged and in a simulation, too."""
    x = parameter([2, 8, 6, 6])
    weights = int8_weights([4, 4, 1, 1])
    net = model(opset1.convolution(BETWEEN[between](PARTS[part](x)), weights, [2, 2], [0, 0], [0, 0], [1, 1]), x)
    inputs = [np.random.default_rng(0).standard_normal((2, 8, 6, 6)).astype(np.float32)]
    values = np.sort(inputs[0], axis=1)[:, :3:-1] if part == "greatest" else inputs[0][:, 4:]
    if between == "relu":
        values = np.maximum(values, 0)
    elif between == "elu":
        values = np.where(values > 0, values, np.expm1(np.minimum(values, 0)))
    elif between == "clamp":
        values = np.clip(values, -1, 1)
    if way == "simulated":
        found = [simulate(net, core)(inputs)[0]]
    elif way == "compiled":
        found = [ovlpt.compile_model(net, core=core, properties=EXACT)(inputs)[0]]
    else:
        found = infer(drop_in(net, core), inputs)
    expected = np.einsum("nchw,oc->nohw", values[:, :, ::2, ::2], folded_constant(weights.output(0))[..., 0, 0])
    assert_close(found, [expected], level=1e-3, share=1)


def test_strides_after_a_padded_layer(core, infer):
    """Moved up through both layers to the dequantization of their data, the padding would stay and come to other cells."""
    x = parameter([1, 2, 6, 8])
    half = opset1.split(quantized(x, -1, 1.55), const(1, "i64"), 2).output(0)
    data = opset1.reduce_mean(half, const([2, 3], "i64"), True)
    for seed, (shape, stride, pad) in enumerate((((16, 1, 1, 1), 1, 2), ((8, 16, 1, 1), 2, 0))):
        weights = const(np.random.default_rng(seed).uniform(-1, 1, shape))
        data = opset1.convolution(data, weights, [stride] * 2, [pad] * 2, [pad] * 2, [1, 1])
    net = model(data, x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


def test_a_zero_point_before_weights_with_zero_points_and_open_sizes(core, infer):
    """Such weights are real numbers to the plugin; the zero point of the data then ended the process."""
    x = parameter([-1, 8, -1, -1])
    stored = opset1.convert(const(np.random.default_rng(0).integers(-60, 60, (8, 1, 1, 1, 2)), "i8"), "f32")
    zero_point = const(np.arange(-4, 4).reshape(8, 1, 1, 1, 1))
    weights = opset1.multiply(opset1.subtract(stored, zero_point), const(np.full((8, 1, 1, 1, 1), 0.01)))
    first = opset1.convolution(quantized(x, -1, 1.55), int8_weights([8, 8, 1, 1]), [1, 1], [0, 0], [0, 0], [1, 1])
    net = model(opset1.group_convolution(quantized(first, -1, 1.55), weights, [2, 2], [0, 1], [0, 1], [1, 1]), x)
    lowered = ovlpt.transform(net, core=core, native_only=True)
    closed = net.clone()
    closed.reshape([1, 8, 1, 4])
    inputs = inputs_of(closed)
    assert_close(infer(lowered, inputs), infer(closed, inputs, "NO"), level=0.02, share=0.1)


def beyond_i8(data, inputs, seed=0):
    """A convolution whose weights fit no i8 without their zero point: it is of floats."""
    stored = const(np.random.default_rng(seed).integers(0, 255, (8, inputs, 3, 3)), "u8")
    weights = opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), const(100)), const(0.002))
    return opset1.convolution(data, weights, [1, 1], [1, 1], [1, 1], [1, 1])


def after_a_layer(data):
    return beyond_i8(quantized(beyond_i8(data, 3), -1.3, 1.25), 8, 1)


def before_two_layers(data):
    layer = quantized(beyond_i8(data, 3), -1.3, 1.25)
    return opset1.add(beyond_i8(layer, 8, 1), beyond_i8(layer, 8, 2))


def by_channel(data):
    low = const(-np.arange(40, 120, 10).reshape(1, 8, 1, 1) / 100)
    high = opset1.add(low, const(2.55))
    layer = opset1.fake_quantize(beyond_i8(data, 3), low, high, low, high, 256)
    weights = const(np.random.default_rng(1).integers(0, 255, (8, 1, 1, 3, 3)), "u8")
    weights = opset1.multiply(opset1.subtract(opset1.convert(weights, "f32"), const(100)), const(0.002))
    return opset1.group_convolution(layer, weights, [1, 1], [1, 1], [1, 1], [1, 1])


def beside_a_sum(data):
    layer = quantized(beyond_i8(data, 3), -1.3, 1.25)
    return opset1.relu(opset1.add(layer, quantized(beyond_i8(layer, 8, 1), -2, 3.1)))


def joined(data):
    layer = quantized(beyond_i8(data, 3), -1.3, 1.25)
    return beyond_i8(opset1.concat([layer, opset1.max_pool(layer, [1, 1], [1, 1], [1, 1], [3, 3])], 1), 16, 1)


def assert_close_to_simulation(core, net, compiled, inputs):
    """At the sizes of the one input."""
    closed = net.clone()
    closed.reshape(list(inputs[0].shape))
    truth = simulate(closed, core)(inputs)
    assert_close(list(compiled(inputs).values()), list(truth.values()), level=0.02, share=0.3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (by_channel, [2, 3, 6, 6]),
        *product([after_a_layer, before_two_layers, beside_a_sum, joined], [[2, 3, 6, 6], [-1, 3, -1, -1], [-1] * 4]),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_zero_point_before_weights_beyond_i8_is_no_layer_more(core, tmp_path, build, shape, precision, form):
    """Its Convert was one, and it was one; both were part of the FakeQuantize, or one layer."""
    x, hint = parameter(shape), {"INFERENCE_PRECISION_HINT": precision}
    net = model(build(quantized(x, -1, 1.55)), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.55, (2, 3, 6, 6)).astype(np.float32)]
    compiled = compiled_in(form, net, core, tmp_path, **hint)
    kinds, expected = (
        [layer.layer_type for layer in ovlpt.execution_types(each, inputs).executed]
        for each in (compiled, core.compile_model(net, "CPU", hint))
    )
    assert kinds.count("Convert") <= expected.count("Convert")
    assert len(kinds) <= len(expected)
    if precision == "f32":
        assert_close_to_simulation(core, net, compiled, inputs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_integers_that_are_cut_between_two_and_quantized_again_are_not_stored(core, tmp_path, precision, form):
    """In bf16 a Convert and a FakeQuantize were layers of their own, between two Reorders."""
    x, hint = parameter([-1, 3, -1, -1]), {"INFERENCE_PRECISION_HINT": precision}
    layer = quantized(convolution(quantized(x, -1, 1.55), 8), -0.65, 1.9)
    net = model(convolution(quantized(opset1.clamp(layer, 0, 0.745), -0.65, 1.9), 8, seed=1), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.55, (2, 3, 6, 6)).astype(np.float32)]
    compiled = compiled_in(form, net, core, tmp_path, **hint)
    kinds = [layer.layer_type for layer in ovlpt.execution_types(compiled, inputs).executed]
    assert kinds.count("Convert") == 0
    assert kinds.count("FakeQuantize") == 1
    if precision == "f32":
        assert_close_to_simulation(core, net, compiled, inputs)


@pytest.mark.parametrize("form", FORMS)
def test_a_float_value_of_whole_numbers_less_a_zero_point(by_form, form):
    """One rounding, that of the product, as with the plugin's own LPT; ``x * s - z * s`` would be off by that of ``z * s``."""
    x = parameter([1, 8, 6, 6])
    low, scale = np.float32(-132) * np.float32(0.0062665), np.float32(0.0062665)
    data = opset1.max_pool(quantized(x, low, low + 255 * scale), [1, 1], [0, 0], [0, 0], [2, 2])
    levels = np.random.default_rng(0).integers(0, 256, (1, 8, 6, 6))
    largest = np.max([levels[:, :, i : i + 5, j : j + 5] for i in (0, 1) for j in (0, 1)], axis=0)
    found = by_form(model(data, x), [(levels.astype(np.float32) - 132) * scale], form)
    np.testing.assert_allclose(found, (largest.astype(np.float64) - 132) * 0.0062665, rtol=2e-7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0.0, -0.64], ids=["unsigned", "signed"])
@pytest.mark.parametrize("kind", ["Broadcast", "Concat", "shape of another"])
def test_a_scale_after_integers_that_are_broadcast(by_form, form, kind, low):
    """It was fused into the FakeQuantize, whose real values were then rounded to integers: 0 for all."""
    x, other = parameter([1, 4, 1, 1]), parameter([-1, 4, -1, -1], name="y")
    data = quantized(x, low, 0.64 * 255 / 256 if low == 0 else 0.635)
    if kind == "Broadcast":
        wide = opset1.broadcast(data, const([1, 4, 3, 2], "i64"))
    elif kind == "shape of another":
        wide = opset1.broadcast(data, opset1.shape_of(other))
    else:  # of one tensor, which OpenVINO makes a Broadcast of
        wide = opset1.concat([data, data], 3)
    net = model([wide, opset1.relu(other)], [x, other])
    random = np.random.default_rng(0)
    inputs = [random.uniform(-0.6, 0.6, shape).astype(np.float32) for shape in ((1, 4, 1, 1), (2, 4, 3, 2))]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["Broadcast", "Tile"])
def test_what_is_repeated_for_floats_is_quantized_as_floats(core, tmp_path, form, kind):
    """The integers were repeated, and all of them were scaled, in a layer more."""
    x = parameter([2, 4, 1])
    data = quantized(x, -0.64, 0.8)
    wide = opset1.tile(data, const([1, 1, 6], "i64"))
    if kind == "Broadcast":
        wide = opset1.broadcast(data, const([2, 4, 6], "i64"))
    net = model(wide, x)
    compiled, inputs = compiled_in(form, net, core, tmp_path), inputs_of(net)
    assert len(execution_types(compiled).executed) == 2
    assert_close(compiled(inputs).values(), core.compile_model(net, "CPU", TRUTH)(inputs).values())


def places_of_a_flow():
    """A field of displacements, channels last, to which the place of each is added, and the whole scaled to [-1, 1]."""
    x = parameter([1, 4, 6, 6])
    flow = quantized(convolution(quantized(x, 0, 2.55), 2), -1.28, 1.27)
    last = opset1.transpose(flow, const([0, 2, 3, 1], "i64"))
    rows, columns = np.meshgrid(*[np.arange(6.0)] * 2, indexing="ij")
    places = opset1.add(last, const(np.stack([columns, rows], -1)[np.newaxis]))
    return model(opset1.multiply(places, const(2 / 5)), x)


def patches_with_positions():
    """Patches as tokens, channels last, to which the positions are added, and the sum is quantized.

    A product of two tensors reads it: one with weights is a convolution with layers around it, on CPUs where that is faster. The
    keys are small: CPUs without VNNI saturate.
    """
    x, keys = parameter([1, 4, 6, 6]), parameter([1, 8, 8], name="keys")
    tokens = opset1.reshape(
        quantized(convolution(quantized(x, 0, 2.55), 8), -1.28, 1.27), const([0, 8, -1], "i64"), True
    )
    last = opset1.transpose(tokens, const([0, 2, 1], "i64"))
    total = opset1.add(last, const(np.random.default_rng(0).uniform(-1, 1, (1, 36, 8))))
    return model(opset1.matmul(quantized(total, -2.56, 2.54), quantized(keys, -7.68, 7.62), False, True), [x, keys])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("build", [places_of_a_flow, patches_with_positions], ids=lambda each: each.__name__)
def test_a_shift_that_differs_by_place_after_a_transpose(core, infer, tmp_path, build, form):
    """A Convert before it was moved before the Transpose, which then moved floats; a scale after it was a layer of its own."""
    net = build()
    inputs = inputs_of(net)
    compiled = compiled_in(form, net, core, tmp_path)
    stock = execution_types(core.compile_model(net, "CPU", EXACT)).executed
    layers = execution_types(compiled).executed
    assert "f32" not in [layer.precision for layer in layers if layer.layer_type == "Transpose"]
    assert len(layers) <= len(stock)
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "NO"), level=0.02, share=0.02)


def normalized_pool(x):
    """A pool of what an attention gives, normalized by channel."""
    tokens = opset1.reshape(x, const([0, 8, -1], "i64"), True)
    keys = quantized(tokens, -5.12, 5.08)  # small: CPUs without VNNI saturate
    scores = quantized(opset1.matmul(quantized(tokens, -1.28, 1.27), keys, True, False), -2.56, 2.54)
    product = opset1.transpose(scores, const([0, 2, 1], "i64"))
    space = opset1.reshape(product, const([0, 36, 6, 6], "i64"), True)
    pooled = opset1.max_pool(space, [2, 2], [0, 0], [0, 0], [2, 2])
    ends = (0.5, 1.5), (-1, 1), (-0.2, 0.3), (0.5, 1.5)
    normal = opset1.batch_norm_inference(pooled, *(const(np.linspace(*each, 36)) for each in ends), 1e-5)
    weights = const(np.random.default_rng(0).normal(0, 0.2, (4, 36, 1, 1)))
    return opset1.convolution(opset1.tanh(normal), weights, [1, 1], [0, 0], [0, 0], [1, 1])


def joined_tokens(x):
    """Two layers' results of different scales, joined, as tokens."""
    data, ends = quantized(x, 0, 2.55), (-1, -1.2)
    parts = [quantized(convolution(data, 4, seed=seed), low, low + 2.55) for seed, low in enumerate(ends)]
    tokens = opset1.reshape(opset1.concat(parts, 1), const([0, 8, -1], "i64"), True)
    turned = opset1.transpose(tokens, const([0, 2, 1], "i64"))
    weights = const(np.random.default_rng(0).normal(0, 0.2, (4, 8)))
    return opset1.matmul(opset1.add(turned, opset1.tanh(turned)), weights, False, True)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("build", [normalized_pool, joined_tokens], ids=lambda each: each.__name__)
def test_scales_by_channel_after_a_pool_or_a_reshape_of_dynamic_sizes(core, infer, tmp_path, build, form, precision):
    """The Convert before the zero point was a layer of its own in bf16, which stores floats."""
    x = parameter([-1, 8, 6, 6])
    net = model(build(x), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.5, (2, 8, 6, 6)).astype(np.float32)]
    compiled = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=precision)
    layers = execution_types(compiled, inputs).executed
    assert not [layer for layer in layers if layer.layer_type == "Convert"]
    closed = net.clone()
    closed.reshape([2, 8, 6, 6])
    bounds = {"level": 0.02, "share": 0.02} if precision == "f32" else {"level": 0.1, "share": 1}
    assert_close(list(compiled(inputs).values()), infer(closed, inputs, "NO"), **bounds)


@pytest.mark.parametrize("sizes", [(-1, -1), (2, 60)], ids=["open", "fixed"])
def test_integers_times_their_own_transpose_quantized_again(core, infer, sizes):
    """Similarities of frames. The Transpose moved after the second quantization and the sum for a zero point, and into a
    MatMul that was not relaxed: compiling threw.
    """
    x = parameter([*sizes, 128])
    rows = with_zero_point_in_u8(x, -0.32257, 0.31017)
    columns = with_zero_point_in_u8(opset1.transpose(rows, const([0, 2, 1], "i64")), -0.32257, 0.31017)
    net = model(with_zero_point_in_u8(opset1.matmul(rows, columns, False, False), -1.5, 1.5), x)
    data = [np.random.default_rng(0).uniform(-0.15, 0.15, (2, 60, 128)).astype(np.float32)]  # sums that do not saturate
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    layers = weighted(ovlpt.execution_types(compiled, data))
    assert [layer.is_int8 for layer in layers] == [True]
    assert_close(list(compiled(data).values()), infer(net, data, "NO"), level=3 / 255)


def strided_after(before: str):
    """A strided layer of floats, of single elements."""
    x = parameter([1, 8, 8, 8])
    data, shift, others = quantized(x, -1, 1.5), const(np.linspace(-1, 1, 8).reshape(1, 8, 1, 1)), []
    if before == "a layer":
        data = opset1.relu(opset1.add(convolution(data, 8), shift))
    else:
        data = opset1.add(data, shift)
        others = [convolution(data, 4)]
    weights = const(np.random.default_rng(0).uniform(-1, 1, (16, 8, 1, 1)))
    return model([opset1.convolution(data, weights, [2, 2], [0, 0], [0, 0], [1, 1]), *others], x)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["a layer", "a zero point of its own"])
def test_a_stride_of_floats_stays_after_a_dequantization(core, by_form, before, form):
    """Moved up to the Convert, it was a pool, a layer more than in stock."""
    net = strided_after(before)
    inputs = inputs_of(net)
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.01)
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    assert "Pooling" not in {layer.layer_type for layer in execution_types(compiled).executed}


@pytest.mark.parametrize("form", FORMS)
def test_a_zero_point_by_row_of_an_open_number_of_rows(core, by_form, form):
    """It settles the number, so that no FakeQuantize has it; the integers were converted in a layer of their own."""
    x = parameter([2, -1, 8])
    lows, highs = np.linspace(-1.2, -0.5, 6).reshape(1, 6, 1), np.linspace(0.6, 3, 6).reshape(1, 6, 1)
    ends = [const(end) for end in (lows, highs)] * 2
    net = model(opset1.fake_quantize(x, *ends, 256), x)
    inputs = [np.random.default_rng(0).standard_normal((2, 6, 8)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.02, share=1)
    layers = execution_types(ovlpt.compile_model(net, core=core, properties=EXACT), inputs).executed
    assert "Convert" not in {layer.layer_type for layer in layers}
