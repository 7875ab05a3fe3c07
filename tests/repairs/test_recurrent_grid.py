from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.device.hazards import hazards
from ovlpt.graph.text import to_text
from ovlpt.openvino_api import opset1
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

ON = Params(recurrent_on_one_grid=True)
ON_NATIVE = Params(recurrent_on_one_grid=True, native_only=True)
GATES = {"lstm": 4, "gru": 3}
SIZE, STEPS = 32, 8
WIDE = (0.0, 2.55)  # of data behind a Relu


def kernel(gates, directions, spread, seed, factor=1.0, quantized=False):
    """In i8, within the half of it that no CPU saturates, or behind a FakeQuantize to the same values.

    ``spread``: what the scales of the rows are multiplied with, from 1 on.
    """
    rng = np.random.default_rng(seed)
    rows = gates * SIZE
    scale = factor * 0.3 / 64 * rng.permutation(np.geomspace(1, spread, rows)).reshape(1, rows, 1)
    values = rng.integers(-64, 65, (directions, rows, SIZE)).astype(np.int8)
    if not quantized:
        return dequantization(opset1.constant(values), scale)
    return fake_quantize(f32(values * scale), -127 * scale, 127 * scale, 255)


def sequence(kind, data, spread=(1, 1), factor=1.0, directions=1, batch=1, state=None, quantized=False, **attributes):
    gates = GATES[kind]
    zeros = np.zeros((batch, directions, SIZE))
    rows = (gates + attributes.get("linear_before_reset", False)) * SIZE
    weights = [
        kernel(gates, directions, each, seed, factor if seed else 1.0, quantized) for seed, each in enumerate(spread)
    ]
    bias = f32(np.random.default_rng(3).uniform(-0.3, 0.3, (directions, rows)))
    states = [f32(zeros) if state is None else state] + [f32(zeros)] * (kind == "lstm")
    create = opset5.lstm_sequence if kind == "lstm" else opset5.gru_sequence
    direction = "bidirectional" if directions == 2 else "forward"
    return create(data, *states, i64(*[STEPS] * batch), *weights, bias, SIZE, direction, **attributes)


def network(kind="lstm", interval=WIDE, move=lambda data: data, **settings):
    data = fake_quantize(parameter((settings.get("batch", 1), STEPS, SIZE)), *interval)
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
    "behind a Relu": {},
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


def calibrated(kind, initial, behind, data=WIDE, others=False):
    """A layer whose states are quantized, before it and behind."""
    state = fake_quantize(parameter((1, 1, SIZE), "h"), *initial, name="initial")
    layer = sequence(kind, fake_quantize(parameter((1, STEPS, SIZE)), *data), state=state)
    results = [fake_quantize(opset1.transpose(layer.output(0), i64(0, 2, 1, 3)), *behind, name="behind")]
    return model(*results, *[opset1.relu(state)] * others)


@pytest.mark.parametrize(
    "initial, behind, expected",
    [
        (SMALL, LARGE, {"initial": LARGE, "behind": LARGE}),
        (LARGE, SMALL, {"initial": LARGE, "behind": LARGE}),
        (SMALL, (-0.5, 0.635), {"initial": LARGE, "behind": (-0.5, 0.635)}),
        (SMALL, (-2.56, 2.54), {"initial": WHOLE, "behind": (-2.56, 2.54)}),
        (SMALL, (0.0, 0.5), {"initial": WHOLE, "behind": (0.0, 0.5)}),
    ],
)
@pytest.mark.parametrize("kind", GATES)
def test_states_have_the_grid_of_their_calibration(kind, initial, behind, expected):
    """Before and behind the layer; what is coarser behind it, or not around zero, stays."""
    result = Transformed(calibrated(kind, initial, behind), ON)
    assert said(result) == DONE
    (behind_layer,) = (value.get_node() for value in result.after.get_results()[0].input_values())
    (initial_state,) = (node for node in result.after.get_ops() if node.get_friendly_name() == "initial")
    for node, ends in ((initial_state, expected["initial"]), (behind_layer, expected["behind"])):
        found = [node.input_value(port).get_node().data.item() for port in (1, 2)]
        np.testing.assert_allclose(found, ends, rtol=1e-6)


def test_a_state_that_others_read_has_a_grid_of_its_own(core):
    text = to_text(ovlpt.transform(calibrated("gru", SMALL, LARGE, others=True), core=core, lowered=False))
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


@pytest.mark.parametrize("levels", [255, 256])
def test_a_quantized_constant_state_becomes_a_plain_one(core, levels):
    """Which the plugin's int8 kernel takes."""
    graph = network(interval=(-1.28, 1.27), state=fake_quantize(f32(np.full((1, 1, SIZE), 0.5)), -1, 1, levels))
    result = Transformed(graph, ON)
    assert said(result) == DONE
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert {each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "RNNSeq"} == {True}


def test_weights_behind_a_fake_quantize(core):
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


def test_others_read_the_same_integers(core):
    data = fake_quantize(parameter((1, STEPS, SIZE)), *WIDE)
    product = opset1.matmul(data, dequantization(integers((5, SIZE)), 0.01), False, True)
    text = to_text(ovlpt.transform(model(sequence("gru", data).output(0), product), core=core, lowered=False))
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
    ],
)
def test_refusals(build, code):
    assert said(Transformed(build(), ON)) == [(Outcome.REJECTED, code)]


def test_linear_before_reset_runs_in_float(core):
    """The plugin with its own LPT throws."""
    graph = network("gru", linear_before_reset=True)
    inputs = inputs_of(graph, *WIDE)
    assert said(Transformed(graph, ON), "LinearBeforeReset") == [(Outcome.TRANSFORMED, "linear_before_reset")]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    np.testing.assert_allclose(compiled(inputs)[0], run(graph, inputs)[0], atol=1e-5)
    with pytest.raises(RuntimeError, match="LBR GRU"):
        core.compile_model(graph, "CPU", EXACT)
