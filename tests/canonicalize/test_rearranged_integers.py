from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.openvino_api import Core, opset1, opset8
from ovlpt.trace import Outcome
from tests.conftest import EXACT, Transformed, assert_close, needs_avx2
from tests.graphs import f32, fake_quantize, i64, model, parameter
from tests.test_beyond_native import small_weights

NAME = "RearrangedIntegers"


def embedded():
    """Rows of a table that is stored as integers."""
    table = opset1.constant(np.random.default_rng(0).integers(0, 256, (100, 16)).astype(np.uint8))
    return opset8.gather(table, parameter((1, -1), "rows", np.int64), i64(0).output(0))


def dequantized(data):
    return opset1.multiply(opset1.subtract(data, f32(117)), f32(0.02))


def layer(data, inputs=16, outputs=32):
    return opset1.convolution(data, small_weights([outputs, inputs, 3]), [1], [1], [1], [1])


def transposed_floats():
    return opset1.transpose(opset1.convert(embedded(), "f32"), i64(0, 2, 1))


def test_a_convolution_reads_the_integers():
    result = Transformed(model(layer(dequantized(transposed_floats()))))
    assert result.transformed("Convolution")
    result.assert_numbers()


@pytest.mark.parametrize("scale", [f32(0.02), parameter((1, 16, 1), "scale")])
def test_only_what_is_dequantized_is_moved(scale):
    result = Transformed(model(layer(opset1.multiply(transposed_floats(), scale))))
    moved = [event.outcome for event in result.trace if event.transformation == NAME]
    assert (moved == [Outcome.TRANSFORMED]) == (scale.get_type_name() == "Constant")


def test_it_stays_where_others_read_the_floats():
    floats = opset1.convert(embedded(), "f32")
    data = layer(dequantized(opset1.transpose(floats, i64(0, 2, 1))))
    result = Transformed(model(data, opset1.softmax(floats, 2)))
    assert not result.transformed("Convolution")


@needs_avx2
def test_the_cpu_plugin_runs_it_in_int8():
    """Common optimizations move the Transpose past the Convert."""
    data = dequantized(opset1.convert(opset1.transpose(embedded(), i64(0, 2, 1)), "f32"))
    second = layer(fake_quantize(opset1.relu(layer(data)), 0, 2.55), 32)
    given = model(second, layer(data, outputs=16))
    compiled = ovlpt.compile_model(given, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    rows = np.arange(12).reshape(1, 12)
    truth = Core().compile_model(given, "CPU", EXACT)(rows)
    assert_close([compiled(rows)[each] for each in (0, 1)], [truth[each] for each in (0, 1)])
    layers = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Convolution"]
    assert [each.is_int8 for each in layers] == [True, True, True]
