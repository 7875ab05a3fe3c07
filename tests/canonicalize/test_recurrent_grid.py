from __future__ import annotations

import numpy as np
import openvino
import pytest
from ovlpt.plugin_config.this_cpu import multiplies_slowly

import ovlpt
from ovlpt import Params, plugin_config
from ovlpt.device import instruction_sets, subprocess_call, this_cpu
from ovlpt.device.compile import lpt_properties
from ovlpt.device.hazards import hazards
from ovlpt.graph.constants import constant
from ovlpt.graph.recurrent import make_weights_real
from ovlpt.graph.text import to_text
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import RELEASE, Model, opset1
from ovlpt.operations import RECURRENT
from ovlpt.trace import Outcome
from tests.conftest import EXACT, Transformed
from tests.graphs import (
    dequantization,
    f32,
    fake_quantize,
    i64,
    integers,
    model,
    opset3,
    opset5,
    opset8,
    parameter,
    run,
)
from tests.lowered import drop_in
from tools.answers import recurrent

ON = Params(recurrent_on_one_grid=True)
ON_NATIVE = Params(recurrent_on_one_grid=True, native_only=True)
GATES = {"lstm": 4, "gru": 3}
SIZE, STEPS = 32, 8
WIDE = (0.0, 2.55)  # of data after a Relu
NO_GRU = "OpenVINO 2025.0 has no int8 kernel for a GRU on CPUs without VNNI"
HAS_GRU = RELEASE != (2025, 0) or not multiplies_slowly()


@pytest.fixture(autouse=True)
def kernel_of_this_release(request):
    if not HAS_GRU and "gru" in request.node.name.lower():
        pytest.skip(NO_GRU)


def kernel(gates, directions, spread, seed, factor=1.0, quantized=False, form="rows"):
    """In i8, within the half of it that no CPU saturates, or after a FakeQuantize to the same values.

    ``spread``: what the scales of the rows are multiplied with, from 1 on.
    """
    rng = np.random.default_rng(seed)
    rows = gates * SIZE
    scale = factor * 0.3 / 64 * rng.permutation(np.geomspace(1, spread, rows)).reshape(1, rows, 1)
    values = rng.integers(-64, 65, (directions, rows, SIZE)).astype(np.int8)
    if form == "real":
        return f32(values * scale)
    if form == "asymmetric":
        return fake_quantize(f32(values * scale), -0.3, 0.5)
    if form == "pair":
        ends = f32(-128 * scale), f32(127 * scale), f32(-128), f32(127)
        return dequantization(opset1.convert(opset1.fake_quantize(f32(values * scale), *ends, 256), "i8"), scale)
    if form == "columns":
        scale = scale[:, :SIZE].reshape(1, 1, SIZE)
    if not quantized:
        return dequantization(opset1.constant(values), scale)
    return fake_quantize(f32(values * scale), -127 * scale, 127 * scale, 255)


def sequence(
    kind, data, spread=(1, 1), factor=1.0, directions=1, batch=1, state=None, quantized=False, form="rows", which="WR",
    lengths=STEPS, **attributes,
):  # fmt: skip
    """``which``: of the weights that are quantized. ``form``: how the first are."""
    gates = GATES[kind]
    zeros = np.zeros((max(batch, 1), directions, SIZE))
    rows = (gates + attributes.get("linear_before_reset", False)) * SIZE
    forms = [each if name in which else "real" for name, each in zip("WR", (form, "rows"), strict=True)]
    weights = [
        kernel(gates, directions, each, seed, factor if seed else 1.0, quantized, forms[seed])
        for seed, each in enumerate(spread)
    ]
    bias = f32(np.random.default_rng(3).uniform(-0.3, 0.3, (directions, rows)))
    states = [f32(zeros) if state is None else state] + [f32(zeros)] * (kind == "lstm")
    if batch < 0:
        states[1:] = [opset3.broadcast(f32(0), sizes_of(data, directions, SIZE))] * (kind == "lstm")
        lengths = opset3.broadcast(i64(lengths), sizes_of(data))
    else:
        lengths = i64(*[lengths] * batch)
    create = opset5.lstm_sequence if kind == "lstm" else opset5.gru_sequence
    direction = "bidirectional" if directions == 2 else "forward"
    return create(data, *states, lengths, *weights, bias, SIZE, direction, **attributes)


def sizes_of(data, *after):
    """Those of the data's batch, and others."""
    batch = opset8.gather(opset3.shape_of(data), i64(0), opset1.constant(np.int64(0)))
    return opset1.concat([batch, i64(*after)], 0) if after else batch


def network(kind="lstm", interval=WIDE, move=lambda data: data, quantize=True, **settings):
    data = parameter((settings.get("batch", 1), STEPS, SIZE))
    if quantize:
        data = fake_quantize(data, *interval)
    return model(sequence(kind, move(data), **settings).output(0))


def said(result, name="RecurrentGrid"):
    return [(event.outcome, event.reason.code) for event in result.trace if event.transformation == name]


DONE = [(Outcome.TRANSFORMED, "recurrent_grid")]


def inputs_of(graph, low, high):
    rng = np.random.default_rng(5)
    return [rng.uniform(low, high, list(port.shape)).astype(np.float32) for port in graph.inputs]


def decibels(reference, values):
    return 10 * np.log10(np.square(reference).sum() / np.square(reference - values).sum())


@pytest.mark.parametrize("interval", [WIDE, (-0.3, 4.0), (0.0, 1.0), (-0.123, 0.777), (1.0, 3.0)], ids=str)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kind", GATES)
def test_the_numbers_are_the_same(kind, directions, interval):
    """To float rounding, where the weights have one scale on the new grid."""
    factor = (interval[1] - interval[0]) / 255 * 127
    result = Transformed(network(kind, interval, factor=factor, directions=directions), ON)
    assert said(result) == DONE
    result.assert_numbers()


def test_an_open_batch():
    x = parameter((-1, STEPS, SIZE))
    batch = opset8.gather(opset3.shape_of(x), i64(0), opset1.constant(np.int64(0)))
    state = opset3.broadcast(f32(0), opset1.concat([batch, i64(1, SIZE)], 0))
    layer = opset5.gru_sequence(
        fake_quantize(x, *WIDE), fake_quantize(state, -1.28, 1.27), opset3.broadcast(i64(STEPS), batch),
        kernel(3, 1, 1, 0), kernel(3, 1, 1, 1), f32(np.zeros((1, 3 * SIZE))), SIZE, "forward",
    )  # fmt: skip
    result = Transformed(model(layer.output(0)), ON)
    assert said(result) == DONE
    result.assert_numbers(0.02)


CASES = {
    "after a Relu": {},
    "nearly all above zero": {"interval": (-0.3, 4.0)},
    "narrow": {"interval": (0.0, 1.0)},
    "one-sided wide": {"interval": (0.0, 20.0)},
    "two directions": {"directions": 2},
    "a batch": {"batch": 3},
    "scales of the state's weights": {"interval": (-1.28, 1.27), "spread": (1, 4)},
    "scales of both weights": {"interval": (-1.28, 1.27), "spread": (4, 4)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", GATES)
def test_int8_kernels_compute_the_model(core, kind, case):
    graph = network(kind, **CASES[case])
    inputs = inputs_of(graph, *CASES[case].get("interval", WIDE))
    expected = run(graph, inputs)[0]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert {each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"} == {True}
    assert decibels(expected, compiled(inputs)[0]) > 28
    assert decibels(expected, core.compile_model(graph, "CPU", EXACT)(inputs)[0]) < 22
    assert hazards(ovlpt.transform(graph, core=core, lowered=False)) == []


@pytest.mark.parametrize("interval", [(0.0, 0.7), (-0.5, 0.4), (-1.5, 1.9)], ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_natively_the_state_is_clipped_as_by_the_plugins_own_pass(core, kind, interval):
    """Stock throws where the weights stand after a FakeQuantize; native_only gives what stock makes of the same integers."""
    after, stored = (network(kind, interval, quantized=quantized) for quantized in (True, False))
    inputs = inputs_of(stored, *interval)
    stock = core.compile_model(stored, "CPU", EXACT)(inputs)
    natively = ovlpt.compile_model(after, core=core, properties=EXACT, native_only=True)(inputs)
    for found, expected in zip(natively.values(), stock.values(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_natively_both_directions_are_those_of_the_plugins_own_pass(core, kind, quantized):
    """Weights after a FakeQuantize are folded there when it takes the directions apart; stored integers stay."""
    graph = network(kind, (0.0, 0.7), quantized=quantized, directions=2)
    inputs = inputs_of(graph, 0.0, 0.7)
    stock = core.compile_model(graph, "CPU", EXACT)
    natively = ovlpt.compile_model(graph, core=core, properties=EXACT, native_only=True)
    np.testing.assert_allclose(natively(inputs)[0], stock(inputs)[0], atol=1e-5)
    for compiled in (stock, natively):
        layers = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"]
        assert [each.is_int8 for each in layers] == [not quantized] * 2


@pytest.mark.parametrize("interval", [(0.3, 0.6), (0.0, 0.2), (-100.0, 0.0)], ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_weights_that_would_lose_much_stay_real(core, kind, interval):
    """Beside those of the states, those of data of a small interval were a few integers: 25 to 30 dB. Beside data of a wide
    one, as of a mask, those of the states were.
    """
    graph = network(kind, interval=interval)
    inputs = inputs_of(graph, *interval)
    expected = run(graph, inputs)[0]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    np.testing.assert_allclose(compiled(inputs)[0], expected, atol=1e-4)
    (answer,) = ovlpt.explain(graph, core=core).quantizable
    assert said(Transformed(graph, ON)) == [(Outcome.REJECTED, answer.reason.code)]
    if interval == (-100.0, 0.0):
        assert (answer.reason.code, answer.advices) == ("weights_lost", [])  # no quantization of the weights changes it
        return
    assert answer.reason.code == "weights_granularity"
    for advice in answer.advices:  # one scale for each row, which is finer here
        advice.apply(graph, {})
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert {each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"} == {True}
    if this_cpu.has_vnni_of_512_bits():  # sums of the whole of i8, which the advice takes, are cut off elsewhere
        assert decibels(expected, compiled(inputs)[0]) > 28


@pytest.mark.parametrize("quantize", [True, False], ids=["quantized", "real"])
@pytest.mark.parametrize("kind", ["GRUSequence", "LSTMSequence"])
def test_that_weights_would_lose_much_is_said_before_they_are_quantized(core, kind, quantize):
    """In each row of the recurrent weights one is ten times the others, and the data is small beside the states."""
    small = dict(data=lambda shape: fake_quantize(parameter(shape), 0.0, 0.02), rest=(-1, 0.1))
    (answer,) = ovlpt.explain(recurrent(kind, quantize=quantize, **small), core=core).quantizable
    assert (answer.reason.code, answer.advices, len(answer.causes)) == ("weights_lost", [], 1)


@pytest.mark.parametrize("kind", ["GRUSequence", "LSTMSequence"])
def test_that_sequences_end_early_is_said_before_the_weights_are_quantized(core, kind):
    (answer,) = ovlpt.explain(recurrent(kind, quantize=False, steps=2), core=core).quantizable
    assert (answer.reason.code, answer.advices, len(answer.causes)) == ("sequence_lengths", [], 1)


@pytest.mark.skipif(not HAS_GRU, reason=NO_GRU)
def test_an_initial_state_is_read_as_it_is(core):
    state = fake_quantize(parameter((1, 1, SIZE), "h"), -0.6, 0.4)
    data = fake_quantize(parameter((1, STEPS, SIZE)), *WIDE)
    layer = sequence("gru", data, state=state)
    graph = model(layer.output(0), layer.output(1))
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(-0.6, 0.4, (1, 1, SIZE)).astype(np.float32), inputs_of(network(), *WIDE)[0]]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    stock = core.compile_model(graph, "CPU", EXACT)(inputs)
    for port, expected in enumerate(run(graph, inputs)):
        assert decibels(expected, compiled(inputs)[port]) > 28
        assert decibels(expected, stock[port]) < 10


SMALL, LARGE, WHOLE = (-0.32, 0.3175), (-0.64, 0.635), (-128 / 127, 1.0)


def calibrated(kind, initial, after, data=WIDE, others=False):
    """A layer whose states are quantized, before it and after."""
    state = fake_quantize(parameter((1, 1, SIZE), "h"), *initial, name="initial")
    layer = sequence(kind, fake_quantize(parameter((1, STEPS, SIZE)), *data), state=state)
    results = [fake_quantize(opset1.transpose(layer.output(0), i64(0, 2, 1, 3)), *after, name="after")]
    return model(*results, *[opset1.relu(state)] * others)


@pytest.mark.parametrize(
    "initial, after, expected",
    [
        (SMALL, LARGE, {"initial": LARGE, "after": LARGE}),
        (LARGE, SMALL, {"initial": LARGE, "after": LARGE}),
        (SMALL, (-0.5, 0.635), {"initial": LARGE, "after": (-0.5, 0.635)}),
        (SMALL, (-2.56, 2.54), {"initial": WHOLE, "after": (-2.56, 2.54)}),
        (SMALL, (0.0, 0.5), {"initial": WHOLE, "after": (0.0, 0.5)}),
    ],
)
@pytest.mark.parametrize("kind", GATES)
def test_states_have_the_grid_of_their_calibration(kind, initial, after, expected):
    """Before and after the layer; what is coarser after it, or not around zero, stays."""
    result = Transformed(calibrated(kind, initial, after), ON)
    assert said(result) == DONE
    (after_layer,) = (value.get_node() for value in result.after.get_results()[0].input_values())
    (initial_state,) = (node for node in result.after.get_ops() if node.get_friendly_name() == "initial")
    for node, ends in ((initial_state, expected["initial"]), (after_layer, expected["after"])):
        found = [node.input_value(port).get_node().data.item() for port in (1, 2)]
        np.testing.assert_allclose(found, ends, rtol=1e-6)


def test_a_state_that_others_read_has_a_grid_of_its_own(core):
    text = to_text(ovlpt.transform(calibrated("lstm", SMALL, LARGE, others=True), core=core, lowered=False))
    assert text.count(" = FakeQuantize") == 4


@pytest.mark.parametrize("kind", GATES)
def test_calibrated_states_are_rounded_once(core, kind):
    """So they are as near to the model as its own steps allow."""
    ends = {"lstm": SMALL, "gru": LARGE}[kind]
    graph = calibrated(kind, SMALL, ends, data=(0.0, 0.255))
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(-0.3, 0.3, (1, 1, SIZE)).astype(np.float32), inputs_of(network(), 0.0, 0.255)[0]]
    expected, values = run(graph, inputs)[0], ovlpt.compile_model(graph, core=core, properties=EXACT)(inputs)[0]
    assert np.abs(values - expected).mean() < ends[1] / 127
    assert hazards(ovlpt.transform(graph, core=core, lowered=False)) == []


ZERO = (0.0, 8e-5)  # the interval of quantized zeros


def zeros_from_a_batch(data, directions):
    return opset3.broadcast(fake_quantize(f32(0), *ZERO), sizes_of(data, directions, SIZE))


def zeros_of_two_layers(data, directions):
    count = opset1.concat([i64(2 * directions), sizes_of(data), i64(SIZE)], 0)
    first = opset1.split(
        opset3.broadcast(dequantization(opset1.constant(np.uint8(0)), 1e-6), count), opset1.constant(np.int64(0)), 2
    )
    return opset1.transpose(first.output(0), i64(1, 0, 2))


STATES = {
    "broadcast": lambda data, directions: opset3.broadcast(f32(0), sizes_of(data, directions, SIZE)),
    "broadcast both ways": lambda data, directions: opset3.broadcast(
        f32(0), sizes_of(data, directions, SIZE), broadcast_spec="bidirectional"
    ),
    "broadcast halves": lambda data, directions: opset3.broadcast(f32(0.5), sizes_of(data, directions, SIZE)),
    "quantized, broadcast": zeros_from_a_batch,
    "quantized, of two layers": zeros_of_two_layers,
    "255 levels": lambda data, directions: fake_quantize(parameter((1, directions, SIZE), "h"), -0.5, 0.5, 255),
    "by channel": lambda data, directions: fake_quantize(
        parameter((1, directions, SIZE), "h"), np.linspace(-0.5, -0.3, SIZE), np.linspace(0.5, 0.3, SIZE)
    ),
    "joined": lambda data, directions: opset1.concat(
        [fake_quantize(parameter((1, directions, SIZE // 2), f"h{end}"), -end, end) for end in (0.5, 0.3)], 2
    ),
}


@pytest.mark.parametrize("directions, batch", [(1, 1), (1, -1), (2, -1)])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", GATES)
def test_states_from_elsewhere(core, kind, state, directions, batch, tmp_path):
    """Of data that is never negative; what is broadcast is not a constant where the batch is open."""
    data = parameter((batch, STEPS, SIZE))
    build = STATES[state]
    quantized = fake_quantize(data, 0.0, 0.94)
    settings = {"directions": directions, "batch": batch, "state": build(data, directions)}
    layer = sequence(kind, quantized, **settings)
    graph = model(layer.output(0), layer.output(1))
    rng = np.random.default_rng(5)
    inputs = [
        rng.uniform(-(each.get_friendly_name() != "x"), 1, [1, *each.get_partial_shape()[1:].to_shape()])
        for each in graph.get_parameters()
    ]
    inputs = [each.astype(np.float32) for each in inputs]
    expected = run(graph, inputs)
    transformed = ovlpt.transform(graph, core=core)
    openvino.save_model(transformed, tmp_path / "m.xml", compress_to_fp16=False)
    for compiled in (
        ovlpt.compile_model(graph, core=core, properties=EXACT),
        core.compile_model(tmp_path / "m.xml", "CPU", {**EXACT, **lpt_properties(transformed, "CPU")}),
    ):
        values = list(compiled(inputs).values())
        assert min(map(decibels, expected, values)) > 25
        sequences = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"]
        assert [each.is_int8 for each in sequences] == [True] * directions


def test_states_of_a_known_size_where_there_are_several_streams(core):
    """In a Manager of these two passes they were computed: the kernel read other numbers, off by up to 257 %."""
    data = parameter((1, STEPS, -1))
    quantized = fake_quantize(data, 0.0, 0.94)
    zeros = opset3.broadcast(f32(0), sizes_of(quantized, 1, SIZE))
    layer = sequence("lstm", quantized, state=zeros)
    layer.input(2).replace_source_output(zeros.output(0))
    graph = model(layer.output(1))
    inputs = [np.random.default_rng(5).uniform(0, 0.9, (1, STEPS, SIZE)).astype(np.float32)]
    lowered = drop_in(graph, core)
    streams = {**EXACT, **lpt_properties(lowered, "CPU"), "PERFORMANCE_HINT": "THROUGHPUT"}
    assert decibels(run(graph, inputs)[0], core.compile_model(lowered, "CPU", streams)(inputs)[0]) > 25


def kernel_reasons_and_decibels(kind):
    graph = model(sequence(kind, fake_quantize(parameter((1, STEPS, SIZE)), 0.0, 0.94)).output(0))
    inputs = [np.random.default_rng(5).uniform(0, 1, (1, STEPS, SIZE)).astype(np.float32)]
    compiled = ovlpt.compile_model(graph, properties=EXACT)
    reasons = [answer.reason.code for answer in ovlpt.explain(graph)]
    return plugin_config.this_cpu.has_recurrent_kernels(), reasons, decibels(run(graph, inputs)[0], compiled(inputs)[0])


@pytest.mark.parametrize("kind", ["lstm"] if RELEASE == (2025, 0) else GATES)  # which has none for GRUs without VNNI
def test_a_layer_without_kernel_runs_in_float(kind):
    """Without AVX2 compiling threw, with stock, too. Some releases have a kernel there."""
    answers = subprocess_call.call(
        kernel_reasons_and_decibels, kind, environment=instruction_sets.environment("sse41")
    )[0]
    has_kernel, reasons, level = answers
    assert reasons == ([] if has_kernel else ["no_kernel", "no_consumer"])
    assert level > (25 if has_kernel else 100)
    assert not has_kernel or RELEASE < (2026, 0)


def _padded(x, value):
    """Another step before, and one after."""
    inner = fake_quantize(opset8.slice(x, i64(1), i64(-1), i64(1), i64(1)), 0, 0.9)
    return opset1.pad(inner, i64(0, 1, 0), i64(0, 1, 0), "constant", f32(value))


DATA = {
    "255 levels": lambda x: fake_quantize(x, -0.9, 0.9, 255),
    "gathered": lambda x: opset8.gather(
        fake_quantize(x, 0, 0.9), i64(*reversed(range(SIZE))), opset1.constant(np.int64(2))
    ),
    "joined": lambda x: opset1.concat(
        [
            fake_quantize(half, 0, end)
            for half, end in zip(opset1.split(x, opset1.constant(np.int64(2)), 2).outputs(), (0.9, 0.4), strict=True)
        ],
        2,
    ),
    "taken apart": lambda x: opset1.concat(
        opset1.split(fake_quantize(x, 0, 0.9), opset1.constant(np.int64(2)), 2).outputs()[::-1], 2
    ),
    "longer by its own values": lambda x: opset1.pad(
        fake_quantize(opset8.slice(x, i64(1), i64(-1), i64(1), i64(1)), 0, 0.9), i64(0, 1, 0), i64(0, 1, 0), "edge"
    ),
    "longer by zeros": lambda x: _padded(x, 0.0),
    "longer by a value": lambda x: _padded(x, 0.9),
    "the second part": lambda x: opset1.variadic_split(
        fake_quantize(opset1.concat([x, x], 1), 0, 0.9), opset1.constant(np.int64(1)), i64(STEPS - 2, STEPS, 2)
    ).output(1),
    "largest": lambda x: opset1.reduce_max(fake_quantize(opset1.unsqueeze(x, i64(0)), 0, 0.9), i64(0)),
    "selected": lambda x: opset1.select(
        opset1.greater(x, f32(0.5)), fake_quantize(x, 0, 0.9), fake_quantize(opset1.subtract(f32(1.0), x), 0, 0.9)
    ),
    "in half precision": lambda x: opset1.convert(opset1.convert(fake_quantize(x, 0, 0.9), "f16"), "f32"),
}


@pytest.mark.parametrize("source", DATA)
@pytest.mark.parametrize("kind", GATES)
def test_data_from_elsewhere(core, kind, source):
    graph = network(kind, quantize=False, move=DATA[source])
    inputs = inputs_of(graph, 0, 1)
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert decibels(run(graph, inputs)[0], compiled(inputs)[0]) > 25
    assert {each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"} == {True}


@pytest.mark.parametrize("kind", GATES)
def test_what_intervals_of_states_clip_is_clipped(core, kind):
    graph = calibrated(kind, SMALL, LARGE)
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(-1, 1, (1, 1, SIZE)).astype(np.float32), inputs_of(network(), *WIDE)[0]]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert decibels(run(graph, inputs)[0], compiled(inputs)[0]) > 22


def test_a_layer_in_a_body(core):
    body, other = network("gru", (0.0, 0.94)), model(opset1.unsqueeze(parameter((1, STEPS, SIZE)), i64(1)))
    x, which = parameter((1, STEPS, SIZE)), opset1.parameter([], np.bool_)
    choice = opset8.if_op(which)
    choice.set_then_body(body)
    choice.set_else_body(other)
    choice.set_input(x.output(0), body.get_parameters()[0], other.get_parameters()[0])
    result = choice.set_output(body.get_results()[0], other.get_results()[0])
    graph = Model([result], [x, which], "model")
    inputs = inputs_of(network(), 0, 1)
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert decibels(run(network("gru", (0.0, 0.94)), inputs)[0], compiled([*inputs, np.array(True)])[0]) > 25


@pytest.mark.parametrize("levels", [255, 256])
def test_a_quantized_constant_state_becomes_a_plain_one(core, levels):
    """Which the plugin's int8 kernel takes."""
    graph = network(interval=(-1.28, 1.27), state=fake_quantize(f32(np.full((1, 1, SIZE), 0.5)), -1, 1, levels))
    result = Transformed(graph, ON)
    assert said(result) == DONE
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert {each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"} == {True}


def test_weights_after_a_fake_quantize(core):
    stored, quantized = (
        next(node for node in each.get_ops() if node.get_type_name() == "LSTMSequence")
        for each in (ovlpt.transform(network(quantized=form), core=core, lowered=False) for form in (False, True))
    )
    for port in (4, 5):
        integers, others = (
            node.input_value(port).get_node().input_value(0).get_node().input_value(0).get_node().data
            for node in (stored, quantized)
        )
        np.testing.assert_array_equal(integers, others)


@pytest.mark.parametrize("precision", ["i8", "i4"])
def test_weights_whose_gates_are_joined(core, precision):
    """As ONNX's order of gates leaves them: with those of 4 bits compiling ended the process."""
    graph = network()
    (layer,) = (node for node in graph.get_ops() if node.get_type_name() == "LSTMSequence")
    for port in (4, 5):
        values = f32(np.random.default_rng(port).integers(-8, 8, (1, 4 * SIZE, SIZE)) * 0.02)
        stored = opset1.convert(opset1.fake_quantize(values, *map(f32, (-0.16, 0.14, -8, 7)), 16), precision)
        zero_point = opset1.convert(constant(np.zeros(()), precision), "f32")
        real = opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), zero_point), f32(0.02))
        gates = opset1.split(real, opset1.constant(np.int64(1)), 4).outputs()
        joined = opset1.concat([gates[number] for number in (2, 0, 3, 1)], 1)
        layer.input(port).replace_source_output(joined.output(0))
    inputs = inputs_of(graph, *WIDE)
    transformed = ovlpt.transform(graph, core=core)
    (layer,) = (node for node in transformed.get_ops() if node.get_type_name() == "LSTMSequence")
    assert {layer.input_value(port).get_node().get_type_name() for port in (4, 5)} == {"Constant"}
    assert decibels(simulate(graph, core)(inputs)[0], ovlpt.compile_model(graph, properties=EXACT)(inputs)[0]) > 80


@pytest.mark.parametrize("kind", GATES)
def test_weights_of_a_pair_that_nothing_folds(core, kind):
    """As `ovlpt.compile_model` does, and a Manager of these two passes does not: the kernel ran on another grid."""
    graph = network(kind, form="pair")
    inputs, lowered = inputs_of(graph, *WIDE), drop_in(graph, core)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
    assert decibels(run(network(kind), inputs)[0], compiled(inputs)[0]) > 28
    assert {each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"} == {True}


def test_others_read_the_same_integers(core):
    data = fake_quantize(parameter((1, STEPS, SIZE)), *WIDE)
    product = opset1.matmul(data, dequantization(integers((5, SIZE)), 0.01), False, True)
    text = to_text(ovlpt.transform(model(sequence("lstm", data).output(0), product), core=core, lowered=False))
    assert text.count("FakeQuantize") == 1
    assert text.count("/DequantizationSubtract: ") == text.count("i8[5,32") == 1


def test_data_that_is_moved(core):
    graph = network(move=lambda data: opset1.transpose(data, i64(1, 0, 2)), batch=STEPS)
    text = to_text(ovlpt.transform(graph, core=core, lowered=False))
    assert text.count("FakeQuantize") == 1
    assert "Transpose(fq" in text


def test_what_kernels_read_as_it_is_stays():
    for params, interval in ((ON, (-1.28, 1.27)), (ON, (-1.0, 2.0)), (Params(), WIDE), (ON_NATIVE, WIDE)):
        assert said(Transformed(network(interval=interval), params)) == []


@pytest.mark.parametrize(
    "build, code",
    [
        (lambda: network(clip=0.5), "activations"),
        (lambda: network(activations=["sigmoid", "relu", "tanh"]), "activations"),
        (lambda: network(interval=(1.0, 1.0)), "interval"),
        (lambda: network("gru", linear_before_reset=True), "linear_before_reset"),
        (lambda: network(lengths=STEPS - 2), "sequence_lengths"),
        (lambda: network(which="W"), "weights_not_quantized"),
        (lambda: network("gru", which="R"), "weights_not_quantized"),
        (lambda: network(form="asymmetric"), "weights_grid"),
        (lambda: network("gru", form="columns"), "weights_grid"),
        (lambda: network(move=opset1.sigmoid), "data_grid"),
        (lambda: network("gru", interval=(f32(np.zeros(SIZE)), f32(np.linspace(0.5, 1, SIZE)))), "data_grid"),
        (lambda: network(quantize=False, move=lambda data: _padded(data, 0.5 + 1 / 3)), "data_grid"),
        (lambda: network(state=parameter((1, 1, SIZE), "h")), "state_not_quantized"),
        (lambda: network("gru", state=opset1.tanh(parameter((1, 1, SIZE), "h"))), "state_not_quantized"),
    ],
)
@pytest.mark.parametrize("saved", [False, True])
def test_what_kernels_do_not_read_runs_in_float(core, build, code, saved, tmp_path):
    """The plugin with its own LPT throws, runs a float loop, or reads other numbers."""
    graph = build()
    if not HAS_GRU and any(node.get_type_name() == "GRUSequence" for node in graph.get_ops()):
        pytest.skip(NO_GRU)
    assert said(Transformed(graph, ON)) == [(Outcome.REJECTED, code)]
    if saved:
        transformed = ovlpt.transform(graph, core=core)
        openvino.save_model(transformed, tmp_path / "m.xml", compress_to_fp16=False)
        compiled = core.compile_model(tmp_path / "m.xml", "CPU", {**EXACT, **lpt_properties(transformed, "CPU")})
    else:
        compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    inputs = inputs_of(graph, 0, 1)
    np.testing.assert_allclose(compiled(inputs)[0], run(with_real_weights(graph), inputs)[0], atol=1e-5)
    (answer,) = [each for each in ovlpt.explain(graph, core=core) if each.operation.endswith("Sequence")]
    assert answer.reason.code == code
    assert hazards(ovlpt.transform(graph, core=core, lowered=False)) == []


@pytest.mark.skipif(HAS_GRU, reason="OpenVINO has a kernel for a GRU in int8 here")
def test_without_a_kernel_a_gru_runs_in_float(core):
    """Stock throws."""
    graph = network("gru")
    inputs, compiled = inputs_of(graph), ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert decibels(run(graph, inputs)[0], compiled(inputs)[0]) > 40
    (answer,) = [each for each in ovlpt.explain(graph, core=core) if each.operation == "GRUSequence"]
    assert answer.reason.code == "release"


def with_real_weights(graph):
    """The plugin's float kernels take no others."""
    graph = graph.clone()
    for node in graph.get_ops():
        if node.get_type_name() in RECURRENT:
            make_weights_real(node)
    return graph


def test_only_weights_that_are_quantized_count():
    assert said(Transformed(network(which=""), ON)) == [(Outcome.REJECTED, "weights_not_quantized")]
