import numpy as np
import pytest

from ovlpt.graph.text import to_text
from tests.conftest import Transformed
from tests.graphs import dequantization, f32, fake_quantize, i64, integers, model, opset5, parameter


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
