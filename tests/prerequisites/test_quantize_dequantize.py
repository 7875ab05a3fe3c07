"""Q/DQ models as ONNX has them: QuantizeLinear and DequantizeLinear, as OpenVINO's reader writes them."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import RELEASE, Model, opset1
from tests.conftest import EXACT
from tests.graphs import f32, i64, model, opset3, parameter

CHANNELS = 16
DATA = (1, CHANNELS, 8, 8)
LARGEST = 60  # of integer weights: two products of neighbours fit 16 bits


def along(values: np.ndarray, rank: int, axis: int | None):
    """A constant per channel comes as a vector with a Reshape after it."""
    if axis is None:
        return values
    shape = np.ones(rank, int)
    shape[axis] = -1
    return opset1.reshape(values, i64(*shape), False)


def dequantize_linear(data, scale, zero_point: np.ndarray, axis: int | None = None):
    rank = len(data.get_output_partial_shape(0))
    offset = along(opset1.convert(opset1.constant(zero_point), "f32"), rank, axis)
    difference = opset1.subtract(opset1.convert(data, "f32"), offset)
    return opset1.multiply(difference, along(f32(scale), rank, axis))


def quantize_linear(data, scale, zero_point: np.ndarray, axis: int | None = None):
    limits, rank = np.iinfo(zero_point.dtype), len(data.get_output_partial_shape(0))
    shape = np.ones(rank, int)
    if axis is not None:
        shape[axis] = -1
    ends = [
        np.reshape((np.float32(end) - zero_point) * np.float32(scale), shape if axis is not None else ())
        for end in (limits.min, limits.max)
    ]
    levels = int(limits.max) - int(limits.min) + 1
    quantized = opset1.fake_quantize(data, *map(f32, ends), f32(limits.min), f32(limits.max), levels)
    return opset1.convert(quantized, str(zero_point.dtype).replace("uint", "u").replace("int", "i"))


def kernel(shape, precision: type, per_channel: bool, stored: bool, axis: int = 0, zero_point: int = 0):
    """Float weights after a pair, or integers after a DequantizeLinear."""
    rng = np.random.default_rng(1)
    count = shape[axis] if per_channel else 1
    scale = np.linspace(0.002, 0.004, count, dtype=np.float32) if per_channel else np.float32(0.003)
    offset = np.full(count, zero_point, precision) if per_channel else np.array(zero_point, precision)
    integers = rng.integers(-LARGEST, LARGEST + 1, shape) + zero_point
    along_axis = axis if per_channel else None
    if stored:
        return dequantize_linear(opset1.constant(integers.astype(precision)), scale, offset, along_axis)
    spread = np.reshape(scale, [-1 if at == axis else 1 for at in range(len(shape))]) if per_channel else scale
    real = f32((integers - zero_point + rng.uniform(-0.3, 0.3, shape)) * spread)
    return dequantize_linear(quantize_linear(real, scale, offset, along_axis), scale, offset, along_axis)


def activations(data, precision: type, zero_point: int, scale: float = 0.02):
    offset = np.array(zero_point, precision)
    return dequantize_linear(quantize_linear(data, scale, offset), scale, offset)


def in_groups(weights, groups: int):
    """The Reshape of a grouped convolution, to a shape that is read off the weights."""
    shape = opset3.shape_of(weights, "i64")
    first, others = opset1.variadic_split(shape, i64(0), i64(1, -1)).outputs()
    target = opset1.concat([i64(groups), opset1.divide(first, i64(groups)), others], 0)
    return opset1.reshape(weights, target, False)


def layer(kind: str, data, **weights):
    if kind == "MatMul":
        return opset1.matmul(data, kernel((8, 12), axis=1, **weights), False, False)
    if kind == "depthwise":
        groups = in_groups(kernel((CHANNELS, 1, 3, 3), **weights), CHANNELS)
        return opset1.group_convolution(data, groups, [1, 1], [1, 1], [1, 1], [1, 1])
    if kind == "groups":
        groups = in_groups(kernel((CHANNELS, 4, 3, 3), **weights), 4)
        return opset1.group_convolution(data, groups, [1, 1], [1, 1], [1, 1], [1, 1])
    if kind == "transposed":
        weights["axis"] = 1
        return opset1.convolution_backprop_data(
            data, kernel((CHANNELS, 8, 2, 2), **weights), strides=[2, 2],
            pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1],
        )  # fmt: skip
    return opset1.convolution(data, kernel((8, CHANNELS, 3, 3), **weights), [1, 1], [1, 1], [1, 1], [1, 1])


KINDS = ("convolution", "depthwise", "groups", "transposed", "MatMul")


def decibels(reference: np.ndarray, values: np.ndarray) -> float:
    noise = float(np.square(reference.astype(np.float64) - values).sum())
    return 200.0 if noise == 0 else 10 * np.log10(float(np.square(reference.astype(np.float64)).sum()) / noise)


def weighted(compiled) -> list[bool]:
    kinds = ("Convolution", "GroupConvolution", "Deconvolution", "FullyConnected", "MatMul")
    return [layer.is_int8 for layer in ovlpt.execution_types(compiled) if layer.layer_type in kinds]


def assert_as_stock(graph: Model, core, most: float = 100, least: float = -np.inf) -> None:
    """int8 where stock has it; numbers that are the simulation's, or as near to them as stock's; and every answer.

    ``most``, ``least``: dB that are asked for at most, and whatever stock has.
    """
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(list(port.shape)).astype(np.float32) for port in graph.inputs]
    compiled = {
        "simulation": simulate(graph, core),
        "stock": core.compile_model(graph, "CPU", EXACT),
        "ovlpt": ovlpt.compile_model(graph, "CPU", EXACT, core=core),
    }
    assert sum(weighted(compiled["ovlpt"])) >= sum(weighted(compiled["stock"]))
    expected, stock, mine = ([np.array(each) for each in one(inputs).values()] for one in compiled.values())
    for value, theirs, ours in zip(expected, stock, mine, strict=True):
        # now and then stock gives NaN for u8 weights of a MatMul on 2024.6
        at_least = decibels(value, theirs) - 1 if np.isfinite(theirs).all() else 40
        assert decibels(value, ours) >= max(min(at_least, most), least)
    for of_stock, of_mine in zip(compiled["stock"].outputs, compiled["ovlpt"].outputs, strict=True):
        assert of_stock.get_names() == of_mine.get_names()
    ovlpt.explain(graph, core=core)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per_tensor", "per_channel"])
@pytest.mark.parametrize("stored", [False, True], ids=["pair", "stored"])
@pytest.mark.parametrize("kind", KINDS)
def test_weights(kind, stored, per_channel, core):
    data = activations(parameter(DATA), np.uint8, 10)
    graph = model(layer(kind, data, precision=np.int8, per_channel=per_channel, stored=stored))
    assert_as_stock(graph, core)
    compiled = ovlpt.compile_model(graph, "CPU", EXACT, core=core)
    if kind != "transposed":  # whose kernels take no zero point
        assert weighted(compiled) == [True]


def _i8(values):
    return opset1.constant(np.array(values, np.int8))


COMPUTED = {
    "clipped": lambda stored: opset1.minimum(_i8(50), opset1.maximum(_i8(-50), _i8(stored))),  # Clip, in QCDQ files
    "clamped": lambda stored: opset1.clamp(_i8(stored), -50.0, 50.0),
    "transposed": lambda stored: opset1.transpose(_i8(stored.transpose(1, 0, 2, 3)), i64(1, 0, 2, 3)),
    "reshaped": lambda stored: opset1.reshape(_i8(stored.ravel()), i64(*stored.shape), False),
    "joined": lambda stored: opset1.concat([_i8(stored[:3]), _i8(stored[3:])], 0),
    "transposed and clipped": lambda stored: opset1.maximum(
        opset1.transpose(_i8(stored.transpose(1, 0, 2, 3)), i64(1, 0, 2, 3)), _i8(-50)
    ),
}


@pytest.mark.parametrize("computed", COMPUTED)
def test_weights_that_are_computed_from_stored_integers(computed, core):
    """OpenVINO folds no bounds of 8-bit integers, and what it folds becomes a float with its dequantization."""
    stored = np.random.default_rng(3).integers(-LARGEST, LARGEST + 1, (8, CHANNELS, 3, 3))
    kernels = dequantize_linear(
        COMPUTED[computed](stored), np.linspace(0.002, 0.004, 8, dtype=np.float32), np.zeros(8, np.int8), 0
    )
    data = activations(parameter(DATA), np.uint8, 10)
    graph = model(opset1.convolution(data, kernels, [1, 1], [1, 1], [1, 1], [1, 1]))
    assert_as_stock(graph, core)
    assert weighted(ovlpt.compile_model(graph, "CPU", EXACT, core=core)) == [True]


@pytest.mark.parametrize("precision, zero_point", [(np.uint8, 0), (np.uint8, 128), (np.int8, 0), (np.int8, -7)])
@pytest.mark.parametrize("kind", KINDS)
def test_activations(kind, precision, zero_point, core):
    data = activations(parameter(DATA), precision, zero_point)
    graph = model(layer(kind, data, precision=np.int8, per_channel=False, stored=False))
    assert_as_stock(graph, core)


@pytest.mark.parametrize("stored", [False, True], ids=["pair", "stored"])
@pytest.mark.parametrize("precision, zero_point", [(np.int8, 3), (np.uint8, 128)])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_with_a_zero_point(kind, precision, zero_point, stored, core):
    weights = {"precision": precision, "per_channel": False, "stored": stored, "zero_point": zero_point}
    data = activations(parameter(DATA), np.uint8, 0)
    assert_as_stock(model(layer(kind, data, **weights)), core)


@pytest.mark.parametrize("precision", [np.uint16, np.int16])
@pytest.mark.parametrize("kind", KINDS)
def test_activations_of_16_bits(kind, precision, core):
    if kind == "MatMul" and RELEASE < (2025, 0):
        pytest.skip("2024.6 reads small i8 weights of a float MatMul wrongly, with its own LPT too")
    data = activations(parameter(DATA), precision, 7, 1e-4)
    graph = model(layer(kind, data, precision=np.int8, per_channel=False, stored=True))
    assert_as_stock(graph, core, least=60)  # stock does not clip to the interval


@pytest.mark.parametrize("precision", [np.uint8, np.int8, np.uint16, np.int16])
def test_names_of_quantized_outputs(precision, core):
    """The pair at the end of a network, and one whose integers are an output too."""
    data = activations(parameter(DATA), np.uint8, 10)
    inner = layer("convolution", data, precision=np.int8, per_channel=True, stored=True)
    scale = 0.05 if np.iinfo(precision).max < 256 else 2e-4
    offset = np.array(3 if np.iinfo(precision).min else np.iinfo(precision).max // 2, precision)
    quantized = quantize_linear(inner, scale, offset)
    results = [dequantize_linear(quantized, scale, offset), opset1.relu(inner)]
    for index, result in enumerate(results):
        result.output(0).get_tensor().set_names({f"out{index}"})
    wide = np.iinfo(precision).max > 255  # the plugin drops a quantization to 16 bits before an output
    assert_as_stock(model(*results), core, most=70 if wide else 100)
