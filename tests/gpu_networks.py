"""Small quantized networks whose numbers are computed by the GPU plugin's own kernels: each weighted operation, each form
that becomes part of a layer, zero points, per-channel constants, attention, recurrence, dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovlpt.openvino_api import Model, Node, opset1, opset6, opset8
from tests.graphs import NodeFactory
from tests.networks import const, convolution, depthwise, encoder, int8_weights, model, parameter, quantized, residual

ONE, NONE = ([1, 1], [1, 1], [1, 1], [1, 1]), ([1, 1], [0, 0], [0, 0], [1, 1])


def image(shape=(1, 16, 12, 12)) -> Node:
    return parameter(shape)


def values(shape, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Node:
    return const(np.random.default_rng(seed).uniform(low, high, shape))


def stored(shape, precision: str, zero_point) -> Node:
    """Integer weights less a zero point, times a per-channel scale."""
    generator = np.random.default_rng(1)
    integers = const(generator.integers(*((0, 256) if precision == "u8" else (-128, 128)), shape), precision)
    scale = const(generator.uniform(0.002, 0.01, [shape[0], *[1] * (len(shape) - 1)]))
    return opset1.multiply(opset1.subtract(opset1.convert(integers, "f32"), const(zero_point)), scale)


def _on_image(build: Callable[[Node], Node], shape=(1, 16, 12, 12)) -> Callable[[], Model]:
    def network() -> Model:
        x = image(shape)
        return model(build(x), x)

    return network


def _ending(layer: Node, low: float = -6.0, high: float = 6.0) -> Node:
    """A layer after the next quantization."""
    return convolution(quantized(layer, low, high), 8, 1, seed=9)


def two_layers(x: Node) -> Node:
    return _ending(opset1.relu(convolution(quantized(x, -2, 2.1), 16, bias=True)), 0, 6)


def linear(x: Node, outputs: int, seed: int = 0) -> Node:
    return opset1.matmul(x, int8_weights([outputs, x.get_output_shape(0)[-1]], seed=seed), False, True)


def mlp() -> Model:
    """Sums of 4 x 512 numbers between ±127 x ±63 pass what a half holds."""
    x = parameter([4, 8, 512])
    hidden = opset1.add(linear(quantized(x, -1.28, 1.27), 64), values((64,)))
    return model(linear(quantized(NodeFactory("opset7").create("Gelu", [hidden.output(0)]), -0.2, 8), 16, 1), x)


def four_axes() -> Model:
    """Biases by column, and a tensor that is added, after layers of four axes. Stock reads the first column's for all."""
    x = parameter([2, 7, 9, 32])
    hidden = opset1.relu(opset1.add(linear(quantized(x, -2, 2.1), 48), values((48,))))
    back = opset1.add(linear(quantized(hidden, 0, 3), 32, 1), values((1, 1, 1, 32), 1))
    return model(linear(quantized(opset1.add(back, opset1.tanh(x)), -4, 4), 16, 2), x)


def attention() -> Model:
    x = parameter([2, 8, 32])
    low = quantized(x, -2, 2.2)

    def heads(seed: int) -> Node:
        split = opset1.reshape(linear(low, 32, seed), const([2, 8, 4, 8], "i64"), False)
        return quantized(opset1.transpose(split, const([0, 2, 1, 3], "i64")), -1.5, 1.6)

    scores = opset1.multiply(opset1.matmul(heads(0), heads(1), False, True), const(0.35))
    mixed = opset1.matmul(quantized(opset1.softmax(scores, 3), 0, 1), heads(2), False, False)
    joined = opset1.reshape(opset1.transpose(mixed, const([0, 2, 1, 3], "i64")), const([2, 8, 32], "i64"), False)
    return model(linear(quantized(joined, -1, 1.1), 16, 3), x)


def masks_rows() -> Model:
    """Quantized by rows, one of them in an interval that becomes one around 1 with the mask's own numbers: f16 has no such."""
    x, ends = parameter([2, 24, 4]), np.full((1, 24, 1), 102.0)
    ends[0, 7] = 0.01
    mask = opset1.convert(opset1.greater(x, const(0.0)), "f32")
    hidden = opset1.multiply(opset1.subtract(const(1.0), mask), const(-100.0))
    return model(opset1.fake_quantize(hidden, const(-ends), const(ends), const(-ends), const(ends), 255), x)


def with_branches() -> Model:
    """Layers in both bodies of an If, before one of floats."""
    x, bodies = parameter([2, 6, 4, 4]), []
    for seed in range(2):
        inner = parameter([2, 6, 4, 4], name=f"inner{seed}")
        bodies.append(Model([opset1.result(convolution(quantized(inner, -1, 3), 6, 1, seed))], [inner], "branch"))
    first = opset1.parameter([], np.bool_)
    node = opset8.if_op(first)
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(x.output(0), *(body.get_parameters()[0] for body in bodies))
    chosen = node.set_output(*(body.get_results()[0] for body in bodies))
    return model(opset1.convolution(chosen, values((6, 6, 1, 3), 5), [1, 1], [0, 0], [0, 0], [1, 1]), [x, first])


def masks_nothing() -> Model:
    """An attention with a mask of zeros, and nothing quantized after its Softmax."""
    x, order = parameter([2, 8, 32]), const([0, 2, 1, 3], "i64")
    low = quantized(x, -1.28, 1.27)
    query, key, value = (
        opset1.transpose(opset1.reshape(linear(low, 32, seed), const([2, 8, 4, 8], "i64"), False), order)
        for seed in range(3)
    )
    inputs = [quantized(query, -1.28, 1.27), quantized(key, -1.28, 1.27), value, const(np.zeros((1, 4, 8, 8)))]
    whole = NodeFactory("opset13").create(
        "ScaledDotProductAttention", [each.output(0) for each in inputs], {"causal": False}
    )
    return model(whole, x)


def whole_attention() -> Model:
    """Of heads of 64, which the plugin runs as one layer in f16, between layers in int8."""
    x, order = parameter([1, 10, 64]), const([0, 2, 1, 3], "i64")
    low = quantized(x, -2.56, 2.54)
    query, key, value = (
        opset1.transpose(opset1.reshape(linear(low, 128, seed), const([1, 10, 2, 64], "i64"), False), order)
        for seed in range(3)
    )
    inputs = [quantized(query, -2.56, 2.54), quantized(key, -2.56, 2.54), value]
    whole = NodeFactory("opset13").create(
        "ScaledDotProductAttention", [each.output(0) for each in inputs], {"causal": False}
    )
    joined = opset1.reshape(opset1.transpose(whole, order), const([1, 10, 128], "i64"), False)
    return model(linear(quantized(joined, -1, 1.1), 16, 3), x)


def causal_attention() -> Model:
    """Of a number of positions that is open, where each sees itself and those before it."""
    x, order = parameter([1, -1, 32]), const([0, 2, 1, 3], "i64")
    low = quantized(x, -2.56, 2.54)
    query, key, value = (
        opset1.transpose(
            opset1.reshape(
                opset1.matmul(low, int8_weights([32, 32], seed=seed), False, True), const([0, 0, 2, 16], "i64"), True
            ),
            order,
        )
        for seed in range(3)
    )
    inputs = [quantized(query, -2.56, 2.54), quantized(key, -2.56, 2.54), value]
    whole = NodeFactory("opset13").create(
        "ScaledDotProductAttention", [each.output(0) for each in inputs], {"causal": True}
    )
    return model(whole, x)


def recurrent(kind: str, gates: int, direction: str) -> Callable[[], Model]:
    """A sequence of hidden size 8 between two layers; ``gates``: how many a cell has."""
    directions = 2 if direction == "bidirectional" else 1

    def network() -> Model:
        x = parameter([2, 6, 16])
        states = [const(np.zeros((2, directions, 8)))] * (2 if kind == "LSTM" else 1)
        shapes = ((directions, 8 * gates, 16), (directions, 8 * gates, 8), (directions, 8 * gates))
        weights = [values(shape, seed, -0.3, 0.3) for seed, shape in enumerate(shapes)]
        activations = ["sigmoid", "tanh", "tanh"] if kind == "LSTM" else ["sigmoid", "tanh"]
        attributes = {"direction": direction, "hidden_size": 8, "activations": activations, "clip": 0.0}
        inputs = [quantized(linear(quantized(x, -2, 2), 16), -3, 3), *states, const([6, 6], "i64"), *weights]
        sequence = NodeFactory("opset5").create(f"{kind}Sequence", [each.output(0) for each in inputs], attributes)
        by_step = opset1.transpose(sequence.output(0), const([0, 2, 1, 3], "i64"))
        last = opset1.reshape(by_step, const([2, 6, 8 * directions], "i64"), False)
        return model(linear(quantized(last, -1, 1), 8), x)

    return network


def recurrent_cells() -> Model:
    """A GPU has no kernel of them; some of their products run in int8."""
    x = parameter([2, 16])
    low, state = quantized(x, -2, 2), quantized(linear(quantized(x, -2, 2), 8), -3, 3)
    cells = []
    for kind, gates, linear_first in (("RNNCell", 1, None), ("GRUCell", 3, False), ("GRUCell", 3, True)):
        bias = values((8 * (gates + bool(linear_first)),), 2)
        inputs = [low, state, int8_weights([8 * gates, 16]), int8_weights([8 * gates, 8], seed=1), bias]
        attributes = {"hidden_size": 8, "activations": ["sigmoid", "tanh"] if gates == 3 else ["tanh"]}
        attributes |= {} if linear_first is None else {"linear_before_reset": linear_first}
        cells.append(NodeFactory("opset3").create(kind, [each.output(0) for each in inputs], attributes))
    return model(cells, x)


def open_sizes() -> Model:
    x = parameter([-1, 16, -1, -1])
    first = opset1.relu(opset1.convolution(quantized(x, -2, 2.1), int8_weights([16, 16, 3, 3]), *ONE))
    return model(opset1.convolution(quantized(first, 0, 6), int8_weights([8, 16, 1, 1]), *NONE), x)


def open_rows() -> Model:
    x = parameter([-1, 64])
    first = opset1.relu(opset1.matmul(quantized(x, -2, 2), int8_weights([32, 64]), False, True))
    return model(opset1.matmul(quantized(first, 0, 5), int8_weights([8, 32]), False, True), x)


def subtracted_from() -> Model:
    """A constant less a product of quantized tensors, beside a quantization."""
    x = parameter([1, 4, 8, 12])
    low = quantized(x, -1.28, 1.27)
    layer = linear(low, 12)
    rest = opset1.subtract(values((12,), 3), opset1.multiply(quantized(layer, -1.92, 1.905), layer))
    return model(opset1.maximum(rest, low), x)


def subtracted_twice(x: Node) -> Node:
    """A constant less quantized data, which are added once more."""
    low = quantized(x, -1.28, 1.27)
    both = opset1.add(opset1.subtract(values((1, 16, 1, 1), 3), opset1.multiply(low, values((1, 16, 1, 1), 4))), low)
    return quantized(opset1.add(opset1.subtract(const(0.3), low), both), -2.56, 2.54)


def scaled_product() -> Model:
    """Of tensors that are not in int8, since one is quantized by channel."""
    x, y = parameter([1, 4, 8, 16]), parameter([1, 4, 16, 8], name="y")
    ends = np.linspace(1, 2, 4).reshape(1, 4, 1, 1).astype(np.float32)
    by_channel = opset1.fake_quantize(x, const(-ends), const(ends), const(-ends), const(ends), 256)
    product = opset1.matmul(by_channel, quantized(y, -1.5, 1.6), False, False)
    return model(opset1.tanh(opset1.multiply(product, values((1, 4, 1, 1), 2))), [x, y])


def windows() -> Model:
    """An attention whose products stay in floats, of layers in int8, and a constant that is added to what is scaled."""
    x = parameter([4, 16, 16])
    low = quantized(x, -2, 2.1)
    query, key, value = (quantized(linear(low, 16, seed), -1.5, 1.6) for seed in range(3))
    scores = opset1.multiply(opset1.matmul(query, key, False, True), const(0.25))
    weights = quantized(opset1.softmax(opset1.add(scores, values((1, 16, 16), 9)), 2), 0, 1)
    return model(linear(quantized(opset1.matmul(weights, value, False, False), -1, 1), 16, 5), x)


def two_tensors() -> Model:
    x, y = parameter([1, 4, 8, 16]), parameter([1, 4, 16, 8], name="y")
    return model(opset1.softmax(opset1.matmul(quantized(x, -2, 2.1), quantized(y, -1.5, 1.6), False, False), 3), [x, y])


def padded_layer(x: Node) -> Node:
    """Its sums are padded with zeros before they are scaled."""
    ends = [const([0, 0, each, each], "i64") for each in range(2)]
    return opset1.tanh(opset1.pad(convolution(quantized(x, -2, 2.1), 16), *ends, "constant", const(0)))


def padded_sum() -> Model:
    """Integers and floats are added, and the sum is padded."""
    x, y = parameter([2, 5, 8]), parameter([2, 5, 8], name="y")
    total = opset1.add(quantized(opset1.softmax(x, 2), 0, 0.8), opset1.tanh(y))
    last = opset1.pad(total, const([0, 0, 0], "i64"), const([0, 0, 1], "i64"), "constant", const(0.5))
    return model(last, [x, y])


def second_factor() -> Model:
    """Floats, times what is quantized."""
    x, y = parameter([3, 8]), parameter([8, 5], name="y")
    return model(opset1.matmul(x, quantized(y, 0, 2.55), False, False), [x, y])


def heads(quantizes: bool, layer_is_int8: bool) -> Model:
    """An open batch, and after a MatMul of four axes an interval, or a scale and a shift, by heads."""
    x, sizes = parameter([-1, 6, 9, 32]), np.linspace(1, 2, 6).reshape(1, 6, 1, 1)
    weights = int8_weights([8, 32]) if layer_is_int8 else values((8, 32))
    layer, ends = opset1.matmul(quantized(x, -2, 2.1), weights, False, True), (const(-sizes), const(sizes))
    if quantizes:
        low = opset1.fake_quantize(layer, *ends, *ends, 255)
    else:
        low = quantized(opset1.relu(opset1.add(opset1.multiply(layer, ends[1]), ends[1])), 0, 9)
    return model(opset1.matmul(low, int8_weights([4, 8], seed=1), False, True), x)


def vector() -> Model:
    """Its quantization after the layer differs by element."""
    x = parameter([16])
    return model(quantized(opset1.matmul(quantized(x, -1.5, 1.6), int8_weights([8, 16]), False, True), -0.3, 0.3), x)


def vector_and_bias() -> Model:
    """Its bias, which differs by element, comes between the layer of one scale, another output, and the quantization."""
    x = parameter([16])
    weights = quantized(values([8, 16]), -1, 1, 255)
    product = opset1.matmul(quantized(x, -1.5, 1.5, 255), weights, False, True)
    return model([quantized(opset1.add(product, values([8], 1)), -0.9, 1), product], x)


def float_branch() -> Model:
    """Floats are added in the scale of integers."""
    x, y = image(), parameter([1, 16, 12, 12], name="y")
    both = opset1.add(quantized(depthwise(quantized(x, -2, 2.1)), -3, 3), opset1.sigmoid(y))
    return model(opset1.tanh(both), [x, y])


def looped() -> Model:
    """Two rounds whose body quantizes what it is given: in the first round numbers that were integers."""
    x, inner = parameter([1, 2, 3, 12]), parameter([1, 2, 3, 12], name="inner")
    low = quantized(x, -1, 3)
    again, end = opset1.constant(np.array(True)), opset1.tanh(linear(quantized(inner, -1, 3), 12))
    rounds = opset8.loop(opset1.constant(np.array(2)), opset1.constant(np.array(True)))
    rounds.set_function(Model([opset1.result(again), opset1.result(end)], [inner], "body"))
    rounds.set_special_body_ports([-1, 0])
    rounds.set_merged_input(inner, low.output(0), end.output(0))
    rounds.get_iter_value(end.output(0), -1)
    return model([opset1.relu(rounds.output(0)), convolution(low, 4, 1)], x)


def strided_row() -> Model:
    """A zero point, a stride, and one axis of dynamic size."""
    x = parameter([-1, 18, 12])
    return model(opset1.convolution(quantized(x, -0.7, 1.85), int8_weights([4, 18, 1]), [2], [0], [0], [1]), x)


def padded_after(x: Node) -> Node:
    """As for a stride of 2 over an even size; what is padded has a zero point, which stock takes for 0."""
    ends, pairs = [[0, 0], [1, 1]], int8_weights([16, 2, 3, 3])
    first = opset1.relu(
        opset1.convolution(quantized(x, -0.7, 1.85), int8_weights([16, 16, 3, 3]), [2, 2], *ends, [1, 1])
    )
    groups = opset1.reshape(pairs, const([8, 2, 2, 3, 3], "i64"), False)
    return opset1.group_convolution(quantized(first, -0.4, 2.15), groups, [1, 1], *ends, [1, 1])


def padded_before(x: Node) -> Node:
    """Data with a zero point, which a kernel of layers of one channel each reads before their start, too."""
    weights = opset1.reshape(int8_weights([12, 1, 3, 3]), const([12, 1, 1, 3, 3], "i64"), False)
    layer = opset1.add(opset1.group_convolution(quantized(x, -0.7, 1.85), weights, *ONE), values((1, 12, 1, 1)))
    return convolution(quantized(opset1.relu(layer), -0.4, 2.15), 8, 1)


def row_of_known_size() -> Model:
    """A zero point, a stride, and one axis whose size is known, in a network that has an open one."""
    x = parameter([2, 6, -1])
    low = quantized(opset1.multiply(x, values((1, 1, 6))), -0.7, 1.85)
    return model([opset1.convolution(low, int8_weights([4, 6, 1]), [2], [0], [0], [1]), opset1.relu(x)], x)


def row_of_groups() -> Model:
    """Groups of several channels over one axis; with dynamic sizes stock reads their weights wrongly, in float too."""
    x = parameter([-1, 6, 12])
    groups = opset1.reshape(int8_weights([12, 2, 3]), const([3, 4, 2, 3], "i64"), False)
    return model(opset1.group_convolution(quantized(x, -2, 2.1), groups, [1], [1], [1], [1]), x)


def row_of_open_groups() -> Model:
    """The same, where the groups alone tell the number of channels."""
    x = parameter([-1, 4, -1, -1])
    row = opset1.reduce_max(x, const([1], "i64"), False)
    groups = opset1.reshape(int8_weights([12, 2, 3]), const([3, 4, 2, 3], "i64"), False)
    return model(opset1.group_convolution(quantized(row, -2, 2.1), groups, [1], [1], [1], [1]), x)


def weights_by_column(x: Node) -> Node:
    """Of groups: an interval for each column of each channel, as NNCF takes where a Reshape makes the weights."""
    taken = np.random.default_rng(1).uniform(0.5, 1.5, (16, 1, 1, 1, 3)).astype(np.float32)
    ends = const(-taken), const(taken)
    groups = opset1.fake_quantize(values((16, 1, 1, 3, 3)), *ends, *ends, 255)
    return _ending(opset1.group_convolution(quantized(x, -2, 2.1), groups, *ONE))


def along_an_axis(shape: list[int], *axes: int) -> Callable[[], Model]:
    """Five axes, and an interval that differs along these, which is not the channels' alone."""

    def network() -> Model:
        x = parameter(shape)
        sizes = [(1, 4, 3, 4, 4)[axis] if axis in axes else 1 for axis in range(5)]
        ends = np.random.default_rng(1).uniform(0.3, 0.9, sizes)
        low = opset1.fake_quantize(opset1.tanh(x), const(-ends), const(ends), const(-ends), const(ends), 255)
        return model(opset1.multiply(low, const(1.5)), x)

    return network


def open_row_shifted() -> Model:
    """A row whose size a constant tells. The plugin throws without its own LPT, in float too."""
    x = parameter([1, 6, -1])
    row = opset1.reshape(x, const([1, -1], "i64"), False)
    return model(opset1.add(quantized(row, -2, 2.1), values((1, 36))), x)


def plus_float_layer(kind: str) -> Callable[[Node], Node]:
    """A layer of floats plus quantized data, in the scale of its integers."""

    def build(x: Node) -> Node:
        low, weights = quantized(x, -2.36, 2.34), values((16, 16, 3, 3), 2, -0.2, 0.2)
        if kind == "grouped":
            layer = opset1.group_convolution(low, values((4, 4, 4, 3, 3), 2, -0.2, 0.2), *ONE)
        elif kind == "transposed":
            layer = opset1.convolution_backprop_data(low, weights, [1, 1], pads_begin=[1, 1], pads_end=[1, 1])
        else:
            layer = opset1.convolution(low, weights, *ONE)
        return opset1.add(layer, low)

    return build


def two_scales() -> Model:
    """Equal scales of one layer: one stays in f32, for an output, and one leaves for a float layer in f16."""
    x = parameter([1, 16, 3, 3])
    sums = opset1.matmul(quantized(x, -2.56, 2.54), int8_weights([8, 3]), False, True)
    layer = opset1.convolution(sums, values((16, 16, 1, 1), 2, -0.2, 0.2), [1, 1], [0, 0], [0, 0], [1, 1])
    return model([opset1.add(sums, values((1, 16, 1, 1))), opset1.add(layer, values((1, 16, 1, 1), 1))], x)


def pooled_before_float(x: Node) -> Node:
    """Pooled data with a zero point beyond its integers, which leaves the layer in float."""
    return convolution(opset1.max_pool(quantized(x, -2.2, -0.1), [2, 2], [1, 1], [1, 1], [3, 3]), 16)


def depthwise_between(x: Node) -> Node:
    wide = quantized(convolution(quantized(x, -2, 2.1), 32, 1), -3, 3.2)
    return _ending(opset1.relu(depthwise(wide)), 0, 3)


def grouped(x: Node) -> Node:
    weights = int8_weights([64, 4, 3, 3])
    groups = opset1.reshape(weights, const([4, 16, 4, 3, 3], "i64"), False)
    return opset1.group_convolution(quantized(x, -2, 2.1), groups, *ONE)


def deconvolution(x: Node) -> Node:
    weights = int8_weights([16, 16, 2, 2], axis=1)
    return _ending(opset1.convolution_backprop_data(quantized(x, 0, 2.55), weights, [2, 2]))


def grouped_deconvolution(x: Node) -> Node:
    weights = int8_weights([2, 16, 16, 2, 2], axis=2)
    return opset1.group_convolution_backprop_data(quantized(x, 0, 2.55), weights, [2, 2])


def joined(x: Node) -> Node:
    low = quantized(x, 0, 3)
    first = quantized(opset1.relu(convolution(low, 16)), 0, 2)
    second = quantized(convolution(low, 16, 1, seed=1), -3, 3.5)
    return convolution(opset1.concat([first, second, low], 1), 8, seed=2)


def pooled(x: Node) -> Node:
    first = quantized(convolution(quantized(x, -1, 3), 16), -4, 4)
    small = convolution(opset1.max_pool(first, [2, 2], [0, 0], [0, 0], [2, 2]), 16, seed=1)
    mean = opset1.avg_pool(quantized(opset1.relu(small), 0, 6), [2, 2], [0, 0], [0, 0], [2, 2], False)
    return convolution(mean, 8, 1, seed=2)


def pooled_sums(x: Node) -> Node:
    """The scale follows a mean and a Reshape."""
    mean = opset1.avg_pool(convolution(quantized(x, 0, 2.55), 16), [2, 2], [0, 0], [0, 0], [2, 2], False)
    return opset1.softmax(opset1.reshape(mean, const([1, -1], "i64"), False), 1)


def of_halves() -> Model:
    """Half precision quantized by ends, one pair per column, that a half rounds."""
    x, shape = parameter([4, 64]), (1, 64)
    low, high = values(shape, 3, -1.7, -1.1), values(shape, 4, 1.1, 1.7)
    halves = opset1.tanh(opset1.multiply(x, const(3.0)))
    return model(linear(opset1.fake_quantize(halves, low, high, const(-2.56), const(2.54), 256), 16), x)


def reduced(x: Node) -> Node:
    low = quantized(opset1.relu(convolution(quantized(x, -1, 3), 16)), 0, 3)
    return _ending(opset1.reduce_mean(low, const([2, 3], "i64"), True), 0, 2)


def summed(x: Node) -> Node:
    """A sum of 144 integers passes what a half holds exactly."""
    low = quantized(opset1.relu(convolution(quantized(x, -1, 3), 16)), 0, 3)
    return opset1.sigmoid(opset1.multiply(opset1.reduce_sum(low, const([2, 3], "i64"), True), const(0.01)))


def squeezed(x: Node) -> Node:
    """Squeeze and excitation: a mean before a float layer."""
    low = quantized(opset1.relu(x), 0, 2.55)
    mean = opset1.reduce_mean(low, const([2, 3], "i64"), True)
    gate = opset1.sigmoid(opset1.convolution(mean, values((16, 16, 1, 1)), *NONE))
    return convolution(quantized(opset1.multiply(low, quantized(gate, 0, 1)), 0, 2.55), 16)


def before_float_layer(x: Node) -> Node:
    return opset1.convolution(convolution(quantized(x, 0, 2.55), 16), values((4, 16, 1, 1)), *NONE)


def shuffled(x: Node) -> Node:
    low = quantized(opset1.relu(convolution(quantized(x, 0, 3), 32, 1)), 0, 4)
    halves = NodeFactory("opset1").create("ShuffleChannels", [low.output(0)], {"axis": 1, "group": 2})
    first, second = opset1.split(halves, const(1, "i64"), 2).outputs()
    changed = quantized(opset1.relu(opset1.convolution(first, int8_weights([16, 16, 3, 3]), *ONE)), 0, 4)
    return convolution(opset1.concat([changed.output(0), second], 1), 8, 1)


def enlarged(x: Node) -> Node:
    attributes = {"axes": [2, 3], "mode": "nearest", "align_corners": False, "antialias": False}
    low = quantized(convolution(quantized(x, -1, 3), 16, 1), -3, 3)
    return convolution(opset1.interpolate(low, const([24, 24], "i64"), attributes), 8)


def activated(*names: str) -> Callable[[Node], Node]:
    """Activations after one layer each."""

    def build(x: Node) -> Node:
        low = quantized(x, -1, 3)
        ends = []
        for seed, name in enumerate(names):
            layer = convolution(low, 8, 1, seed=seed, bias=True)
            inputs = [layer.output(0)] + ([values((8,)).output(0)] if name == "PRelu" else [])
            opset = {"HSwish": "opset4", "Swish": "opset4", "Mish": "opset4", "Gelu": "opset7", "SoftPlus": "opset4"}
            attributes = {"Elu": {"alpha": 1.0}, "Clamp": {"min": 0.0, "max": 6.0}}.get(name, {})
            function = NodeFactory(opset.get(name, "opset1")).create(name, inputs, attributes)
            ends.append(quantized(function, -3, 4))
        return convolution(opset1.concat(ends, 1), 8, seed=7)

    return build


def slopes_of_open_sizes() -> Model:
    """A slope for each channel of an image, and for each number of a row, whose batch is open; not only after layers."""
    x, ends = parameter([-1, 8, 5, 5]), []
    low = quantized(x, -2, 2.1)
    for data in (x, convolution(low, 8, bias=True)):
        ends.append(quantized(NodeFactory("opset1").create("PRelu", [data.output(0), values((8,)).output(0)]), -3, 4))
    mean, slopes = opset1.reduce_mean(ends[1], const([2, 3], "i64"), False), values((16,), 2)
    rows = opset1.matmul(quantized(mean, -1, 2), int8_weights([16, 8], seed=1), False, True)
    ends = [opset1.reduce_max(each, const([2, 3], "i64"), False) for each in ends]
    return model([*ends, NodeFactory("opset1").create("PRelu", [rows.output(0), slopes.output(0)])], x)


def normalized(x: Node) -> Node:
    low = quantized(x, -1, 3)
    return _ending(opset6.mvn(low, const([2, 3], "i64"), True, 1e-5, "inside_sqrt"), -3, 3)


def by_channel(x: Node) -> Node:
    ends = np.linspace(1, 2, 16).reshape(1, 16, 1, 1)
    low = opset1.fake_quantize(x, const(-ends), const(ends * 1.1), const(-ends), const(ends * 1.1), 256)
    return _ending(depthwise(low))


def scaled_and_shifted(x: Node) -> Node:
    low = quantized(x, -1, 3)
    return _ending(opset1.add(opset1.multiply(low, values((1, 16, 1, 1))), values((1, 16, 1, 1), 1)), -4, 4)


def two_residuals(x: Node) -> Node:
    """A quantized and a float connection around layers."""
    low = quantized(x, -2, 2.1)
    first = opset1.add(convolution(low, 16, bias=True), x)
    second = opset1.add(quantized(convolution(quantized(first, -5, 5), 16, seed=1), -4, 4), quantized(first, -5, 5))
    return _ending(opset1.relu(second), 0, 8)


def subtracted(x: Node) -> Node:
    low = quantized(x, -2, 2.1)
    first = quantized(convolution(low, 16), -3, 3.1)
    return opset1.sigmoid(opset1.subtract(first, quantized(convolution(low, 16, seed=1), -2.5, 2.6)))


def multiplied(x: Node) -> Node:
    low = quantized(x, -2, 2.1)
    gate = quantized(opset1.sigmoid(convolution(low, 16)), 0, 1)
    return _ending(opset1.multiply(quantized(convolution(low, 16, seed=1), -3, 3.1), gate), -3, 3)


def padded(x: Node) -> Node:
    low = quantized(x, 0, 2.55)
    pads = const([0, 0, 1, 1], "i64")
    return opset1.convolution(opset1.pad(low, pads, pads, "constant", const(0.0)), int8_weights([8, 16, 3, 3]), *NONE)


def negative_scales(x: Node) -> Node:
    layer = opset1.relu(convolution(quantized(x, 0, 2.55), 16, bias=True))
    return _ending(opset1.multiply(layer, values((1, 16, 1, 1))))


def tiny_scales(x: Node) -> Node:
    """Scales below 6e-5, which a half rounds."""
    stored = opset1.convert(const(np.random.default_rng(3).integers(-63, 64, (16, 16, 3, 3)), "i8"), "f32")
    weights = opset1.multiply(stored, const(np.full((16, 1, 1, 1), 2e-5)))
    return opset1.multiply(opset1.convolution(quantized(x, 0, 2.55), weights, *ONE), const(100.0))


def of_one_step(levels: int, low: float, high: float) -> Callable[[Node], Node]:
    return lambda x: _ending(opset1.relu(convolution(quantized(x, low, high, levels), 16, bias=True)), 0, 6)


def wide_residual(x: Node) -> Node:
    """Between layers it is quantized to 16 bits, which the plugin drops."""
    sums = opset1.add(convolution(quantized(x, -1.28, 1.27), 16), x)
    wide = quantized(sums, -64, 64, 65536)
    return opset1.add(convolution(wide, 16, seed=1), wide)


def weights_zero_point(shape, precision: str, zero_point, low: float = 0.0) -> Callable[[Node], Node]:
    def build(x: Node) -> Node:
        data = quantized(x, low, low + 2.55)
        layer = opset1.group_convolution if len(shape) == 5 else opset1.convolution
        return layer(data, stored(shape, precision, zero_point), *(ONE if shape[-1] == 3 else NONE))

    return build


SMALL = (1, 16, 6, 6)
NETWORKS: dict[str, Callable[[], Model]] = {
    "attention": attention,
    "before_float_layer": _on_image(before_float_layer),
    "bounded": _on_image(activated("Clamp", "Relu", "HSwish")),
    "by_channel": _on_image(by_channel),
    "concatenation": _on_image(joined),
    "curved": _on_image(activated("Sigmoid", "Tanh", "Elu", "Gelu", "Swish", "PRelu"), SMALL),
    "deconvolution": _on_image(deconvolution, SMALL),
    "depthwise": _on_image(depthwise_between),
    "encoder": encoder,
    "enlarged": _on_image(enlarged, SMALL),
    "float_branch": float_branch,
    "four_axes": four_axes,
    "grouped": _on_image(grouped),
    "grouped_deconvolution": _on_image(grouped_deconvolution, (1, 32, 6, 6)),
    "levels_16": _on_image(of_one_step(16, 0, 3)),
    "levels_255": _on_image(of_one_step(255, -2, 2)),
    "looped": looped,
    "masks_nothing": masks_nothing,
    "masks_rows": masks_rows,
    "whole_attention": whole_attention,
    "causal_attention": causal_attention,
    "mlp": mlp,
    "multiplied": _on_image(multiplied),
    "negative_scales": _on_image(negative_scales),
    "normalized": _on_image(normalized, SMALL),
    "of_halves": of_halves,
    "open_rows": open_rows,
    "open_sizes": open_sizes,
    "padded": _on_image(padded),
    "padded_after": _on_image(padded_after),
    "padded_before": _on_image(padded_before, (1, 12, 5, 5)),
    "padded_layer": _on_image(padded_layer),
    "padded_sum": padded_sum,
    "pooled": _on_image(pooled),
    "pooled_sums": _on_image(pooled_sums),
    "recurrent": recurrent("LSTM", 4, "forward"),
    "recurrent_both_ways": recurrent("LSTM", 4, "bidirectional"),
    "recurrent_cells": recurrent_cells,
    "recurrent_gru": recurrent("GRU", 3, "forward"),
    "reduced": _on_image(reduced),
    "residual": residual,
    "row_of_groups": row_of_groups,
    "two_scales": two_scales,
    "plus_float_convolution": _on_image(plus_float_layer("")),
    "plus_float_groups": _on_image(plus_float_layer("grouped")),
    "plus_float_deconvolution": _on_image(plus_float_layer("transposed")),
    "pooled_before_float": _on_image(pooled_before_float),
    "row_of_open_groups": row_of_open_groups,
    "slopes_of_open_sizes": slopes_of_open_sizes,
    "slices_by_depth": along_an_axis([1, 4, 3, 4, 4], 2),
    "slices_by_channel_and_row": along_an_axis([-1, 4, 3, 4, -1], 1, 3),
    "slices_by_open_row": along_an_axis([1, 4, -1, 4, 4], 3),
    "open_row_shifted": open_row_shifted,
    "row_of_known_size": row_of_known_size,
    "scaled_and_shifted": _on_image(scaled_and_shifted),
    "scaled_product": scaled_product,
    "second_factor": second_factor,
    "shuffled": _on_image(shuffled),
    "squeezed": _on_image(squeezed),
    "strided_row": strided_row,
    "subtracted": _on_image(subtracted),
    "subtracted_from": subtracted_from,
    "subtracted_twice": _on_image(subtracted_twice),
    "summed": _on_image(summed),
    "tiny_scales": _on_image(tiny_scales),
    "two_layers": _on_image(two_layers),
    "two_residuals": _on_image(two_residuals),
    "two_tensors": two_tensors,
    "vector": vector,
    "vector_and_bias": vector_and_bias,
    "weights_by_column": _on_image(weights_by_column),
    "weights_i8_zero_point": _on_image(weights_zero_point([8, 16, 3, 3], "i8", -37)),
    "weights_u8_around_128": _on_image(weights_zero_point([8, 16, 3, 3], "u8", 128)),
    "weights_zero_point_by_channel": _on_image(
        weights_zero_point([8, 16, 1, 1], "u8", np.arange(90, 98).reshape(8, 1, 1, 1), -1.0)
    ),
    "windows": windows,
    "with_branches": with_branches,
    "weights_zero_point_depthwise": _on_image(weights_zero_point([16, 1, 1, 3, 3], "u8", 91)),
    "wide_residual": _on_image(wide_residual),
}
