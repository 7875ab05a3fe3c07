import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, Transformed, assert_close
from tests.graphs import dequantization, f32, fake_quantize, i64, model, parameter

STORED = np.random.default_rng(0).integers(-40, 41, (32, 64))
SCALE = np.linspace(0.005, 0.02, 32).reshape(32, 1)


def converted_zero_point():
    stored = opset1.convert(opset1.constant(STORED.astype(np.int8)), "f32")
    shifted = opset1.subtract(stored, opset1.convert(opset1.constant(np.int8(8)), "f32"))
    return opset1.multiply(shifted, f32(SCALE))


def moved(move):
    """A zero point and a scale of the tensor, before what is folded into the integers."""
    return lambda: move(dequantization(opset1.constant(STORED.astype(np.int8)), 0.01, 8.0))


WEIGHTS = {
    "i8": converted_zero_point,
    "u8": lambda: dequantization(opset1.constant((STORED + 120).astype(np.uint8)), SCALE, 120.0),
    "FakeQuantize": lambda: opset1.fake_quantize(f32(STORED * 0.01), f32(-0.5), f32(2.05), f32(-0.5), f32(2.05), 256),
    "Reshape": moved(lambda w: opset1.reshape(w, i64(32, 64), False)),
    "Transpose": moved(lambda w: opset1.transpose(opset1.reshape(w, i64(64, 32), False), i64(1, 0))),
}
DATA = {
    "float": lambda x: x,
    "by column": lambda x: fake_quantize(x, -np.linspace(1, 2, 64), np.linspace(1, 2, 64)),  # which are summed
}


def network(weights, data):
    """A MatMul that stays in float beside one in int8."""
    product = opset1.matmul(DATA[data](parameter((4, 64))), WEIGHTS[weights](), False, True)
    layer = opset1.matmul(fake_quantize(parameter((4, 64), "z"), 0, 2.55), WEIGHTS[weights](), False, True)
    return model(product, layer)


@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_layer_in_float_keeps_its_weights(core, infer, weights, data, serializable):
    """Without a zero point the plugin would quantize its data, too: 0.5 % off, and no kernel's name says so."""
    graph = network(weights, data)
    inputs = [np.random.default_rng(1).uniform(-1, 1, (4, 64)).astype(np.float32) for _ in "xz"]
    expected = infer(graph, inputs, DYNAMIC_QUANTIZATION_GROUP_SIZE="0")
    lowered = ovlpt.transform(graph, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    assert_close([np.array(compiled(inputs)[port]) for port in (0, 1)], expected)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_layer_in_int8_does_not(weights):
    result = Transformed(network(weights, "float"))
    kinds = [
        {value.get_element_type().get_type_name() for value in node.input_values()}
        for node in result.after.get_ordered_ops()
        if node.get_type_name() == "MatMul"
    ]
    assert sorted(map(sorted, kinds)) == [["f32"], ["i8", "u8"]]
    result.assert_numbers(1e-4)


def test_as_native_no_weights_are_canonicalized():
    result = Transformed(network("i8", "float"), Params(native_only=True))
    assert not result.transformed("RestoreWeights")
