"""Small quantized graphs that tests are built from."""

from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Model, Node, Type, opset1
from ovlpt.precisions import NUMPY

RNG = np.random.default_rng(7)


def parameter(shape, precision: str = "f32", name: str = "x") -> Node:
    node = opset1.parameter(list(shape), getattr(Type, precision), name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def const(values, precision: str = "f32") -> Node:
    return opset1.constant(np.asarray(values, NUMPY[precision]))


def quantized(data, low: float, high: float, levels: int = 256, name: str | None = None) -> Node:
    """FakeQuantize per tensor with equal input and output interval."""
    ends = [const(low), const(high), const(low), const(high)]
    node = opset1.fake_quantize(data, *ends, levels)
    if name:
        node.set_friendly_name(name)
    return node


def int8_weights(shape, axis: int = 0, seed: int = 0) -> Node:
    """i8 Constant → Convert → Multiply by a scale per output channel, as NNCF stores weights.

    Within ±63, so that no CPU saturates the sum of two products.
    """
    generator = np.random.default_rng(seed)
    scale_shape = [size if index == axis else 1 for index, size in enumerate(shape)]
    scale = const(generator.uniform(0.002, 0.01, scale_shape))
    stored = const(generator.integers(-63, 64, shape), "i8")
    return opset1.multiply(opset1.convert(stored, "f32"), scale)


def convolution(
    data, outputs: int, kernel: int = 3, seed: int = 0, name: str | None = None, bias: bool = False
) -> Node:
    channels = data.get_output_partial_shape(0)[1].get_length()
    weights = int8_weights([outputs, channels, kernel, kernel], seed=seed)
    pads = [kernel // 2] * 2
    node = opset1.convolution(data, weights, [1, 1], pads, pads, [1, 1])
    if name:
        node.set_friendly_name(name)
    if bias:
        node = opset1.add(node, const(np.random.default_rng(seed).standard_normal((1, outputs, 1, 1))))
    return node


def depthwise(data, kernel: int = 3, seed: int = 0) -> Node:
    channels = data.get_output_partial_shape(0)[1].get_length()
    weights = int8_weights([channels, 1, 1, kernel, kernel], seed=seed)
    pads = [kernel // 2] * 2
    return opset1.group_convolution(data, weights, [1, 1], pads, pads, [1, 1])


def model(results, parameters) -> Model:
    results = results if isinstance(results, list) else [results]
    for index, result in enumerate(results):
        result.output(0).get_tensor().set_names({f"y{index}"})
    return Model(
        [opset1.result(result) for result in results],
        parameters if isinstance(parameters, list) else [parameters],
        "net",
    )


def one_convolution(low: float = 0.0, high: float = 2.55, levels: int = 256) -> Model:
    x = parameter([1, 16, 8, 8])
    return model(convolution(quantized(x, low, high, levels, "quantize"), 32, name="conv"), x)


def residual() -> Model:
    """Two convolutions, an Add of both branches, ReLU, and a convolution after."""
    x = parameter([1, 16, 8, 8])
    first = quantized(opset1.relu(convolution(quantized(x, 0, 2.55), 16, seed=1, bias=True)), 0, 6)
    second = quantized(convolution(first, 16, seed=2, bias=True), -4, 4)
    joined = quantized(opset1.relu(opset1.add(second, first)), 0, 8)
    return model(convolution(joined, 8, seed=3), x)


def shared_zero_point() -> Model:
    """One asymmetric FakeQuantize feeds two convolutions."""
    x = parameter([1, 16, 8, 8])
    shared = quantized(x, -1.0, 1.55)
    return model([convolution(shared, 16, seed=1), convolution(shared, 32, 1, seed=2)], x)


def encoder(zero_point: bool = True) -> Model:
    """MatMul with an asymmetric input, Add, MVN, MatMul."""
    x = parameter([1, 12, 32])
    low = -1.0 if zero_point else -1.28
    a = quantized(x, low, 1.55 if zero_point else 1.27)
    first = opset1.matmul(a, int8_weights([48, 32], seed=1), False, True)
    biased = opset1.add(first, const(np.random.default_rng(1).standard_normal((1, 1, 48))))
    middle = quantized(opset1.relu(biased), 0, 5)
    second = opset1.matmul(middle, int8_weights([32, 48], seed=2), False, True)
    return model(opset1.add(second, x), x)
