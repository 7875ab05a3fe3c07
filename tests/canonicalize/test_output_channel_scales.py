from __future__ import annotations

import numpy as np
import pytest
from openvino._offline_transformations import apply_moc_transformations

import ovlpt
from ovlpt import Params
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, opset1
from tests.conftest import EXACT, Transformed
from tests.graphs import f32, model, parameter

_CHANNELS = 8
_SCALES = np.array([26, 27, 14, 10, 26.4, 25, 21, 6.4], np.float32) / 1000
_DATA_SCALE, _RESULT_SCALE = np.float32(0.031), np.float32(0.3)


def _by_inputs(values):
    return opset1.reshape(values, opset1.constant(np.array([1, _CHANNELS, 1, 1])), True)


def _numbers(kind: type, groups: int, zero_point: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    weights = rng.integers(-60, 60, (_CHANNELS, _CHANNELS, 3, 3)) + zero_point
    return weights.astype(kind), rng.integers(-2000, 2000, _CHANNELS).astype(np.int32)


def _quantized(value, scale, low: int, high: int):
    """To u8 around ``-low``, and back."""
    ends = f32(low * scale), f32(high * scale)
    found = opset1.fake_quantize(value, *ends, f32(0.0), f32(255.0), 256)
    integers = opset1.convert(found, "u8")
    zero_point = opset1.convert(opset1.constant(np.array(-low, np.uint8)), "f32")
    restored = opset1.multiply(opset1.subtract(opset1.convert(integers, "f32"), zero_point), f32(scale))
    return integers, restored


def graph(kind: type = np.int8, zero_point: int = 0, groups: int = 1, bias: bool = True, named: bool = True,
          open_sizes: bool = False, scales: np.ndarray = _SCALES, of_layer: str = "") -> Model:  # fmt: skip
    """As OpenVINO reads a QLinearConv; ``named``: its result has a name, as tensors of an ONNX file have."""
    weights, integers = _numbers(kind, groups, zero_point)
    sizes = (-1, _CHANNELS * groups, -1, -1) if open_sizes else (2, _CHANNELS * groups, 6, 6)
    data = _quantized(parameter(sizes), _DATA_SCALE, -127, 128)[1]
    points = opset1.convert(opset1.constant(np.full(_CHANNELS, zero_point, kind)), "f32")
    of_weights = f32(scales)
    shifted = opset1.subtract(opset1.convert(opset1.constant(weights), "f32"), _by_inputs(points))
    scaled = opset1.multiply(shifted, _by_inputs(of_weights))
    paddings = [1, 1], [1, 1], [1, 1], [1, 1]
    if groups == 1:
        layer = opset1.convolution(data, scaled, *paddings)
    else:
        parts = opset1.constant(np.array([groups, _CHANNELS // groups, *weights.shape[1:]]))
        layer = opset1.group_convolution(data, opset1.reshape(scaled, parts, False), *paddings)
    if of_layer:
        layer.output(0).set_names({of_layer})
    if bias:
        of_bias = opset1.multiply(f32(_DATA_SCALE), of_weights)
        shift = opset1.multiply(opset1.convert(opset1.constant(integers), "f32"), of_bias)
        layer = opset1.add(layer, _by_inputs(shift))
    stored, restored = _quantized(layer, _RESULT_SCALE, -121, 134)
    if named:
        stored.output(0).set_names({"stored"})
        restored.output(0).set_names({"restored"})
    return model(restored)


def arrays(groups: int = 1) -> list[np.ndarray]:
    return [np.random.default_rng(5).normal(0, 1.5, (2, _CHANNELS * groups, 6, 6)).astype(np.float32)]


def truth(kind: type = np.int8, zero_point: int = 0, groups: int = 1, bias: bool = True) -> np.ndarray:
    """By the definition of QLinearConv."""
    weights, integers = _numbers(kind, groups, zero_point)
    weights = weights.astype(np.float64) - zero_point
    data = np.clip(np.round(arrays(groups)[0] / _DATA_SCALE), -127, 128).astype(np.float64)
    padded = np.pad(data, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    size = _CHANNELS // groups
    sums = np.concatenate(
        [
            np.einsum("ncyxij,ocij->noyx", windows[:, g * _CHANNELS : (g + 1) * _CHANNELS], weights[g * size : (g + 1) * size])
            for g in range(groups)
        ],
        1,
    )  # fmt: skip
    sums += (integers if bias else np.zeros(_CHANNELS))[:, None, None]
    scaled = sums * (_DATA_SCALE * _SCALES.astype(np.float64) / _RESULT_SCALE)[:, None, None]
    return np.clip(np.round(scaled), -121, 134) * _RESULT_SCALE


def off(outputs, expected: np.ndarray) -> float:
    """The largest error, in steps of the result; a tie may be rounded to either side."""
    return float(np.abs(np.array(outputs[0]) - expected).max() / _RESULT_SCALE)


_WEIGHTS = [(np.int8, 0), (np.uint8, 128), (np.uint8, 113)]


# A bias of a graph without names that is folded (2024.6) proves nothing; a file that OpenVINO has read has names.
_PROOFS = [(True, True, False), (True, True, True), (True, False, False), (False, True, False), (False, True, True)]


@pytest.mark.parametrize("bias, named, folded", _PROOFS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kind, zero_point", _WEIGHTS)
def test_scales_are_those_of_outputs(core, kind, zero_point, groups, bias, named, folded):
    quantized = graph(kind, zero_point, groups, bias, named)
    if folded:
        apply_moc_transformations(quantized, True)
    expected = truth(kind, zero_point, groups, bias)
    assert off(simulate(quantized, core)(arrays(groups)), expected) < 1.01
    assert off(ovlpt.compile_model(quantized, "CPU", EXACT, core=core)(arrays(groups)), expected) < 1.01


@pytest.mark.parametrize("bias", [False, True])
def test_open_sizes(core, bias):
    quantized = graph(bias=bias, open_sizes=True)
    assert off(simulate(quantized, core)(arrays()), truth(bias=bias)) < 1.01
    assert off(ovlpt.compile_model(quantized, "CPU", EXACT, core=core)(arrays()), truth(bias=bias)) < 1.01


def test_the_layer_is_in_int8(core):
    compiled = ovlpt.compile_model(graph(), "CPU", EXACT, core=core)
    (layer,) = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Convolution"]
    assert layer.precision == "u8"


def test_a_dequantization_of_axis_1_stays_one(core):
    """Every tensor of an ONNX file has a name, so the layer is one of its own; its bias is not of these scales."""
    quantized = graph(bias=False, of_layer="layer")
    plain = core.compile_model(quantized, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})(arrays())
    assert off(plain, truth(bias=False)) > 10
    for compiled in (simulate(quantized, core), ovlpt.compile_model(quantized, "CPU", EXACT, core=core)):
        assert off(compiled(arrays()), np.array(plain[0])) < 1.01


def test_equal_scales_prove_nothing_by_the_bias():
    result = Transformed(graph(named=False, scales=np.full(_CHANNELS, 0.02, np.float32)))
    assert not [event for event in result.trace if event.transformation == "OutputChannelScales"]


def test_native_only_leaves_it_as_it_is_read():
    for params, count in ((Params(), 1), (Params(native_only=True), 0)):
        events = Transformed(graph(), params).trace
        found = [event for event in events if event.transformation == "OutputChannelScales"]
        assert [event.reason.code for event in found] == ["scales_of_outputs"] * count
