from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import execution_types
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, opset1
from tests.conftest import EXACT, needs_avx2
from tests.graphs import f32, fake_quantize, i64, model, opset8, opset12, parameter

_SCALE = 0.0213
_SHAPE = (2, 8, 6, 6)
_KINDS = [(np.uint8, 0), (np.uint8, 121), (np.int8, 0), (np.int8, -7)]


def stored(value, kind: type, zero_point: int):
    limits = np.iinfo(kind)
    low, high = (np.float32(_SCALE * (end - zero_point)) for end in (limits.min, limits.max))
    quantize = opset1.fake_quantize(value, f32(low), f32(high), f32(limits.min), f32(limits.max), 256)
    return opset1.convert(quantize, kind)


def restored(integers, kind: type, zero_point: int, scale=_SCALE):
    zero = opset1.convert(opset1.constant(np.array(zero_point, kind)), "f32")
    return opset1.multiply(opset1.subtract(opset1.convert(integers, "f32"), zero), f32(scale))


def convolution(data):
    channels = data.get_output_partial_shape(0)[1].get_length()
    values = np.random.default_rng(1).normal(size=(4, channels, 1, 1)).astype(np.float32)
    weights = fake_quantize(f32(values), -6.0, 6.0, 255, "weights")  # half of which is used: no kernel saturates
    return opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def turned(value):
    return opset1.transpose(value, i64(0, 1, 3, 2))


def pooled(value):
    return opset8.max_pool(value, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)


def padded(value, zero: int = 4):
    around, kind = i64(0, 0, 1, 1), value.get_element_type().to_dtype()
    return opset12.pad(value, around, around, "constant", opset1.constant(np.array(zero, kind)))


MOVES = {
    "a Transpose": lambda value: turned(value),
    "a pool before": lambda value: turned(pooled(value)),
    "a Reshape after": lambda value: opset1.reshape(turned(value), i64(0, 0, 4, 9), True),
    "a part of it": lambda value: turned(opset1.split(value, opset1.constant(np.int64(1)), 2).output(1)),
    "a pool": lambda value: pooled(value),
    "a part": lambda value: opset1.split(value, opset1.constant(np.int64(1)), 2).output(1),
}


def samples(shape=_SHAPE) -> list[np.ndarray]:
    return [np.random.default_rng(3).normal(size=shape).astype(np.float32)]


def is_exact_in_int8(quantized: Model, core, layers: int) -> bool:
    compiled, data = ovlpt.compile_model(quantized, "CPU", EXACT, core=core), samples()
    executed = execution_types(compiled).executed
    weighted = [layer.is_int8 for layer in executed if layer.layer_type in ("Convolution", "MatMul", "FullyConnected")]
    truth, found = simulate(quantized, core)(data), compiled(data)
    close = all(np.allclose(found[port], truth[port], atol=1e-4) for port in range(len(truth)))
    return close and weighted == [True] * layers


@needs_avx2
@pytest.mark.parametrize("shape", [_SHAPE, (-1, 8, -1, -1)], ids=["fixed", "open"])
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("kind", "zero_point"), _KINDS)
def test_a_convolution_after_moved_integers(core, kind, zero_point, move, shape):
    value = MOVES[move](stored(parameter(shape), kind, zero_point))
    if shape != _SHAPE and move == "a Reshape after":
        value = opset1.reshape(value, i64(0, 8, 0, -1), True)
    assert is_exact_in_int8(model(convolution(restored(value, kind, zero_point))), core, 1)


@needs_avx2
def test_a_product_of_heads(core):
    """As attentions are in files of ONNX Runtime whose operations are integer ones."""
    x = parameter((2, 48, 6))
    heads = [stored(x, np.int8, 0), stored(opset1.multiply(x, f32(0.5)), np.int8, 0)]
    left, right = (opset1.reshape(each, i64(0, 4, 12, 6), True) for each in heads)
    moved = opset1.transpose(left, i64(0, 1, 3, 2)), opset1.transpose(right, i64(0, 1, 2, 3))
    product = opset1.matmul(*(restored(each, np.int8, 0) for each in moved), False, False)
    quantized, data = model(product), samples((2, 48, 6))
    compiled = ovlpt.compile_model(quantized, "CPU", EXACT, core=core)
    assert [each.is_int8 for each in execution_types(compiled).executed if each.layer_type == "MatMul"] == [True]
    assert np.allclose(compiled(data)[0], simulate(quantized, core)(data)[0], atol=1e-4)


@needs_avx2
def test_several_readers(core):
    """One of the integers themselves, and two that move them otherwise."""
    integers = stored(parameter(_SHAPE), np.uint8, 121)
    parts = [integers, turned(integers), opset1.reshape(turned(integers), i64(0, 0, 4, 9), True)]
    assert is_exact_in_int8(model(*(convolution(restored(part, np.uint8, 121)) for part in parts)), core, 3)


@needs_avx2
@pytest.mark.parametrize(("kind", "zero_point"), _KINDS)
def test_a_pool_and_a_padding_beside_each_other(core, kind, zero_point):
    """i8 with a zero point that were dequantized after a pool, or padded with it, were read by layers in float."""
    integers = stored(parameter(_SHAPE), kind, zero_point)
    parts = [integers, pooled(integers), padded(integers, zero_point)]
    assert is_exact_in_int8(model(*(convolution(restored(part, kind, zero_point)) for part in parts)), core, 3)


@needs_avx2
def test_padded_integers_of_other_sizes(core):
    """Dequantized before the Pad, its zeros would have a scale of their own, which a Reshape of the padded axis loses."""
    integers = stored(parameter(_SHAPE), np.uint8, 121)
    rows = opset1.reshape(padded(integers, 121), i64(0, 0, 4, 16), True)
    assert is_exact_in_int8(model(convolution(restored(rows, np.uint8, 121))), core, 1)


def names_of_it(quantized: Model, **settings) -> list[str]:
    trace = ovlpt.Trace()
    ovlpt.transform(quantized, trace=trace, **settings)
    return [event.node for event in trace if event.transformation == "DequantizationBeforeMoves"]


def test_the_quantization_keeps_the_name_of_what_stored_the_integers(core):
    integers = stored(parameter(_SHAPE), np.uint8, 121)
    integers.set_friendly_name("sum")
    quantized = model(convolution(restored(turned(integers), np.uint8, 121)))
    assert names_of_it(quantized) == ["sum"]
    assert names_of_it(quantized, native_only=True) == []


@pytest.mark.parametrize(
    "build",
    [
        lambda value: [restored(turned(value), np.uint8, 3), restored(turned(value), np.uint8, 4)],
        lambda value: [restored(turned(value), np.uint8, 3, _SCALE), restored(turned(value), np.uint8, 3, 0.1)],
        lambda value: [restored(turned(value), np.uint8, 3), turned(value)],
        lambda value: [restored(pooled(turned(value)), np.uint8, 3, -_SCALE)],
        lambda value: [restored(turned(padded(value)), np.uint8, 3)],
        lambda value: [restored(turned(value), np.uint8, 3, np.full((1, 8, 1, 1), _SCALE))],
        lambda value: [restored(opset1.concat([turned(value), opset1.convert(parameter(_SHAPE), "u8")], 1), np.uint8, 3)],
    ],
    ids=["zero points", "scales", "an output", "a negative scale", "others around it", "scales by channel", "other integers"],
)  # fmt: skip
def test_what_is_left_as_it_is(build):
    value = stored(parameter(_SHAPE), np.uint8, 3)
    quantized = model(*build(value))
    assert names_of_it(quantized) == []
