"""Small graphs of every structure that the fusions know, with random numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

try:
    from openvino import opset8
except ImportError:  # before 2025
    from openvino.runtime import opset8

from ovlpt.fusions.channelwise import on_axis
from ovlpt.openvino_api import Model, Node, Output, opset1

Array = np.ndarray


def c(values: object) -> Node:
    return opset1.constant(np.asarray(values, np.float32))


def index(values: object) -> Node:
    return opset1.constant(np.asarray(values, np.int64))


def model_of(result: Output | Node, *parameters: Node, sinks: list | None = None) -> Model:
    """A model with one named output."""
    value = result if isinstance(result, Output) else result.output(0)
    value.get_tensor().set_names({"y:0"})
    value.get_node().set_friendly_name("y")
    results = [opset1.result(value)]
    return Model(results, sinks, list(parameters), "network") if sinks else Model(results, list(parameters), "network")


def parameter(shape: list[int], name: str = "x") -> Node:
    node = opset1.parameter(shape, np.float32, name=name)
    return node


def kinds(model: Model) -> Counter[str]:
    hidden = ("Parameter", "Result", "Constant")
    return Counter(node.get_type_name() for node in model.get_ops() if node.get_type_name() not in hidden)


class Numbers:
    """Random tensors of one seed; scales are signed and never near zero."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape: int) -> Array:
        return self.rng.normal(size=shape).astype(np.float32)

    def signed(self, *shape: int) -> Array:
        return (self.rng.uniform(0.5, 2, shape) * self.rng.choice([-1, 1], shape)).astype(np.float32)

    def positive(self, *shape: int) -> Array:
        return self.rng.uniform(0.5, 2, shape).astype(np.float32)

    def one_of(self, *values):
        return values[self.rng.integers(len(values))]

    def batch_norm(self, channels: int) -> dict[str, Array]:
        return {
            "gamma": self.signed(channels),
            "beta": self.normal(channels),
            "mean": self.normal(channels),
            "variance": self.positive(channels),
        }


def to_nhwc(value: Output | Node, rank: int = 4) -> Node:
    return opset1.transpose(value, index([0, *range(2, rank), 1]))


def to_nchw(value: Output | Node, rank: int = 4) -> Node:
    return opset1.transpose(value, index([0, rank - 1, *range(1, rank - 1)]))


def normalized(value: Output | Node, numbers: dict[str, Array], epsilon: float = 1e-3, operations=opset8) -> Node:
    return operations.batch_norm_inference(
        value, *(c(numbers[n]) for n in ("gamma", "beta", "mean", "variance")), epsilon
    )


def convolution(data: Output | Node, weights: Output | Node, dims: int = 2, stride: int = 1, pad: int = 0) -> Node:
    return opset1.convolution(data, weights, [stride] * dims, [pad] * dims, [pad] * dims, [1] * dims)


WEIGHTED = ("conv", "group_conv", "depthwise", "deconv", "group_deconv", "matmul", "matmul_transposed")


def weighted(
    kind: str,
    numbers: Numbers,
    dims: int = 2,
    wrap: Callable[[Array, tuple[int, ...]], Node] = lambda values, axes: c(values),
) -> tuple[Node, Node, int]:
    """(Parameter, operation, output channels) of random sizes; ``wrap`` makes weights of values and axes."""
    group = numbers.one_of(2, 3)
    inputs, outputs = group * numbers.one_of(1, 2, 3), group * numbers.one_of(1, 2, 4)
    kernel = [numbers.one_of(1, 2, 3) for _ in range(dims)]
    strides, pads = (
        [numbers.one_of(1, 2) for _ in range(dims)],
        [[numbers.one_of(0, 1) for _ in range(dims)] for _ in "be"],
    )
    pads = [[min(p, k - 1) for p, k in zip(pad, kernel, strict=True)] for pad in pads]
    dilations = [numbers.one_of(1, 2) for _ in range(dims)]
    x = parameter([2, inputs, *[6] * dims])
    window = (strides, *pads, dilations)
    match kind:
        case "conv":
            return (
                x,
                opset1.convolution(x, wrap(numbers.normal(outputs, inputs, *kernel), (0,)), *window),
                outputs,
            )
        case "group_conv":
            shape = (group, outputs // group, inputs // group, *kernel)
            return x, opset1.group_convolution(x, wrap(numbers.normal(*shape), (0, 1)), *window), outputs
        case "depthwise":
            return (
                x,
                opset1.group_convolution(x, wrap(numbers.normal(inputs, 1, 1, *kernel), (0, 1)), *window),
                inputs,
            )
        case "deconv":
            values = wrap(numbers.normal(inputs, outputs, *kernel), (1,))
            node = opset1.convolution_backprop_data(x, values, strides, None, *pads, dilations)
            return x, node, outputs
        case "group_deconv":
            values = wrap(numbers.normal(group, inputs // group, outputs // group, *kernel), (0, 2))
            return (
                x,
                opset1.group_convolution_backprop_data(x, values, strides, None, *pads, dilations),
                outputs,
            )
        case "matmul":
            x = parameter([5, inputs])
            return x, opset1.matmul(x, wrap(numbers.normal(inputs, outputs), (1,)), False, False), outputs
        case "matmul_transposed":
            x = parameter([5, inputs])
            return x, opset1.matmul(x, wrap(numbers.normal(outputs, inputs), (0,)), False, True), outputs
    raise ValueError(kind)


Source = Callable[[str, Array], Output | Node]


def small_batch_norm(
    value: Output | Node,
    numbers: dict[str, Array],
    axis: int,
    rank: int,
    spelling: str,
    scale: bool,
    offset: bool,
    source: Source = lambda name, values: c(values),
) -> tuple[Node, list[Node]]:
    """(result, inner nodes) of a normalization in small operations; ``source`` makes its parameters."""
    channel_last = axis == rank - 1
    needed = {"mean", "variance"} | ({"gamma"} if scale else set()) | ({"beta"} if offset else set())
    if spelling == "simplified":
        needed &= {"beta"}
    p = {
        name: source(name, values if channel_last else np.ascontiguousarray(on_axis(values, rank, axis)))
        for name, values in numbers.items()
        if name in needed
    }
    if spelling == "simplified":
        k = numbers["gamma"] / np.sqrt(numbers["variance"] + 1e-3)
        y = opset1.multiply(value, source("k", (k if channel_last else on_axis(k, rank, axis)).astype(np.float32)))
        return (opset1.add(y, p["beta"]) if offset else y), []
    shifted = opset1.add(p["variance"], c(1e-3))
    if spelling == "subtract_divide_sqrt":
        centred = opset1.subtract(value, p["mean"])
        y = opset1.divide(centred, opset1.sqrt(shifted))
        inner = [centred]
    elif spelling == "subtract_divide_power":
        centred = opset1.subtract(value, p["mean"])
        y = opset1.divide(centred, opset1.power(shifted, c(0.5)))
        inner = [centred]
    elif spelling == "subtract_multiply":
        centred = opset1.subtract(value, p["mean"])
        y = opset1.multiply(centred, opset1.power(shifted, c(-0.5)))
        inner = [centred]
    else:  # the data is multiplied first, as tf.nn.batch_normalization does
        inverse = (
            opset1.power(shifted, c(-0.5))
            if spelling == "multiply_power"
            else opset1.divide(c(1.0), opset1.sqrt(shifted))
        )
        if scale:
            inverse = opset1.multiply(inverse, p["gamma"])
        product = opset1.multiply(p["mean"], inverse)
        rest = opset1.subtract(p["beta"], product) if offset else opset1.negative(product)
        multiplied = opset1.multiply(value, inverse)
        return opset1.add(multiplied, rest), [multiplied, inverse, product]
    if scale:
        inner.append(y)
        y = opset1.multiply(y, p["gamma"])
    if offset:
        inner.append(y)
        y = opset1.add(y, p["beta"])
    return y, inner


SPELLINGS = (
    "subtract_divide_sqrt",
    "subtract_divide_power",
    "subtract_multiply",
    "multiply_power",
    "multiply_divide_sqrt",
    "simplified",
)
