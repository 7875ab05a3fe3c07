from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, Node, opset1
from tests.conftest import EXACT, Transformed
from tests.graphs import f32, fake_quantize, model, parameter, weights

_SHAPE = (2, 4, 5, 5)
_SCALE = 0.0371
_TYPES = {np.uint8: "u8", np.int8: "i8"}


def stored(value: Node, kind: type, zero_point: int) -> Node:
    """QuantizeLinear."""
    limits = np.iinfo(kind)
    ends = [f32((end - zero_point) * _SCALE) for end in (limits.min, limits.max)]
    quantize = opset1.fake_quantize(value, *ends, f32(limits.min), f32(limits.max), 256)
    return opset1.convert(quantize, _TYPES[kind])


def restored(integers: Node, zero_point: np.ndarray) -> Node:
    """As OpenVINO 2026.1 reads what QLinearAdd of ONNX Runtime dequantizes."""
    difference = opset1.convert(opset1.subtract(integers, opset1.constant(zero_point)), "f32")
    return opset1.multiply(f32(_SCALE), difference)


def graph(kind: type, zero_point: int, shape=_SHAPE) -> Model:
    """A quantized tensor and a constant, both stored as integers, and their sum, which a convolution reads."""
    zero = np.array(zero_point, kind)
    data = restored(stored(parameter(shape), kind, zero_point), zero)
    limits = np.iinfo(kind)
    shift = restored(opset1.constant(np.array([limits.min, 0, limits.max, 9], kind).reshape(1, 4, 1, 1)), zero)
    value = restored(stored(opset1.add(data, shift), kind, zero_point), zero)
    kernel = weights([4, 4, 1, 1], np.linspace(0.001, 0.002, 4).reshape(4, 1, 1, 1))
    return model(value, opset1.convolution(value, kernel, [1, 1], [0, 0], [0, 0], [1, 1]))


def data() -> np.ndarray:
    return np.random.default_rng(5).uniform(-5, 5, _SHAPE).astype(np.float32)


def truth(kind: type, zero_point: int) -> np.ndarray:
    """The first output, by the definition of the ONNX operations."""
    limits = np.iinfo(kind)

    def quantized(value: np.ndarray) -> np.ndarray:
        integers = np.clip(np.rint(value / _SCALE) + zero_point, limits.min, limits.max)
        return (integers - zero_point) * _SCALE

    shift = (np.array([limits.min, 0, limits.max, 9]).reshape(1, 4, 1, 1) - zero_point) * _SCALE
    return quantized(quantized(data()) + shift)


def off(outputs, expected: np.ndarray) -> int:
    """Elements that are not the expected one."""
    return int((np.abs(np.array(outputs[0]) - expected) > _SCALE / 100).sum())


@pytest.mark.parametrize("shape", [_SHAPE, (-1, 4, -1, -1)], ids=["fixed", "open"])
@pytest.mark.parametrize("kind, zero_point", [(np.uint8, 117), (np.uint8, 0), (np.int8, -3), (np.int8, 0)])
def test_a_zero_point_subtracted_in_8_bits_leaves_negative_values(core, kind, zero_point, shape):
    quantized, expected = graph(kind, zero_point, shape), truth(kind, zero_point)
    assert off(simulate(quantized, core)([data()]), expected) == 0
    compiled = ovlpt.compile_model(quantized, "CPU", EXACT, core=core)
    assert off(compiled([data()]), expected) == 0
    (layer,) = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Convolution"]
    assert layer.is_int8


def applied(quantized: Model, **params) -> list:
    return [each for each in Transformed(quantized, **params).trace if each.transformation == "IntegerDifferences"]


def test_a_pipeline_of_ones_own():
    assert [event.reason.code for event in applied(graph(np.uint8, 117))] == ["stored_integers"] * 3


def test_native_only_leaves_it_as_it_is_read():
    assert not applied(graph(np.uint8, 117), params=Params(native_only=True))


def test_a_difference_that_is_not_scaled_stays_one_of_integers():
    """A cast of integers is the user's own."""
    image = parameter((1, 8), precision=np.uint8)
    difference = opset1.convert(opset1.subtract(image, opset1.constant(np.array(100, np.uint8))), "f32")
    assert not applied(model(fake_quantize(opset1.add(difference, f32(0.5)), 0.0, 1.0)))
