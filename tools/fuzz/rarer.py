"""What quantized layers seldom stand beside: masks and scales by head, one tensor with several scales, updates of parts of
it, normalizations spelled out, intervals along any axis, and convolutions with whatever attributes.

Builders as in `tools.fuzz.operations`.
"""

from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Node, Output, Type, opset1
from tools.fuzz.operations import (
    Builder,
    Random,
    branches,
    chance,
    create,
    f32,
    for_each_slice,
    i64,
    pick,
    sizes,
    two_rounds,
    weights,
)

THIN = (
    (1, 8, 1, 6),
    (2, 8, 5, 1),
    (1, 24, 1, 1),
    (2, 8, 1, 1),
    (1, 24, 3, 4),
    (1, 40, 2, 2),
    (2, 1, 8),
    (1, 6, 8),
    (1, 16, 17, 2),
)  # one row or column, also after a stride


def _ends(low: float, high: float) -> list[Node]:
    return [f32(end) for end in (low, high, low, high)]


def _quantized(random: Random, data: Output | Node) -> Node:
    low, high = pick(random, (0.0, 2.55), (-1.28, 1.27), (-1.0, 2.0))
    return opset1.fake_quantize(data, *_ends(low, high), 256)


def _half_range(data: Output | Node) -> Node:
    """Of a second factor: within ±62 steps, as `weights`."""
    return opset1.fake_quantize(opset1.clamp(data, -1.0, 1.0), *_ends(-127 / 62, 127 / 62), 255)


def quantize_by_axis(random: Random, data: Output, values: np.ndarray) -> Node:
    """An interval for each part along one axis, which is not that of the channels."""
    axes = [axis for axis in range(values.ndim) if axis != 1] or [0]
    kept = pick(random, axes[-1], *axes)
    others = tuple(axis for axis in range(values.ndim) if axis != kept)
    top = np.maximum(np.abs(values).max(others, keepdims=True), 1e-2) * random.uniform(0.7, 1.1)
    low, levels = pick(random, (-top, 255), (-top * 128 / 127, 256), (-top * 0.3, 256))
    return opset1.fake_quantize(data, *[f32(end) for end in (low, top, low, top)], levels)


def dequantized_twice(random: Random, data: Output) -> Node | None:
    """Integers that several DequantizeLinear read, as files have it that share them."""
    size = sizes(data)[-1]
    stored = opset1.fake_quantize(data, f32(-1), f32(1.55), f32(0), f32(255), 256)
    integers = opset1.convert(stored, "u8")
    parts = []
    for scale, point in ((0.01, 100), pick(random, (0.01, 100), (0.02, 100), (0.01, 128), (0.005, 0))):
        real = opset1.convert(integers, "f32")
        part = opset1.multiply(opset1.subtract(real, f32(point)) if point else real, f32(scale))
        if chance(random, 0.6):
            part = opset1.matmul(part, weights(random, [size, size], [0]), False, True)
        parts.append(part)
    join = pick(random, opset1.add, opset1.multiply, lambda *both: opset1.concat(list(both), -1))
    return join(*parts)


def updated(random: Random, data: Output) -> Node | None:
    """Rows of quantized data that other quantized data takes the place of, before a layer."""
    shape = sizes(data)
    if len(shape) < 2 or shape[1] < 2:
        return None
    into, row = _quantized(random, data), _quantized(random, opset1.gather(data, i64([0]), i64(1)))
    form = pick(random, "ScatterUpdate", "SliceScatter", "ScatterElementsUpdate")
    if form == "ScatterUpdate":
        node = create("opset3", form, [into, i64([shape[1] - 1]), row, i64(1)])
    elif form == "SliceScatter":
        node = create("opset15", form, [into, row, i64([1]), i64([2]), i64([1]), i64([1])])
    else:
        node = create("opset3", form, [into, i64(np.ones([shape[0], 1, *shape[2:]])), row, i64(1)])
    return opset1.matmul(node, weights(random, [8, shape[-1]], [0]), False, True)


def largest(random: Random, data: Output) -> Node | None:
    """The largest of quantized data, or which these are, as ones among zeros: of data without equal values."""
    shape = sizes(data)
    if len(shape) < 2 or shape[-1] < 3:
        return None
    gives_values = chance(random, 0.5)
    read = _quantized(random, data) if gives_values else opset1.add(data, f32(np.linspace(0, 0.01, shape[-1])))
    found = create("opset11", "TopK", [read, i64(2)], axis=len(shape) - 1, mode="max", sort="value",
                   index_element_type="i32")  # fmt: skip
    if gives_values:
        return opset1.matmul(found.output(0), weights(random, [8, 2], [0]), False, True)
    ones = create("opset1", "OneHot", [found.output(1), i64(shape[-1]), f32(1), f32(0)], axis=-1)
    return opset1.matmul(_quantized(random, ones), weights(random, [8, shape[-1]], [0]), False, True)


def _computed_mask(data: Output, rows: int, least: float) -> Node:
    """The last of several rows is hidden, as those that pad a line; the data decides nothing, and no pass knows it."""
    nothing = opset1.multiply(opset1.reduce_mean(data, i64([2]), True), f32(0))
    places = opset1.add(opset1.reshape(nothing, i64([0, 1, 1, -1]), True), f32(np.arange(rows)))
    return opset1.select(opset1.less(places, f32(max(rows - 1.5, 0.5))), f32(0), f32(least))


def masked_attention(random: Random, data: Output) -> Node | None:
    """Scores of two heads with a scale by head, and a mask that is added by head, of booleans, or causal."""
    shape = sizes(data)
    if len(shape) != 3 or shape[-1] % 2:
        return None
    rows, size = shape[1], shape[2]

    def heads(source: Node | Output) -> Node:
        parts = opset1.reshape(source, i64([0, 0, 2, size // 2]), True)
        return opset1.transpose(parts, i64([0, 2, 1, 3]))

    read = _quantized(random, data)
    query, key, value = (opset1.matmul(read, weights(random, [size, size], [0]), False, True) for _ in range(3))
    scores = opset1.matmul(_quantized(random, heads(query)), _half_range(heads(key)), False, True)
    scale = f32(random.uniform(0.2, 1, (1, 2, 1, 1)) * pick(random, 1, 1, [[[[1]], [[-1]]]]))
    if chance(random, 0.7):
        scores = opset1.multiply(scores, scale)
    if chance(random, 0.3):
        scores = _quantized(random, scores)
    seen = (
        np.tril(np.ones((1, 1, rows, rows), bool)) if chance(random, 0.5) else random.random((1, 2, rows, rows)) < 0.7
    )
    seen = seen | np.eye(rows, dtype=bool)
    least = float(pick(random, -100, -1e4, -1e9, -1e20, -3.4e38))
    form = pick(random, "added", "booleans", "by head", "by key", "computed", "quantized", "none")
    if form in ("computed", "quantized"):
        mask = _computed_mask(data, rows, least)
        if form == "quantized":
            mask = opset1.fake_quantize(mask, *_ends(least, 0), 256)
        scores = opset1.add(scores, mask)
    elif form == "by key":
        hidden = (random.random((1, 1, 1, rows)) < 0.3) & (np.arange(rows) > 0)
        scores = opset1.add(scores, f32(np.where(hidden, least, random.uniform(-1, 1, hidden.shape))))
    elif form == "booleans":
        scores = opset1.select(opset1.constant(seen), scores, f32(least))
    elif form != "none":
        bias = random.uniform(-1, 1, (1, 2, 1, 1)) if form == "by head" else 0
        scores = opset1.add(scores, f32(np.where(seen, bias, least)))
    weighed = opset1.softmax(scores, 3)
    if chance(random, 0.5):
        # not of 1: the weights of 2, 6, 10 or 30 keys alike would lie halfway between two levels, where bf16 decides for all at once
        weighed = opset1.fake_quantize(weighed, *_ends(0, 0.96), 256)
    met = opset1.transpose(opset1.matmul(weighed, _half_range(heads(value)), False, False), i64([0, 2, 1, 3]))
    return opset1.reshape(met, i64([0, 0, size]), True)


def permuted(random: Random, data: Output) -> Node | None:
    """The channels in another order, as pruned and grouped networks have them."""
    shape = sizes(data)
    if len(shape) < 3 or shape[1] < 3:
        return None
    return create("opset8", "Gather", [data, i64(random.permutation(shape[1])), i64(1)], batch_dims=0)


def _convolution_in_body(random: Random, inner: Node) -> Node:
    """Two layers and what they are added to, where there are channels; else a product."""
    shape = inner.get_output_shape(0)
    value: Node = inner
    for _ in range(2):
        value = _quantized(random, value)
        if len(shape) > 2:
            ones, none = [1] * (len(shape) - 2), [0] * (len(shape) - 2)
            filters = weights(random, [shape[1], shape[1], *ones], [0])
            value = opset1.relu(opset1.convolution(value, filters, ones, none, none, ones))
        else:
            value = opset1.matmul(value, weights(random, [shape[-1], shape[-1]], [0]), False, True)
    return opset1.add(value, inner)


def layers_in_branches(random: Random, data: Output) -> Node | None:
    return branches(random, data, _convolution_in_body)


def layers_in_loop(random: Random, data: Output) -> Node | None:
    """Two rounds over the data, or each row of a batch alone."""
    shape = sizes(data)
    if data.get_element_type() != Type.f32 or len(shape) < 2:
        return None
    if chance(random, 0.5):
        return for_each_slice(data, 0, lambda inner: _convolution_in_body(random, inner))
    return two_rounds(data, lambda inner: opset1.tanh(_convolution_in_body(random, inner)))


def spelled_group_norm(random: Random, data: Output) -> Node | None:
    """As PyTorch exports it: the channels of a group as one row, which is normalized, and scaled once it is as it was."""
    shape = sizes(data)
    if len(shape) < 3 or shape[1] % 2:
        return None
    rows = opset1.reshape(data, i64([0, 2, -1]), True)
    if chance(random, 0.5):
        normal = create("opset6", "MVN", [rows, i64([2])], eps=1e-3, normalize_variance=True, eps_mode="inside_sqrt")
    else:
        centred = opset1.subtract(rows, opset1.reduce_mean(rows, i64([2]), True))
        variance = opset1.reduce_mean(opset1.multiply(centred, centred), i64([2]), True)
        normal = opset1.divide(centred, opset1.sqrt(opset1.add(variance, f32(1e-3))))
    whole = opset1.reshape(normal, opset1.shape_of(data) if chance(random, 0.5) else i64([0, *shape[1:]]), True)
    scale, bias = (
        f32(random.uniform(*ends, [shape[1], *[1] * (len(shape) - 2)])) for ends in ((0.5, 1.5), (-0.5, 0.5))
    )
    return opset1.add(opset1.multiply(whole, scale), bias)


def any_convolution(random: Random, data: Output) -> Node | None:
    """Of 8, 24 or 40 outputs, in groups at times; with strides, dilations and padding of each side alone."""
    shape = sizes(data)
    if len(shape) < 3:
        return None
    space = len(shape) - 2
    kernel, strides, dilations = (
        [int(pick(random, *each)) for _ in range(space)] for each in ((1, 2, 3), (1, 1, 2), (1, 1, 2))
    )
    begin, end = ([int(random.integers(0, size)) for size in kernel] for _ in range(2))
    groups, outputs = int(pick(random, 1, 1, 2, 8, shape[1])), int(pick(random, 8, 24, 40))
    if shape[1] % groups or outputs % groups or groups == 1:
        filters = weights(random, [outputs, shape[1], *kernel], [0])
        return opset1.convolution(data, filters, strides, begin, end, dilations)
    filters = weights(random, [groups, outputs // groups, shape[1] // groups, *kernel], [0, 1])
    return opset1.group_convolution(data, filters, strides, begin, end, dilations)


def upsampled(random: Random, data: Output) -> Node | None:
    """A transposed convolution, with up to three functions and a shift after it."""
    shape = sizes(data)
    if not 3 <= len(shape) <= 4:
        return None
    space = len(shape) - 2
    kernel, strides, dilations = (
        [int(pick(random, *each)) for _ in range(space)] for each in ((2, 3, 4), (1, 2, 2, 4), (1, 1, 1, 2))
    )
    groups, outputs, none = int(pick(random, 1, 1, 1, 2)), int(pick(random, 1, 8, 8)), [0] * space
    if groups == 1 or shape[1] % groups:
        filters = weights(random, [shape[1], outputs, *kernel], [1])
        node = opset1.convolution_backprop_data(data, filters, strides, None, none, none, dilations)
    else:
        filters = weights(random, [groups, shape[1] // groups, outputs, *kernel], [0, 2])
        node = opset1.group_convolution_backprop_data(data, filters, strides, None, none, none, dilations)
    channels = node.get_output_partial_shape(0)[1].get_length()
    node = opset1.add(node, f32(random.uniform(-0.5, 0.5, (1, channels, *[1] * space))))
    functions = (
        opset1.relu,
        opset1.sigmoid,
        opset1.tanh,
        lambda value: opset1.prelu(value, f32([0.1])),
        lambda value: opset1.clamp(value, -0.6, 0.8),
        lambda value: opset1.add(value, f32(0.5)),
        lambda value: _quantized(random, value),
    )
    for _ in range(int(random.integers(0, 4))):
        node = functions[int(random.integers(len(functions)))](node)
    return node


RARER: dict[str, tuple[Builder, int, float]] = {
    "QuantizeByAxis": (quantize_by_axis, 1, 8),
    "DequantizedTwice": (dequantized_twice, 1, 8),
    "Updated": (updated, 1, 8),
    "Largest": (largest, 1, 5),
    "MaskedAttention": (masked_attention, 1, 12),
    "LayersInBranches": (layers_in_branches, 1, 4),
    "LayersInLoop": (layers_in_loop, 1, 4),
    "SpelledGroupNorm": (spelled_group_norm, 1, 6),
    "AnyConvolution": (any_convolution, 1, 16),
    "Upsampled": (upsampled, 1, 8),
    "Permuted": (permuted, 1, 6),
}
RARER_MOTIFS: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = (
    (("AnyConvolution", (0,)), ("SpelledGroupNorm", (1,)), ("Swish", (2,)), ("AnyConvolution", (3,))),
    (("QuantizeByAxis", (0,)), ("MatMul", (1,)), ("AddBiasLast", (2,)), ("MaskedAttention", (3,)), ("MatMul", (4,))),
    (("QuantizeByAxis", (0,)), ("AnyConvolution", (1,)), ("AddConstant", (2,)), ("Relu", (3,))),
    (("QuantizeByAxis", (0,)), ("Pointwise", (1,)), ("Add", (1, 2)), ("FakeQuantize", (3,)), ("Pointwise", (4,))),
    (("FakeQuantize", (0,)), ("ConstantMinus", (1,)), ("AnyConvolution", (2,))),
    (("FakeQuantize", (0,)), ("Upsampled", (1,)), ("FakeQuantize", (2,)), ("Pointwise", (3,))),
    (("FakeQuantize", (0,)), ("Permuted", (1,)), ("AnyConvolution", (2,)), ("Relu", (3,))),
)
