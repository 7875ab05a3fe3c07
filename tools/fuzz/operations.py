"""The operations of random graphs: each builder takes a generator of random numbers and its sources.

A builder returns a node, or None where the operation does not apply to such sources. The same seed and shapes give the
same node. What the installed OpenVINO refuses to validate does not apply either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ovlpt.graph.recurrent import MOVES
from ovlpt.openvino_api import RELEASE, Model, Node, NodeFactory, Output, Type, opset1, opset8
from ovlpt.operations import RECURRENT

# Before 2025 the pass is wrong on 16 bits with native_only (tests/device/test_compile.py says so).
_WIDE = 65536 if RELEASE >= (2025, 0) else 256
FRAMES = 2  # that a state begins with
STATES = frozenset(("State", "Cache"))
NUMPY_TYPES = {"u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}
Random = np.random.Generator
Builder = Callable[..., Node | None]


def f32(values: object) -> Node:
    return opset1.constant(np.asarray(values, np.float32))


def i64(values: object) -> Node:
    return opset1.constant(np.asarray(values, np.int64))


def create(opset: str, operation: str, inputs: Sequence[Node | Output], **attributes: object) -> Node:
    outputs = [value.output(0) if isinstance(value, Node) else value for value in inputs]
    return NodeFactory(opset).create(operation, outputs, attributes)


def sizes(value: Output) -> list[int]:
    return list(value.get_shape())


def chance(random: Random, probability: float) -> bool:
    return bool(random.random() < probability)


def pick(random: Random, *choices: object) -> object:
    return choices[int(random.integers(len(choices)))]


def per_channel(
    random: Random, rank: int, channels: int, low: float, high: float, per_tensor: float = 0.4
) -> np.ndarray:
    """One value, or one for each channel."""
    if chance(random, per_tensor):
        return random.uniform(low, high, [1] * int(pick(random, 0, 1, rank)))
    return random.uniform(low, high, [1, channels, *[1] * (rank - 2)])


# Weighted


def weights(random: Random, shape: Sequence[int], axes: Sequence[int]) -> Node:
    """Quantized along ``axes`` or per tensor, as a FakeQuantize over floats or as integers with a dequantization.

    What is stored is even and within ±62. Processors without VNNI add pairs of products in 16 bits, which whole ranges
    overflow, and some kernels for i8 data halve the weights for that reason. No weight is a tie.
    """
    values = random.standard_normal(shape) / np.sqrt(np.prod(shape) / max(shape[axes[0]], 1))
    fine = chance(random, 0.7)
    reduced = tuple(axis for axis in range(len(shape)) if not fine or axis not in axes)
    scale = np.maximum(np.abs(values).max(reduced, keepdims=True), 1e-3) / 52
    steps = 2 * np.round(values / scale / 2)
    form = random.random()
    if form < 0.1:
        return f32(values)
    if form < 0.45:
        levels = int(pick(random, 255, 255, 256))
        low, high = -scale * (levels // 2), scale * 127
        return opset1.fake_quantize(f32(steps * scale), f32(low), f32(high), f32(low), f32(high), levels)
    if form < 0.6:  # floats after a pair of Quantize and Dequantize
        stored = opset1.fake_quantize(f32(steps * scale), f32(-128 * scale), f32(127 * scale), f32(-128), f32(127), 256)
        return opset1.multiply(opset1.convert(opset1.convert(stored, "i8"), "f32"), f32(scale))
    if form < 0.7:
        node = opset1.convert(opset1.constant((steps + 128).astype(np.uint8)), "f32")
        return opset1.multiply(opset1.subtract(node, f32(128)), f32(scale))
    zero_point = 2 * np.round(random.uniform(-5, 5, scale.shape)) if form > 0.88 else np.zeros_like(scale)
    node = opset1.convert(opset1.constant((steps + zero_point).astype(np.int8)), "f32")
    if zero_point.any():
        node = opset1.subtract(node, f32(zero_point))
    return opset1.multiply(node, f32(scale))


def _window(random: Random, spatial: Sequence[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    kernel = [min(int(pick(random, 1, 2, 3)), size) for size in spatial]
    strides = [int(pick(random, 1, 1, 2)) for _ in spatial]
    begin = [int(random.integers(0, size // 2 + 1)) for size in kernel]
    end = [int(random.integers(0, size // 2 + 1)) for size in kernel]
    return kernel, strides, begin, end


def convolution(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 3:
        return None
    kernel, strides, begin, end = _window(random, shape[2:])
    filters = weights(random, [int(pick(random, 4, 6, 8, 16)), shape[1], *kernel], [0])
    return opset1.convolution(data, filters, strides, begin, end, [1] * len(kernel))


def pointwise(random: Random, data: Output) -> Node | None:
    """1x1, at times strided or padded, often with as many outputs as inputs."""
    shape = sizes(data)
    if len(shape) < 3:
        return None
    spatial = len(shape) - 2
    filters = weights(random, [int(pick(random, 4, 8, 16, shape[1], shape[1])), shape[1], *[1] * spatial], [0])
    strides = [int(pick(random, 1, 1, 2))] * spatial
    padded = chance(random, 0.15) and (RELEASE >= (2025, 0) or strides[0] == 1)  # else 2024.6 reads beyond one cell
    pads = [int(padded)] * spatial
    return opset1.convolution(data, filters, strides, pads, pads, [1] * spatial)


def dilated_convolution(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 3 or min(shape[2:]) < 3:
        return None
    kernel = [int(pick(random, 2, 3)) for _ in shape[2:]]
    pads = [int(pick(random, 1, 2)) for _ in shape[2:]]
    filters = weights(random, [int(pick(random, 4, 8)), shape[1], *kernel], [0])
    return opset1.convolution(data, filters, [1] * len(kernel), pads, pads, [2] * len(kernel))


def group_convolution(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 3:
        return None
    groups = pick(random, *[count for count in (2, shape[1], shape[1]) if shape[1] % count == 0])
    kernel, strides, begin, end = _window(random, shape[2:])
    multiple = int(pick(random, 1, 1, 2))
    outputs = multiple * pick(random, 1, shape[1] // groups)
    axes = pick(random, [0, 1], [0, 1], [0])
    filters = weights(random, [groups, outputs, shape[1] // groups, *kernel], axes)
    return opset1.group_convolution(data, filters, strides, begin, end, [1] * len(kernel))


def convolution_backprop_data(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) not in (4, 5):
        return None
    kernel = [int(pick(random, 2, 3))] * (len(shape) - 2)
    filters = weights(random, [shape[1], int(pick(random, 4, 8)), *kernel], [1])
    strides = [int(pick(random, 1, 2))] * len(kernel)
    return create("opset1", "ConvolutionBackpropData", [data, filters], strides=strides, pads_begin=[0] * len(kernel),
                  pads_end=[0] * len(kernel), dilations=[1] * len(kernel), auto_pad="explicit")  # fmt: skip


def group_convolution_backprop_data(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) not in (4, 5):
        return None
    counts = [count for count in (2, 4, shape[1]) if count > 1 and shape[1] % count == 0]
    if not counts:
        return None
    groups, kernel = pick(random, *counts), [int(pick(random, 2, 3))] * (len(shape) - 2)
    dimensions = [groups, shape[1] // groups, int(pick(random, 1, 2, 4)), *kernel]
    filters = weights(random, dimensions, pick(random, [0, 2], [2, 0], [2]))
    strides = [int(pick(random, 1, 2))] * len(kernel)
    return create("opset1", "GroupConvolutionBackpropData", [data, filters], strides=strides,
                  pads_begin=[0] * len(kernel), pads_end=[0] * len(kernel), dilations=[1] * len(kernel), auto_pad="explicit")  # fmt: skip


def mat_mul(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    transpose_a, transpose_b = len(shape) > 1 and chance(random, 0.1), chance(random, 0.5)
    inner, outer = shape[-2] if transpose_a else shape[-1], int(pick(random, 4, 8, 12))
    dimensions = [outer, inner] if transpose_b else [inner, outer]
    if len(shape) > 2 and chance(random, 0.15):
        dimensions = [*[1] * (len(shape) - 2), *dimensions]
    if chance(random, 0.03):  # a vector
        return opset1.matmul(data, weights(random, [inner], [0]), transpose_a, False)
    matrix = weights(random, dimensions, [len(dimensions) - (2 if transpose_b else 1)])
    if chance(random, 0.1) and len(dimensions) == 2 and len(shape) > 1 and not transpose_a:  # the weights on the left
        return opset1.matmul(matrix, data, not transpose_b, True)
    return opset1.matmul(data, matrix, transpose_a, transpose_b)


def mat_mul_of_two(random: Random, one: Output, other: Output) -> Node | None:
    a, b = sizes(one), sizes(other)
    if len(a) < 2 or len(a) != len(b):
        return None
    transpose_a = chance(random, 0.2)
    inner = a[-2] if transpose_a else a[-1]
    fitting = [flag for flag, size in ((True, b[-1]), (False, b[-2])) if size == inner]
    return opset1.matmul(one, other, transpose_a, pick(random, *fitting)) if fitting else None


# Elementwise


def add_constant(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 2:
        return None
    node = pick(random, opset1.add, opset1.add, opset1.subtract)
    return node(data, f32(per_channel(random, len(shape), shape[1], -1.0, 1.0, 0.2)))


def add_bias_last(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    return opset1.add(data, f32(random.uniform(-1, 1, [*[1] * (len(shape) - 1), shape[-1]])))


def multiply_constant(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 2:
        return None
    values = per_channel(random, len(shape), shape[1], 0.3, 2.0)
    if chance(random, 0.15):
        values = values * np.where(random.random(values.shape) < 0.5, -1, 1)
    return opset1.multiply(data, f32(values))


def constant_first(operation: Callable[..., Node], low: float, high: float) -> Builder:
    """``operation`` of a constant and the data: a scalar, a value by channel, or one by the last axis."""

    def build(random: Random, data: Output) -> Node | None:
        shape = sizes(data)
        values = random.uniform(low, high, [*[1] * (len(shape) - 1), shape[-1]])
        if len(shape) > 1 and chance(random, 0.8):
            values = per_channel(random, len(shape), shape[1], low, high, 0.6)
        return operation(f32(values), data)

    return build


def constant_last(operation: Callable[..., Node], low: float, high: float) -> Builder:
    def build(random: Random, data: Output) -> Node | None:
        shape = sizes(data)
        return operation(data, f32(per_channel(random, len(shape), shape[1], low, high))) if len(shape) > 1 else None

    return build


def mask(random: Random, data: Output) -> Node | None:
    """Ones and zeros. Sums that cancel out, and probabilities next to none, are on either side of 0, but not of this value."""
    return opset1.convert(opset1.greater(data, f32(0.0123)), "f32")


def hide(random: Random, data: Output) -> Node | None:
    """A mask of ones and zeros to be added before a Softmax: (1 - mask) * -100, or (mask - 1) * 100."""
    if chance(random, 0.5):
        return opset1.multiply(opset1.subtract(f32(1), data), f32(-100))
    return opset1.multiply(opset1.subtract(data, f32(1)), f32(100))


def through_half(random: Random, data: Output) -> Node | None:
    return opset1.convert(opset1.convert(data, "f16"), "f32") if data.get_element_type() == Type.f32 else None


def attention(random: Random, query: Output, key: Output) -> Node | None:
    """The fused operation, with a mask or without, causal or not."""
    a, b = sizes(query), sizes(key)
    if len(a) not in (3, 4) or a[:-2] != b[:-2] or a[-1] != b[-1]:
        return None
    inputs: list[Node | Output] = [query, key, key]
    causal = chance(random, 0.2)
    form = pick(random, "none", "boolean", "float", "float") if not causal else "none"
    if form != "none":
        seen = random.random((a[-2], b[-2])) < 0.7
        seen[:, 0] = True
        inputs.append(opset1.constant(seen) if form == "boolean" else f32(np.where(seen, 0, -100)))
        if chance(random, 0.4):
            scale = pick(random, f32(0.3), opset1.convert(opset1.gather(opset1.shape_of(query), i64(0), i64(0)), "f32"))
            inputs.append(scale)
    return create("opset13", "ScaledDotProductAttention", inputs, causal=causal)


def two(operation: Callable[..., Node]) -> Builder:
    def build(random: Random, one: Output, other: Output) -> Node | None:
        return operation(one, other)

    return build


def one(operation: Callable[..., Node]) -> Builder:
    def build(random: Random, data: Output) -> Node | None:
        return operation(data)

    return build


def clamp(random: Random, data: Output) -> Node | None:
    return opset1.clamp(data, *pick(random, (0.0, 6.0), (-1.0, 1.0), (0.0, 1.0), (0.1, 0.9), (-0.5, 2.0)))


def prelu(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    return opset1.prelu(data, f32(random.uniform(-0.2, 0.5, pick(random, 1, shape[1])))) if len(shape) > 1 else None


def softmax(random: Random, data: Output) -> Node | None:
    return opset1.softmax(data, len(sizes(data)) - 1)


# Over axes


def max_pool(random: Random, data: Output) -> Node | None:
    if len(sizes(data)) < 3:
        return None
    kernel, strides, begin, end = _window(random, sizes(data)[2:])
    if chance(random, 0.3):
        return create("opset8", "MaxPool", [data], kernel=kernel, strides=strides, pads_begin=begin, pads_end=end,
                      dilations=[1] * len(kernel), rounding_type="floor", auto_pad="explicit")  # fmt: skip
    return opset1.max_pool(data, strides, begin, end, kernel)


def avg_pool(random: Random, data: Output) -> Node | None:
    if len(sizes(data)) < 3:
        return None
    kernel, strides, begin, end = _window(random, sizes(data)[2:])
    return opset1.avg_pool(data, strides, begin, end, kernel, chance(random, 0.5))


def torch_pool(operation: str, **more: object) -> Builder:
    """A pooling whose last window may begin in the padding, where PyTorch leaves it out."""

    def build(random: Random, data: Output) -> Node | None:
        if len(sizes(data)) < 3:
            return None
        kernel, strides, begin, end = _window(random, sizes(data)[2:])
        dilations = {"dilations": [1] * len(kernel)} if operation == "MaxPool" else {}
        return create("opset14", operation, [data], kernel=kernel, strides=strides, pads_begin=begin, pads_end=end,
                      rounding_type="ceil_torch", auto_pad="explicit", **dilations, **more)  # fmt: skip

    return build


def reduce(random: Random, data: Output) -> Node | None:
    rank = len(sizes(data))
    if rank < 2:
        return None
    node = pick(random, opset1.reduce_mean, opset1.reduce_max, opset1.reduce_sum, opset1.reduce_min, opset1.reduce_mean)
    space = list(range(2, rank)) or [1]
    axes = pick(random, space, [rank - 1], [1], space)
    return node(data, i64(axes), chance(random, 0.6))


def mvn(random: Random, data: Output) -> Node | None:
    rank = len(sizes(data))
    if rank < 2:
        return None
    axes = pick(random, list(range(2, rank)) or [1], list(range(1, rank)), [rank - 1])
    attributes = {"eps": 1e-3, "normalize_variance": chance(random, 0.8), "eps_mode": "inside_sqrt"}
    return create("opset6", "MVN", [data, i64(axes)], **attributes)


def normalize_l2(random: Random, data: Output) -> Node | None:
    rank = len(sizes(data))
    return opset1.normalize_l2(data, i64(pick(random, [1], list(range(1, rank)))), 1e-3, "add") if rank > 1 else None


def mean_kept(random: Random, data: Output) -> Node | None:
    """Over all of space, as before squeeze and excitation."""
    rank = len(sizes(data))
    return opset1.reduce_mean(data, i64(list(range(2, rank))), True) if rank > 2 else None


def of_batch(data: Output, values: Node | Output, more: Sequence[int] = ()) -> Node:
    """``values`` for each row of the data, as exporters write it."""
    count = opset1.gather(opset1.shape_of(data), i64([0]), i64(0))
    target = opset1.concat([count, i64(more)], 0) if more else count
    return create("opset3", "Broadcast", [values, target], mode="numpy")


def recurrent(operation: str, gates: int) -> Builder:
    """A layer over a sequence, or one step of it; its initial states are constants, at times quantized."""
    cell = operation.endswith("Cell")

    def build(random: Random, data: Output) -> Node | None:
        shape = sizes(data)
        if len(shape) != (2 if cell else 3):
            return None
        inputs, size = shape[-1], int(pick(random, 4, 8))
        both = not cell and chance(random, 0.2)
        directions = [] if cell else [1 + both]
        state = f32(random.uniform(-0.3, 0.3, (1, *directions, size)) * chance(random, 0.5))
        if chance(random, 0.3):
            state = opset1.fake_quantize(state, f32(-1), f32(1), f32(-1), f32(1), 255)
        state = of_batch(data, state, (*directions, size))
        states = [state, state] if operation.startswith("LSTM") else [state]
        w, r = (weights(random, [*directions, gates * size, each], [len(directions)]) for each in (inputs, size))
        functions = ["sigmoid", "tanh", "tanh"][: gates - 1] or ["tanh"]  # the plugin demands that they are named
        attributes: dict[str, object] = {"hidden_size": size, "activations": functions}
        biases = gates
        if operation.startswith("GRU") and chance(random, 0.4):
            attributes["linear_before_reset"], biases = True, gates + 1
        bias = f32(random.uniform(-0.3, 0.3, (*directions, biases * size)))
        if cell:
            return create("opset4", operation, [data, *states, w, r, bias], **attributes)
        attributes["direction"] = "bidirectional" if both else pick(random, "forward", "reverse")
        lengths = of_batch(data, i64([shape[1]]))
        return create("opset5", operation, [data, *states, lengths, w, r, bias], **attributes)

    return build


def rolling_state(random: Random, data: Output) -> Node | None:
    """The last frames of the inference before come first, as in streaming networks. `graphs` makes a variable of them."""
    shape = sizes(data)
    if len(shape) < 2:
        return None
    shape[frames_axis("State", shape)] = FRAMES
    return opset1.concat([f32(random.uniform(-1, 1, shape)).output(0), data], frames_axis("State", shape))


def cache(random: Random, data: Output) -> Node | None:
    """Keys or values of an attention after those of the inferences before, which beams at times choose."""
    shape = sizes(data)
    if len(shape) not in (3, 4):
        return None
    shape[-2] = FRAMES
    past = f32(random.uniform(-1, 1, shape))
    if chance(random, 0.6):
        past = create("opset8", "Gather", [past, i64(random.integers(0, shape[0], shape[0])), i64(0)], batch_dims=0)
    return opset1.concat([past.output(0), data], frames_axis("Cache", shape))


def frames_axis(kind: str, shape: Sequence[int]) -> int:
    """Along which a state holds the past."""
    return len(shape) - 2 if kind == "Cache" else min(2, len(shape) - 1)


def in_body(random: Random, inner: Node, end: Callable[[Node], Node] = opset1.relu) -> Node:
    """A quantized layer that keeps the shape."""
    low, high = pick(random, (0.0, 2.55), (-1.28, 1.27), (-1.0, 2.0))
    quantized = opset1.fake_quantize(inner, f32(low), f32(high), f32(low), f32(high), 256)
    size = inner.get_output_shape(0)[-1]
    return end(opset1.matmul(quantized, weights(random, [size, size], [0]), False, True))


def branches(random: Random, data: Output, then: Callable[[Random, Node], Node] = in_body) -> Node | None:
    """An If whose bodies hold a quantized layer each, or what ``then`` makes; the condition follows from the data."""
    shape = sizes(data)
    if data.get_element_type() != Type.f32 or len(shape) < 2:
        return None
    inner = [opset1.parameter(shape, Type.f32) for _ in range(2)]
    made = [then(random, inner[0]), in_body(random, inner[1])]
    bodies = [Model([end], [each], "body") for end, each in zip(made, inner, strict=True)]
    node = opset8.if_op(opset1.greater(opset1.reduce_max(data, i64(list(range(len(shape))))), f32(0.5)).output(0))
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(data, *inner)
    node.set_output(*(body.get_results()[0] for body in bodies))
    return node


def loop(random: Random, data: Output) -> Node | None:
    """Two rounds over the data as a Loop, or a TensorIterator over its first axis of time."""
    shape = sizes(data)
    if data.get_element_type() != Type.f32 or len(shape) < 2:
        return None
    if len(shape) > 2 and chance(random, 0.5):
        return for_each_slice(data, 1, lambda inner: in_body(random, inner))
    return two_rounds(data, lambda inner: in_body(random, inner, opset1.tanh))


def for_each_slice(data: Output, axis: int, body: Callable[[Node], Node]) -> Node:
    """A TensorIterator: what ``body`` makes of each slice of one element along ``axis``, joined along it."""
    shape = sizes(data)
    inner = opset1.parameter([*shape[:axis], 1, *shape[axis + 1 :]], Type.f32)
    node, end = opset8.tensor_iterator(), body(inner)
    node.set_body(Model([opset1.result(end)], [inner], "body"))
    node.set_sliced_input(inner, data, 0, 1, 1, -1, axis)
    node.get_concatenated_slices(end.output(0), 0, 1, 1, -1, axis)
    return node


def two_rounds(data: Output, body: Callable[[Node], Node]) -> Node:
    """A Loop: ``body`` of ``body`` of the data."""
    inner = opset1.parameter(sizes(data), Type.f32)
    again, end = opset1.constant(np.array(True)), body(inner)
    node = opset8.loop(opset1.constant(np.array(2)), opset1.constant(np.array(True)))
    node.set_function(Model([opset1.result(again), opset1.result(end)], [inner], "body"))
    node.set_special_body_ports([-1, 0])
    node.set_merged_input(inner, data, end.output(0))
    node.get_iter_value(end.output(0), -1)
    return node


# Moves


def reshape(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    forms = [[0, -1]] if len(shape) != 2 else []
    if len(shape) > 3:
        forms += [[0, 0, -1], [0, 0, -1], [0, -1, shape[-1]]]
    if len(shape) > 2 and shape[1] % 2 == 0:
        forms.append([0, 2, shape[1] // 2, *shape[2:]])
    if len(shape) == 3 and shape[-1] % 2 == 0:
        forms += [[0, 0, 2, shape[-1] // 2], [0, 0, shape[-1] // 2, 2]]
    if len(shape) == 2 and shape[-1] % 2 == 0:
        forms += [[0, shape[-1] // 2, 2], [0, shape[-1], 1, 1]]
    forms = [form for form in forms if len(form) < 6]
    return opset1.reshape(data, i64(pick(random, *forms)), True) if forms else None


def transpose(random: Random, data: Output) -> Node | None:
    rank = len(sizes(data))
    if rank < 3:
        return None
    orders = [[0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)], [*range(rank - 2), rank - 1, rank - 2]]
    return opset1.transpose(data, i64(pick(random, *orders, [0, *random.permutation(range(1, rank))])))


def concat(random: Random, one: Output, other: Output) -> Node | None:
    a, b = sizes(one), sizes(other)
    if len(a) != len(b) or len(a) < 2:
        return None
    differing = [axis for axis in range(len(a)) if a[axis] != b[axis]]
    if len(differing) > 1 or differing == [0]:
        return None
    return opset1.concat([one, other], differing[0] if differing else int(pick(random, 1, 1, 1, len(a) - 1)))


def split(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    axes = [axis for axis in range(1, len(shape)) if shape[axis] % 2 == 0]
    if not axes:
        return None
    axis = 1 if 1 in axes and chance(random, 0.7) else pick(random, *axes)
    if shape[axis] > 2 and chance(random, 0.4):
        first = int(random.integers(1, shape[axis] - 1))
        return opset1.variadic_split(data, i64(axis), i64([first, shape[axis] - first]))
    return opset1.split(data, i64(axis), 2)


def pad(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 3:
        return None
    begin, end = np.zeros((2, len(shape)), np.int64)
    for axis in pick(random, [len(shape) - 1], list(range(2, len(shape))), [1]):
        begin[axis], end[axis] = random.integers(0, 2, 2)
    mode = pick(random, "constant", "constant", "edge", "reflect", "symmetric")
    return opset1.pad(data, i64(begin), i64(end), mode, f32(pick(random, 0.0, 0.0, 0.5)))


def interpolate(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4:
        return None
    target = [size * 2 for size in shape[2:]]
    attributes = dict(
        mode=pick(random, "nearest", "nearest", "linear_onnx", "linear", "cubic"), shape_calculation_mode="sizes", nearest_mode="floor",
        coordinate_transformation_mode=pick(random, "asymmetric", "half_pixel"), pads_begin=[0] * 4, pads_end=[0] * 4,
    )  # fmt: skip
    if chance(random, 0.3):
        return create("opset11", "Interpolate", [data, i64(target), i64([2, 3])], **attributes)
    return create("opset4", "Interpolate", [data, i64(target), f32([2, 2]), i64([2, 3])], **attributes)


def strided_slice(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 2:
        return None
    axis = int(random.integers(1, len(shape)))
    if shape[axis] < 3:
        return None
    stride = int(pick(random, 1, 2))
    if chance(random, 0.3):
        return create("opset8", "Slice", [data, i64([1]), i64([shape[axis]]), i64([stride]), i64([axis])])
    begin, end, strides, mask = [0] * (axis + 1), [0] * (axis + 1), [1] * (axis + 1), [1] * (axis + 1)
    begin[axis], end[axis], strides[axis], mask[axis] = 1, shape[axis], stride, 0
    shrink = [0] * axis + [int(len(shape) > 2 and chance(random, 0.2))]
    return opset1.strided_slice(data, i64(begin), i64(end), i64(strides), mask, mask, shrink_axis_mask=shrink)


def gather(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    axis = int(random.integers(1, len(shape)))
    count = pick(random, [], [3], [2]) if len(shape) > 2 else pick(random, [], [4], [4])
    indices = random.integers(0, shape[axis], count)
    return create("opset8", "Gather", [data, i64(indices), i64(axis)], batch_dims=0)


def shuffle_channels(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4 or shape[1] % 2:
        return None
    return create("opset3", "ShuffleChannels", [data], axis=1, group=2)


def blocks(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4:
        return None
    if shape[1] % 4 == 0 and chance(random, 0.5):
        return create("opset1", "DepthToSpace", [data], mode=pick(random, "blocks_first", "depth_first"), block_size=2)
    if shape[2] % 2 or shape[3] % 2:
        return None
    zero = i64([0, 0, 0, 0])
    return create("opset2", "SpaceToBatch", [data, i64([1, 1, 2, 2]), zero, zero])


def batch_to_space(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4 or shape[0] % 4:
        return None
    zero = i64([0, 0, 0, 0])
    return create("opset2", "BatchToSpace", [data, i64([1, 1, 2, 2]), zero, zero])


def squeeze(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    axes = [axis for axis in range(1, len(shape)) if shape[axis] == 1]
    if axes and len(shape) > 2:
        return opset1.squeeze(data, i64([pick(random, *axes)]))
    return opset1.unsqueeze(data, i64([int(random.integers(1, len(shape) + 1))])) if len(shape) < 4 else None


def broadcast(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    axes = [axis for axis in range(1, len(shape)) if shape[axis] == 1]
    if not axes:
        return None
    target = [3 if axis in axes else size for axis, size in enumerate(shape)]
    return create("opset3", "Broadcast", [data, i64(target)], mode="numpy")


def widen(random: Random, data: Output) -> Node | None:
    """One channel as three: grey to RGB."""
    return opset1.concat([data, data, data], 1) if len(sizes(data)) > 2 and sizes(data)[1] == 1 else None


def tile(random: Random, data: Output) -> Node | None:
    repeats = [int(pick(random, 1, 1, 2)) for _ in sizes(data)]
    return opset1.tile(data, i64(repeats))


def roll(random: Random, data: Output) -> Node | None:
    axes = [axis for axis in range(len(sizes(data))) if chance(random, 0.4)]
    return create("opset7", "Roll", [data, i64(random.integers(-2, 3, len(axes))), i64(axes)]) if axes else None


def select(random: Random, one: Output, other: Output) -> Node | None:
    condition = [size if chance(random, 0.5) else 1 for size in sizes(one)]
    return opset1.select(opset1.constant(random.random(condition) < 0.5), one, other)


# FakeQuantize


def fake_quantize(random: Random, data: Output, values: np.ndarray) -> Node:
    """Ranges fitted to ``values``, what the data is when nothing is quantized."""
    rank = values.ndim
    fine = rank > 1 and chance(random, 0.25)
    axes = tuple(axis for axis in range(rank) if axis != 1) if fine else None
    low, high = (edge(values, axis=axes, keepdims=fine).astype(np.float64) for edge in (np.min, np.max))
    covered = _covered(random, data, 0.7)
    span = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-2) * covered
    levels = int(pick(random, 256, 256, 256, 255, 255, 16, _WIDE) if chance(random, 0.3) else pick(random, 256, 255))
    kind = random.random()
    if levels == 65536:  # the plugin takes these out, and with them what they clip
        span, kind = 2 * span, 0.0
    if _holds_states(data):
        kind = min(kind, 0.8)
    if (low >= 0).all() and kind < 0.6:
        low, high = np.zeros_like(span), span
    elif kind < 0.6:
        low, high = -span * (levels / 2 / (levels / 2 - 1) if levels % 2 == 0 else 1), span
    elif kind < 0.9:
        step = np.maximum(high - low, 1e-2) * _covered(random, data, 0.8)
        middle = (high + low) / 2
        low, high = np.minimum(middle - step / 2, 0), np.maximum(middle + step / 2, 0.01)
    else:
        least = np.maximum(1e-2, 1e-3 * np.maximum(np.abs(low), np.abs(high)))  # data of one value has an interval, too
        high = np.where(high - low < least, low + least, high)
        step = high - low
        low, high = low + step * 0.3, high - step * 0.1
    output_low, output_high = low, high
    if chance(random, 0.1):
        factor = random.uniform(0.5, 2.0)
        output_low, output_high = low * factor, high * factor
    return opset1.fake_quantize(data, f32(low), f32(high), f32(output_low), f32(output_high), levels)


def _covered(random: Random, data: Output, least: float) -> float:
    """The part of the values that an interval covers; all of hidden states: int8 kernels keep these where calibration saw them."""
    drawn = random.uniform(least, 1.1)
    return max(drawn, 1.0) if _holds_states(data) else drawn


def _holds_states(data: Output) -> bool:
    while (node := data.get_node()).get_type_name() in MOVES:
        data = node.input_value(0)
    return node.get_type_name() in RECURRENT


def quantize_dequantize(random: Random, data: Output, values: np.ndarray, bits: int = 8) -> Node:
    """As ONNX files have it: integers, a zero point and a scale of the whole tensor."""
    kind = pick(random, f"u{bits}", f"i{bits}")
    levels = 2 ** int(kind[1:])
    top = np.maximum(np.abs(values).max(initial=0), 1e-2).astype(np.float64) * _covered(random, data, 0.7)
    low = -levels // 2 if kind[0] == "i" else 0
    unsigned = float(values.min(initial=0)) >= 0
    zero_point = low + (0 if unsigned else int(random.integers(levels // 4, 3 * levels // 4)))
    if kind[0] == "i" and chance(random, 0.5):
        zero_point = 0
    if levels == 65536:  # the plugin takes these out, and with them what they clip
        top *= 2
    scale = np.float32(top / min(low + levels - 1 - zero_point, (zero_point - low) or levels))
    ends = [f32((end - zero_point) * scale) for end in (low, low + levels - 1)]
    stored = opset1.fake_quantize(data, *ends, f32(low), f32(low + levels - 1), levels)
    node = opset1.convert(opset1.convert(stored, kind), "f32")
    if zero_point:
        point = opset1.convert(opset1.constant(np.array(zero_point, NUMPY_TYPES[kind])), "f32")
        node = opset1.subtract(node, pick(random, point, f32(zero_point)))
    return opset1.multiply(node, f32(scale))


def half_range_fake_quantize(random: Random, data: Output, values: np.ndarray) -> Node:
    """Of the second input of a MatMul of two tensors, and of keys: within ±62, as `weights`."""
    top = np.float32(max(np.abs(values).max(initial=0), 1e-2) * 127 / 62)
    return opset1.fake_quantize(data, f32(-top), f32(top), f32(-top), f32(top), 255)


def parameter(shape: Sequence[int], name: str) -> Node:
    node = opset1.parameter(list(shape), Type.f32, name=name)
    node.output(0).get_tensor().set_names({name})
    return node


# builder, number of sources, weight in the draw
KINDS: dict[str, tuple[Builder, int, float]] = {
    "FakeQuantize": (fake_quantize, 1, 14),
    "FakeQuantizeHalf": (half_range_fake_quantize, 1, 0),
    "QuantizeDequantize": (quantize_dequantize, 1, 3),
    "QuantizeDequantizeWide": (partial(quantize_dequantize, bits=16), 1, 1),
    "Convolution": (convolution, 1, 10),
    "Pointwise": (pointwise, 1, 6),
    "DilatedConvolution": (dilated_convolution, 1, 1),
    "GroupConvolution": (group_convolution, 1, 6),
    "ConvolutionBackpropData": (convolution_backprop_data, 1, 3),
    "MatMul": (mat_mul, 1, 9),
    "MatMulOfTwo": (mat_mul_of_two, 2, 5),
    "AddConstant": (add_constant, 1, 6),
    "AddBiasLast": (add_bias_last, 1, 3),
    "MultiplyConstant": (multiply_constant, 1, 5),
    "ConstantPlus": (constant_first(opset1.add, -1.0, 1.0), 1, 1),
    "ConstantMinus": (constant_first(opset1.subtract, -1.0, 1.0), 1, 3),
    "ConstantTimes": (constant_first(opset1.multiply, 0.3, 2.0), 1, 2),
    "DivideConstant": (constant_last(opset1.divide, 0.5, 2.0), 1, 1),
    "MaximumConstant": (constant_last(opset1.maximum, -0.5, 0.5), 1, 0.5),
    "MinimumConstant": (constant_first(opset1.minimum, -0.5, 0.5), 1, 0.5),
    "Square": (lambda random, data: opset1.power(data, f32(2)), 1, 0.5),
    "Mask": (mask, 1, 0.5),
    "Hide": (hide, 1, 0),
    "ThroughHalf": (through_half, 1, 0.5),
    "Attention": (attention, 2, 2),
    "Add": (two(opset1.add), 2, 7),
    "Multiply": (two(opset1.multiply), 2, 3),
    "Subtract": (two(opset1.subtract), 2, 1),
    "Maximum": (two(opset1.maximum), 2, 1),
    "Relu": (one(opset1.relu), 1, 7),
    "Clamp": (clamp, 1, 3),
    "PRelu": (prelu, 1, 3),
    "Sigmoid": (one(opset1.sigmoid), 1, 2),
    "Tanh": (one(opset1.tanh), 1, 1),
    "Gelu": (lambda random, data: create("opset7", "Gelu", [data], approximation_mode="ERF"), 1, 2),
    "HSwish": (lambda random, data: create("opset4", "HSwish", [data]), 1, 1),
    "Swish": (lambda random, data: create("opset4", "Swish", [data]), 1, 1),
    "Abs": (one(opset1.abs), 1, 0.5),
    "Softmax": (softmax, 1, 2),
    "MaxPool": (max_pool, 1, 4),
    "AvgPool": (avg_pool, 1, 4),
    "Reduce": (reduce, 1, 4),
    "MeanKept": (mean_kept, 1, 1),
    "LSTM": (recurrent("LSTMSequence", 4), 1, 0.7),
    "GRU": (recurrent("GRUSequence", 3), 1, 0.5),
    "LSTMCell": (recurrent("LSTMCell", 4), 1, 0.5),
    "GRUCell": (recurrent("GRUCell", 3), 1, 0.3),
    "If": (branches, 1, 0.5),
    "Loop": (loop, 1, 0.5),
    "MVN": (mvn, 1, 2),
    "NormalizeL2": (normalize_l2, 1, 1),
    "Reshape": (reshape, 1, 4),
    "Transpose": (transpose, 1, 4),
    "Concat": (concat, 2, 5),
    "Split": (split, 1, 3),
    "Pad": (pad, 1, 2),
    "Interpolate": (interpolate, 1, 3),
    "StridedSlice": (strided_slice, 1, 2),
    "Gather": (gather, 1, 1.5),
    "ShuffleChannels": (shuffle_channels, 1, 1),
    "Blocks": (blocks, 1, 1.5),
    "BatchToSpace": (batch_to_space, 1, 3),
    "Squeeze": (squeeze, 1, 2),
    "Broadcast": (broadcast, 1, 1),
    "Widen": (widen, 1, 1),
}
# what the native library has no rule for; drawn on demand
ADDED: dict[str, tuple[Builder, int, float]] = {
    "GroupConvolutionBackpropData": (group_convolution_backprop_data, 1, 4),
    "Minimum": (two(opset1.minimum), 2, 3),
    "Roll": (roll, 1, 3),
    "Select": (select, 2, 3),
    "Tile": (tile, 1, 3),
    "TorchAvgPool": (torch_pool("AvgPool", **{"exclude-pad": False}), 1, 3),
    "TorchMaxPool": (torch_pool("MaxPool"), 1, 3),
}
# What networks are made of and single draws seldom make: each step with the steps before it that it reads; 0 is any value.
MOTIFS: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = (
    (("MeanKept", (0,)), ("Pointwise", (1,)), ("AddConstant", (2,)), ("Relu", (3,)), ("Pointwise", (4,)),
     ("AddConstant", (5,)), ("Sigmoid", (6,)), ("Multiply", (0, 7))),
    (("Pointwise", (0,)), ("AddConstant", (1,)), ("Relu", (2,)), ("Pointwise", (3,)), ("AddConstant", (4,))),
    (("MatMul", (0,)), ("AddBiasLast", (1,)), ("Relu", (2,)), ("MatMul", (3,)), ("AddBiasLast", (4,))),
    (("MatMul", (0,)), ("MatMul", (0,)), ("MatMulOfTwo", (1, 2)), ("Softmax", (3,)), ("MatMulOfTwo", (4, 0))),
    (("MatMul", (0,)), ("MatMul", (0,)), ("Attention", (1, 2)), ("MatMul", (3,))),
    (("Mask", (0,)), ("Hide", (1,)), ("Reshape", (2,)), ("Add", (3, 0)), ("Softmax", (4,)), ("MatMul", (5,))),
    (("Mask", (0,)), ("Hide", (1,)), ("Transpose", (2,)), ("Add", (3, 0)), ("Softmax", (4,)), ("MatMul", (5,))),
    (("Convolution", (0,)), ("AddConstant", (1,)), ("Pointwise", (0,)), ("AddConstant", (3,)), ("Add", (2, 4)), ("Relu", (5,))),
    (("Relu", (0,)), ("LSTM", (1,)), ("MatMul", (2,))),
)  # fmt: skip
QUANTIZES = frozenset(
    (
        "FakeQuantize",
        "FakeQuantizeHalf",
        "QuantizeDequantize",
        "QuantizeDequantizeWide",
        "QuantizeClip",
        "QuantizeOtherwise",
        "QuantizeByAxis",
    )
)
WEIGHTED = frozenset(
    (
        *("Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData"),
        *("Pointwise", "DilatedConvolution", "AnyConvolution", "MatMul", "MatMulOfTwo", "Attention"),
        *(
            "SameConvolution",
            "Einsum",
            "MatMulOfTransposed",
            "MatMulOfBlocks",
            "MatMulOfBlockedRows",
            "DeformableConvolution",
            "LayerOfOtherWeights",
            "TransposedConvolution",
        ),
        *("LSTM", "GRU", "LSTMCell", "GRUCell"),
    )
)
