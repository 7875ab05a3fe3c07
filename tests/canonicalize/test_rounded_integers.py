from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, opset1, opset8
from tests.conftest import EXACT, Transformed
from tests.graphs import f32, fake_quantize, model, parameter

_SCALE = 0.0371
_RANGE = {np.uint8: (0, 255), np.int8: (-128, 127)}
_SHAPE = (2, 4, 5, 5)
_SPELLED = ("shifted", "converted")
_ZERO_POINTS = [(np.uint8, 117), (np.uint8, 0), (np.int8, -3), (np.int8, 0)]


def stored(value, kind: type, zero_point: int, spelled: str, scale: float = _SCALE):
    """As OpenVINO reads QLinearAdd ("shifted"), or QLinearSigmoid, of ONNX Runtime."""
    scaled = opset1.divide(value, f32(scale))
    integer = opset1.constant(np.array(zero_point, kind))
    name = np.dtype(kind).name.replace("uint", "u").replace("int", "i")
    if spelled == "shifted":
        return opset1.convert(opset1.add(scaled, opset1.convert(integer, "f32")), name)
    return opset1.add(opset1.convert(scaled, name), integer)


def restored(integers, kind: type, zero_point: int, scale: float = _SCALE):
    zero = opset1.convert(opset1.constant(np.array(zero_point, kind)), "f32")
    return opset1.multiply(opset1.subtract(opset1.convert(integers, "f32"), zero), f32(scale))


def graph(kind: type, zero_point: int, spelled: str, shape=_SHAPE) -> Model:
    """A quantized sum, as a residual connection is in an ONNX file whose operations are integer ones."""
    first = fake_quantize(parameter(shape), -4.0, 4.0)
    second = fake_quantize(parameter(shape, "y"), -3.0, 3.0, name="second")
    value = stored(opset1.add(first, second), kind, zero_point, spelled)
    return model(restored(value, kind, zero_point))


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.uniform(-7, 7, _SHAPE).astype(np.float32) for _ in "xy"]


def truth(kind: type, zero_point: int) -> np.ndarray:
    """By the definition of the ONNX operation."""
    first, second = arrays()
    steps = [
        np.round((np.clip(x, -a, a) + a) / (2 * a / 255)) * (2 * a / 255) - a for x, a in ((first, 4), (second, 3))
    ]
    quantized = np.clip(np.round(sum(steps) / _SCALE) + zero_point, *_RANGE[kind])
    return (quantized - zero_point) * _SCALE


def off(outputs, expected: np.ndarray) -> int:
    """Elements that are not the expected one."""
    return int((np.abs(np.array(outputs[0]) - expected) > _SCALE / 100).sum())


@pytest.mark.parametrize("shape", [_SHAPE, (-1, 4, -1, -1)], ids=["fixed", "open"])
@pytest.mark.parametrize("spelled", _SPELLED)
@pytest.mark.parametrize("kind, zero_point", _ZERO_POINTS)
def test_stored_integers_are_rounded_and_saturate(core, kind, zero_point, spelled, shape):
    quantized, expected = graph(kind, zero_point, spelled, shape), truth(kind, zero_point)
    assert off(ovlpt.compile_model(quantized, "CPU", EXACT, core=core)(arrays()), expected) == 0
    assert off(simulate(quantized, core)(arrays()), expected) == 0


@pytest.mark.parametrize("spelled", _SPELLED)
@pytest.mark.parametrize("kind, zero_point", _ZERO_POINTS)
def test_an_ir_whose_constants_are_folded(core, kind, zero_point, spelled):
    quantized, expected = graph(kind, zero_point, spelled), truth(kind, zero_point)
    CommonOptimizations(as_defined=False).run_on_model(quantized)
    assert off(ovlpt.compile_model(quantized, "CPU", EXACT, core=core)(arrays()), expected) == 0
    assert off(simulate(quantized, core)(arrays()), expected) == 0


@pytest.mark.parametrize("spelled", _SPELLED)
def test_a_pipeline_of_ones_own(core, spelled):
    result = Transformed(graph(np.int8, -3, spelled))
    (said,) = [event for event in result.trace if event.transformation == "RoundedIntegers"]
    assert said.reason.code == "stored_integers"
    assert off(core.compile_model(result.after, "CPU", EXACT)(arrays()), truth(np.int8, -3)) == 0


def test_native_only_leaves_it_as_it_is_read():
    result = Transformed(graph(np.int8, -3, "shifted"), Params(native_only=True))
    assert not [event for event in result.trace if event.transformation == "RoundedIntegers"]


@pytest.mark.parametrize("steps", [255.0, 31.0])
@pytest.mark.parametrize("divides", [False, True])
def test_a_cast_of_an_image_stays_a_cast(core, steps, divides):
    image = parameter(_SHAPE)
    scaled = opset1.divide(image, f32(1 / steps)) if divides else opset1.multiply(image, f32(steps))
    value = opset1.multiply(opset1.convert(opset1.convert(scaled, "u8"), "f32"), f32(1 / steps))
    quantized = model(fake_quantize(value, 0.0, 1.0))
    CommonOptimizations().run_on_model(quantized)
    assert not [node for node in quantized.get_ops() if node.get_friendly_name() == "FakeQuantize"]
    data = np.random.default_rng(2).uniform(0, 1, _SHAPE).astype(np.float32)
    cut = np.floor(data * np.float32(steps)) / np.float32(steps)
    found = np.array(simulate(quantized, core)([data])[0])
    assert np.abs(found - np.round(cut * 255) / 255).max() < 1e-4


def test_probabilities_become_quantized_ones(core):
    """The scale of ONNX Runtime for them is 1 / 256, and a 1 would be 256, which wraps around."""
    value = opset8.softmax(parameter((3, 8)), 1)
    integers = stored(value, np.uint8, 0, "converted", 1 / 256)
    quantized = model(restored(integers, np.uint8, 0, 1 / 256))
    data = np.random.default_rng(2).uniform(-9, 9, (3, 8)).astype(np.float32)
    data[0, 0] = 40
    powers = np.exp(data - data.max(1, keepdims=True))
    expected = np.clip(np.round(256 * powers / powers.sum(1, keepdims=True)), 0, 255) / 256
    assert np.abs(np.array(simulate(quantized, core)([data])[0]) - expected).max() < 1e-4
