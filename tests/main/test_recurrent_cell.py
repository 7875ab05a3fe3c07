import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt.graph.text import to_text
from ovlpt.openvino_api import NodeFactory, opset1
from tests.conftest import EXACT, TRUTH, Transformed
from tests.graphs import dequantization, f32, fake_quantize, i64, integers, model, opset3, opset5, opset8, parameter


def sequence(precision: type = np.uint8, quantized_weights: bool = True):
    """A GRUSequence: batch 1, 2 steps, 4 inputs, hidden size 3."""
    data = dequantization(parameter((1, 2, 4), precision=precision), 0.1, 3.0)
    values = np.random.default_rng(0).uniform(-1, 1, (1, 9, 4))
    if quantized_weights:
        kernel = fake_quantize(f32(values), -1.28, 1.27, name="kernel")
    else:
        kernel = dequantization(integers((1, 9, 4)), 0.01)
    recurrent = fake_quantize(f32(np.random.default_rng(1).uniform(-1, 1, (1, 9, 3))), -1.28, 1.27, name="recurrent")
    hidden = f32(np.zeros((1, 1, 3)))
    node = opset5.gru_sequence(data, hidden, i64(2), kernel, recurrent, f32(np.zeros((1, 9))), 3, "forward")
    return model(node.output(0))


def of_open_batch():
    """A GRUSequence whose constant state is copied for each sequence of its data."""
    data = fake_quantize(parameter((-1, 5, 8)), -1.0, 1.55, name="frames")
    batch = opset8.gather(opset3.shape_of(data), i64(0), opset1.constant(np.int64(0)))
    state = fake_quantize(f32(np.zeros((1, 1, 4))), -1.0, 1.0, name="hidden")
    hidden = opset3.broadcast(state, opset1.concat([batch, i64(1, 4)], 0))
    kernels = [dequantization(integers((1, 12, size)), 0.01) for size in (8, 4)]
    node = opset5.gru_sequence(
        data, hidden, opset3.broadcast(i64(5), batch), *kernels, f32(np.zeros((1, 12))), 4, "forward"
    )
    return model(node.output(0))


@pytest.mark.parametrize("quantized_weights", [True, False])
def test_dequantizations_stay_before_the_cell(quantized_weights):
    result = Transformed(sequence(quantized_weights=quantized_weights))
    assert result.transformed("RecurrentCell")
    text = to_text(result.after)
    assert "FakeQuantize" not in text
    assert text.count("Convert(i8") == 2


def test_signed_activations_stay_with_the_reason():
    result = Transformed(sequence(np.int8))
    assert result.reasons("RecurrentCell") == ["activation_precision"]


@pytest.mark.parametrize("native_only", [False, True])
def test_a_single_cell_has_the_numbers_of_the_simulation(core, native_only):
    random, size = np.random.default_rng(0), 8
    x = opset1.parameter([2, 12], np.float32)
    states = [opset1.constant(np.zeros((2, size), np.float32))] * 2
    weights = [
        opset1.multiply(
            opset1.convert(opset1.constant(random.integers(-63, 64, (4 * size, each), np.int8)), "f32"),
            np.float32(0.01),
        )
        for each in (12, size)
    ]
    bias = opset1.constant(random.uniform(-0.5, 0.5, 4 * size).astype(np.float32))
    data = opset1.fake_quantize(x, *(np.float32(end) for end in (0, 2, 0, 2)), 256)
    inputs = [node.output(0) for node in (data, *states, *weights, bias)]
    cell = NodeFactory("opset4").create("LSTMCell", inputs, {"hidden_size": size})
    net = openvino.Model([opset1.result(output) for output in cell.outputs()], [x], "cell")
    values = [random.uniform(0, 2, (2, 12)).astype(np.float32)]
    found = ovlpt.compile_model(net, core=core, properties=EXACT, native_only=native_only)(values)
    for port, expected in enumerate(core.compile_model(net, "CPU", TRUTH)(values).values()):
        np.testing.assert_allclose(found[port], expected, atol=1e-5)


def test_a_constant_state_of_an_open_batch_natively(core):
    """The state stayed in float, but not the weights, and the plugin threw."""
    net, properties = of_open_batch(), {**EXACT, "LP_TRANSFORMS_MODE": "YES"}
    values = [np.random.default_rng(0).uniform(-1, 1.5, (2, 5, 8)).astype(np.float32)]
    found = ovlpt.compile_model(net, core=core, properties=EXACT, native_only=True)(values)[0]
    np.testing.assert_allclose(found, core.compile_model(net, "CPU", properties)(values)[0], atol=1e-5)
