"""Recurrent layers, which a plugin forms while its own LPT is on: one test for each trap that the lowering avoids."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device.compile import lpt_properties
from ovlpt.device.lowering.recurrent import drop_grid_of_stored
from ovlpt.inspect.float_model import simulate
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import RELEASE, opset1
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of, needs_avx2
from tests.graphs import opset3, opset5, opset6
from tests.lowered import drop_in, layer_of_eight, recurrent, weighted
from tests.networks import (
    const,
    int8_weights,
    model,
    one_convolution,
    parameter,
    quantized,
)


@needs_avx2
def test_a_recurrent_layer_runs_in_int8(core):
    """The plugin forms quantized recurrent layers only while its own LPT is on."""
    net, _ = recurrent()
    inputs = inputs_of(net)
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    mine, theirs = (ovlpt.execution_types(each).summary()["RNNSeq"] for each in (compiled, stock))
    assert mine == theirs
    assert_close(list(compiled(inputs).values()), list(stock(inputs).values()))


@needs_avx2
@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("transposed", ["x", "h", "columns", "image", "pooled"])
def test_a_recurrent_layer_of_what_is_transposed_runs_in_int8(core, infer, transposed, serializable):
    """As exporters write it: time and batch, or directions and batch, change places after the FakeQuantize."""
    net, by_hand = recurrent(batch=3, transposed=transposed)
    inputs = inputs_of(net)
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
    assert [layer.is_int8 for layer in ovlpt.execution_types(compiled).executed if layer.layer_type == "RNNSeq"] == [
        True
    ]
    if transposed == "pooled":  # of data that is never negative stock clips the state
        images, states = inputs
        expected = by_hand(images.max(2).transpose(0, 2, 1)[:1], states[:1])
        assert_close([compiled(inputs)[0][:1]], [expected], level=1.1 / 64, share=1)
    else:
        assert_close(list(compiled(inputs).values()), infer(net, inputs, "YES"), level=1.1 / 64, share=0.2)


@needs_avx2
@pytest.mark.parametrize("serializable", [False, True])
def test_zero_points_beside_a_recurrent_layer(core, infer, serializable):
    """The plugin's own LPT, on for the recurrent layer, would fuse a zero point into the FakeQuantize that it follows."""
    nets = one_convolution(-1.0, 1.55), recurrent()[0]
    outputs = [net.get_results()[0].input_value(0).get_node() for net in nets]
    net = model(outputs, [each for net in nets for each in net.get_parameters()])
    inputs = inputs_of(net)
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
    layers = ovlpt.execution_types(compiled).executed
    found = {layer.layer_type: (layer.precision, layer.is_int8) for layer in layers}
    assert found["Convolution"] == found["RNNSeq"] == ("u8", True)
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "YES"))


@needs_avx2
@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("low", [0.0, -1.0])
def test_one_element_of_open_sizes_beside_a_recurrent_layer(core, low, serializable):
    """The plugin's own LPT, on for the recurrent layer, would take scale and bias by channel into the next interval."""
    x, (other, _) = parameter([1, 8, -1, -1]), recurrent()
    layer = quantized(layer_of_eight("point", quantized(x, low, low + 2.55)), -1.28, 1.27)
    results = [layer_of_eight("point", layer), layer, other.get_results()[0].input_value(0).get_node()]
    net = model(results, [x, *other.get_parameters()])
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
    assert {layer.is_int8 for layer in weighted(ovlpt.execution_types(compiled))} == {True}
    simulated = core.compile_model(model(results[:2], x), "CPU", TRUTH)
    for size in (1, 3):
        data = np.random.default_rng(0).uniform(low, low + 2.5, (1, 8, size, size)).astype(np.float32)
        found = list(compiled([data, *inputs_of(other)]).values())[:2]
        for one, true in zip(found, simulated([data]).values(), strict=True):
            assert_close([one], [true], level=0.03 * np.abs(true).max(), share=1)


@needs_avx2
@pytest.mark.parametrize("serializable", [False, True])
def test_what_stays_in_real_numbers_beside_a_recurrent_layer(core, infer, serializable):
    """The plugin's own LPT, on for the recurrent layer, would pad integers that have a zero point with zeros."""
    x, (other, _) = parameter([1, 8, 6, 6]), recurrent()
    mean = opset1.avg_pool(quantized(x, -1.27, 1.55, 16), [2, 2], [1, 1], [0, 0], [3, 3], False)
    net = model([mean, other.get_results()[0].input_value(0).get_node()], [x, *other.get_parameters()])
    inputs = inputs_of(net)
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
    assert [layer.is_int8 for layer in ovlpt.execution_types(compiled).executed if layer.layer_type == "RNNSeq"] == [
        True
    ]
    assert_close([compiled(inputs)[0]], infer(model(mean, x), inputs[:1]))


@needs_avx2
@pytest.mark.parametrize("way", ["compiled", "saved", "pipeline"])
@pytest.mark.parametrize("between", ["nothing", "reshape", "shift", "divided", "divisor", "turned"])
@pytest.mark.parametrize("kind", ["mvn", "normalize"])
def test_a_normalization_beside_a_recurrent_layer(core, kind, between, way):
    """The plugin's own LPT would move the scale after a normalization, and with it eps, which is a large part here."""
    x = parameter([1, 8, 6, 6])
    data = quantized(x, -0.0253, 0.0257)
    if between == "reshape":
        data = opset1.reshape(data, const([1, 8, 36, 1], "i64"), False)
    elif between == "shift":
        data = opset1.add(opset1.max_pool(data, [1, 1], [0, 0], [0, 0], [2, 2]), const(0.001))
    elif between == "divided":
        data = opset1.divide(data, const(1.7))
    elif between == "divisor":
        data = opset1.divide(const(0.01), opset1.add(opset1.abs(data), const(0.5)))
    elif between == "turned":
        data = opset1.negative(quantized(x, 0.0, 0.0257))
    if kind == "mvn":
        normalized = opset6.mvn(data, const([2, 3], "i64"), True, 1e-3, "inside_sqrt")
    else:
        normalized = opset1.normalize_l2(data, const([1], "i64"), 1e-2, "add")
    images = np.random.default_rng(0).normal(0, 0.01, (1, 8, 6, 6)).astype(np.float32)
    results = [opset1.relu(normalized), opset1.relu(data)] if between != "turned" else [normalized]
    found, expected = _beside_a_recurrent_layer(core, results, x, images, way)
    assert_close(found, expected, level=1e-5, share=1)


@needs_avx2
@pytest.mark.parametrize("way", ["compiled", "saved", "pipeline"])
@pytest.mark.parametrize("sizes", [[2, 5, 8], [2, 5, -1]], ids=["fixed", "open"])
@pytest.mark.parametrize("low", [0.0, -3.2], ids=["u8", "i8"])
@pytest.mark.parametrize("kind", ["plus", "minus", "constant minus"])
def test_a_sum_of_integers_beside_a_recurrent_layer(core, kind, low, sizes, way):
    """The plugin's own LPT would move the scale after the sum, and add integers of 8 bits."""
    x, random = parameter(sizes), np.random.default_rng(0)
    data = quantized(x, low, 3.2, levels=255 if low else 256)
    shift = const(random.normal(0, 1, (1, 1, 8)))
    pairs = {"plus": (opset1.add, data, shift), "minus": (opset1.subtract, data, shift)}
    operation, *operands = pairs.get(kind, (opset1.subtract, shift, data))
    results = [operation(*operands), opset1.matmul(data, int8_weights([4, 8]), False, True)]
    rows = random.normal(0, 1.5, (2, 5, 8)).astype(np.float32)
    found, expected = _beside_a_recurrent_layer(core, results, x, rows, way)
    assert_close(found, expected)


@needs_avx2
@pytest.mark.skipif(RELEASE < (2025, 0), reason="the CPU plugin has no f8 there")
@pytest.mark.parametrize("way", ["compiled", "saved", "pipeline"])
@pytest.mark.parametrize("sizes", [[2, 5, 8], [2, 5, -1]], ids=["fixed", "open"])
@pytest.mark.parametrize("by", ["scale", "shift", "channel"])
@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
def test_floats_of_8_bits_beside_a_recurrent_layer(core, kind, by, sizes, way):
    """With the plugin's own LPT their scale would read them as they are stored, which throws in inference."""
    x = parameter(sizes)
    data = opset1.convert(opset1.convert(opset1.clamp(opset1.multiply(x, const(9)), -440.0, 440.0), kind), "f32")
    factor = const(np.linspace(0.1, 1, 5).reshape(1, 5, 1)) if by == "channel" else const(0.1)
    result = (opset1.add if by == "shift" else opset1.multiply)(data, factor)
    rows = np.random.default_rng(0).normal(0, 1.5, (2, 5, 8)).astype(np.float32)
    found, expected = _beside_a_recurrent_layer(core, [result], x, rows, way)
    assert_close(found, expected, level=1e-5, share=1)


def _beside_a_recurrent_layer(core, results, x, values, way):
    """What the results are with a recurrent layer in the model, and what they are to be."""
    other, _ = recurrent()
    net = model([*results, other.get_results()[0].input_value(0).get_node()], [x, *other.get_parameters()])
    lowered = drop_in(net, core) if way == "pipeline" else ovlpt.transform(net, core=core, serializable=way == "saved")
    assert lpt_properties(lowered, "CPU")["LP_TRANSFORMS_MODE"] == "YES"
    found = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})([values, *inputs_of(other)])
    expected = core.compile_model(model(results, x), "CPU", TRUTH)([values])
    return list(found.values())[: len(results)], list(expected.values())


@needs_avx2
@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min], ids=["infinite", "least"])
def test_a_mask_beside_a_recurrent_layer(core, hidden):
    """What is kept from the plugin's own LPT by a FakeQuantize was not a number where an interval cannot be around it."""
    x, (other, _) = parameter([-1, 12, 12]), recurrent()
    scores = opset1.add(opset1.matmul(x, x, False, True), const(np.triu(np.full((12, 12), hidden), 1)))
    results = [opset1.matmul(opset1.softmax(scores, 2), x, False, False)]
    net = model([*results, other.get_results()[0].input_value(0).get_node()], [x, *other.get_parameters()])
    lowered = ovlpt.transform(net, core=core)
    assert lpt_properties(lowered, "CPU")["LP_TRANSFORMS_MODE"] == "YES"
    ends = [
        each.get_node()
        for node in lowered.get_ops()
        if node.get_type_name() == "FakeQuantize"
        for each in node.input_values()
    ]
    assert all(np.isfinite(each.data).all() for each in ends if each.get_type_name() == "Constant")
    values = np.random.default_rng(0).uniform(-1, 1, (2, 12, 12)).astype(np.float32)
    found = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})([values, *inputs_of(other)])
    expected = core.compile_model(model(results, x), "CPU", TRUTH)([values])
    assert_close(list(found.values())[:1], list(expected.values()))


def test_a_recurrent_layer_in_a_pipeline_of_ones_own(core, infer):
    """In float with the plugin's own LPT off; on, in the integers of the original model."""
    net, by_hand = recurrent()
    inputs = inputs_of(net)
    lowered = drop_in(net, core)
    assert_close(infer(lowered, inputs, "NO"), [by_hand(*inputs)], level=1e-4, share=1)
    assert_close(infer(lowered, inputs, "YES"), infer(net, inputs, "YES"))


@needs_avx2
@pytest.mark.parametrize("serializable", [False, True])
def test_a_state_of_zeros_for_an_open_batch_in_both_directions(core, serializable):
    """The zeros were quantized again in a layer of their own."""
    generator = np.random.default_rng(0)
    x = parameter([-1, 6, 16])
    size = opset1.gather(opset1.shape_of(x), const([0], "i64"), const(0, "i64"))
    sizes = opset1.concat([const([2], "i64"), size, const([16], "i64")], 0)
    zeros = opset3.broadcast(quantized(const(0), 0, 8e-5), sizes)
    state = opset1.transpose(zeros, const([1, 0, 2], "i64"))
    # half of the integers: CPUs without VNNI add two products in 16 bits
    stored = [const(generator.integers(-63, 64, (2, 64, 16)), "i8") for _ in range(2)]
    weights = [opset1.multiply(opset1.convert(each, "f32"), const(0.005)) for each in stored]
    data, lengths = quantized(x, -1.6, 1.5875), opset3.broadcast(const(6, "i64"), size)
    layer = opset5.lstm_sequence(data, state, state, lengths, *weights, const(np.zeros((2, 64))), 16, "bidirectional")
    net = model(opset1.relu(layer.output(0)), x)
    inputs = [generator.uniform(-1.6, 1.6, (1, 6, 16)).astype(np.float32)]
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
    layers = ovlpt.execution_types(compiled).executed
    assert [layer.is_int8 for layer in layers if layer.layer_type == "RNNSeq"] == [True, True]
    assert len([layer for layer in layers if layer.layer_type == "FakeQuantize"]) == 1
    assert_close(compiled(inputs).to_tuple(), simulate(net, core)(inputs).to_tuple(), level=0.03, share=1)


@needs_avx2
@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("kind", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("turned", [False, True], ids=["as it is", "turned"])
def test_a_recurrent_layer_of_what_is_the_greatest(core, kind, turned, serializable):
    """The plugin's own LPT stores it as integers, with which the kernel of the reduction would compare."""
    x, (net, by_hand) = parameter([1, 16, 4, 6] if turned else [1, 6, 4, 16]), recurrent()
    data = getattr(opset1, kind)(x, const([2], "i64"), False)
    data = opset1.transpose(data, const([0, 2, 1], "i64")) if turned else data
    given = net.get_parameters()[0]
    replace_output(given.output(0), data.output(0))
    net.add_parameters([x])
    net.remove_parameter(given)
    # integers of up to 128 beside weights of 127: CPUs without VNNI add two products in 16 bits
    states, images = (-np.abs(values) / 2 for values in inputs_of(net))
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
    assert [layer.is_int8 for layer in ovlpt.execution_types(compiled).executed if layer.layer_type == "RNNSeq"] == [
        True
    ]
    reduced = (np.max if kind == "reduce_max" else np.min)(images, 2)
    expected = by_hand(reduced.transpose(0, 2, 1) if turned else reduced, states)
    assert_close([compiled([states, images])[0]], [expected], level=1.1 / 64, share=1)


def test_a_grid_of_real_constants_that_has_no_whole_numbers_stays():
    """Strides of 8 in a pretrained detector, for which the grid has 8.03, remained 8: half of its boxes were a level off."""
    assert drop_grid_of_stored(quantized(const(np.full((1, 4), 8.0)), 0, 32)) is None


def _layer(x, step, kind="lstm_sequence", direction="forward"):
    """The states of a layer of six steps and 16 states, whose data and state lie on a grid of this step, and its state."""
    generator = np.random.default_rng(int(1 / step))
    ways, gates = 1 + (direction == "bidirectional"), 64 if kind == "lstm_sequence" else 48
    h = parameter([2, ways, 16])
    grids = [quantized(each, -128 * step, 127 * step) for each in (x, h)]
    weights = [  # of the second layer on twice the grid
        quantized(const(generator.uniform(-0.3, 0.3, (ways, gates, size))), -64 * step, 64 * step, 129)
        for size in (32, 16)
    ]
    state = [const(np.zeros((2, ways, 16)))] if kind == "lstm_sequence" else []
    inputs = [*grids, *state, const([6, 6], "i64"), *weights, const(np.zeros((ways, gates)))]
    layer = getattr(opset5, kind)(*inputs, 16, direction)
    joined = opset1.transpose(layer.output(0), const([0, 2, 1, 3], "i64"))
    return opset1.reshape(joined, const([2, 6, 16 * ways], "i64"), False), h


def _two(form):
    """Layers whose kernels the plugin would take for one."""
    x = parameter([2, 6, 32])
    kind = "gru_sequence" if form == "gru" else "lstm_sequence"
    direction = "bidirectional" if form in ("bidirectional", "stacked") else "forward"
    other = parameter([2, 6, 32]) if form == "other data" else x
    first, state = _layer(x, 1 / 64, kind, direction)
    second, another = _layer(first if form == "stacked" else other, 1 / 32, kind, direction)
    return model([first, second], [x, state, another, *([other] if form == "other data" else [])])


@needs_avx2
@pytest.mark.parametrize("loaded", ["compiled", "saved", "by AUTO"])
@pytest.mark.parametrize("kind", ["other data", "same data", "gru", "bidirectional", "stacked"])
def test_two_recurrent_layers_of_one_size_have_scales_of_their_own(core, tmp_path, kind, loaded):
    """The plugin kept the kernel of the first, with its scales, for the other (off by half the largest value)."""
    net = _two(kind)
    generator = np.random.default_rng(0)
    inputs = [generator.uniform(-1.9, 1.9, list(port.shape)).astype(np.float32) for port in net.inputs]
    expected = list(simulate(net, core)(inputs).values())
    if loaded == "compiled":
        compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    else:
        ovlpt.save_model(ovlpt.transform(net), tmp_path / "net.xml")
        device = "CPU" if loaded == "saved" else "AUTO:CPU"
        compiled = core.compile_model(tmp_path / "net.xml", device, {} if loaded == "by AUTO" else EXACT)
    count = 4 if "bidirectional" in kind or kind == "stacked" else 2
    if loaded != "by AUTO":
        assert ovlpt.execution_types(compiled).summary()["RNNSeq"] == (count, count)
    for found, true in zip(compiled(inputs).values(), expected, strict=True):
        assert np.abs(found - true).max() < 0.05


def test_directions_are_apart_already(core):
    """The plugin tells their kernels apart: nothing is added to the data."""
    one, state = _layer(x := parameter([2, 6, 32]), 1 / 64, direction="bidirectional")
    lowered = ovlpt.transform(model(one, [x, state]), core=core)
    assert "Pad" not in {node.get_type_name() for node in lowered.get_ops()}
