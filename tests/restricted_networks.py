"""Small networks that restrictions change: each has what one part of markup decides about."""

from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Model, Node, opset1
from tests.graphs import dequantization, f32, fake_quantize, i64, integers, model, opset5, parameter, weights

IMAGE = (1, 4, 6, 6)


def image(low: float = 0.0, high: float = 2.55, levels: int = 256, name: str = "x") -> Node:
    return fake_quantize(parameter(IMAGE, name), low, high, levels, f"fq_{name}")


def convolution(data: Node, inputs: int = 4, outputs: int = 4, zero_point: float | None = None) -> Node:
    kernel = weights([outputs, inputs, 1, 1], np.linspace(0.01, 0.02, outputs).reshape(-1, 1, 1, 1), zero_point)
    return opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1])


def matmul(data: Node, inputs: int = 4, outputs: int = 5) -> Node:
    kernel = weights([outputs, inputs], np.linspace(0.01, 0.02, outputs).reshape(-1, 1))
    return opset1.matmul(data, kernel, False, True)


def one_convolution(low: float = 0.0, high: float = 2.55) -> Model:
    return model(convolution(image(low, high)))


def convolution_with_bias() -> Model:
    return model(opset1.relu(opset1.add(convolution(image()), f32(np.ones((1, 4, 1, 1))))))


def weights_with_zero_point() -> Model:
    return model(convolution(image(), zero_point=3.0))


def fake_quantize_on_weights() -> Model:
    low, high = (np.linspace(end, 2 * end, 4).reshape(-1, 1, 1, 1) for end in (-1.0, 1.0))
    kernel = fake_quantize(f32(np.random.default_rng(0).uniform(-2, 2, (4, 4, 1, 1))), low, high, 255, "fq_w")
    return model(opset1.convolution(image(), kernel, [1, 1], [0, 0], [0, 0], [1, 1]))


def two_convolutions(low: float = -1.28, high: float = 1.27) -> Model:
    shared = image(low, high)
    return model(convolution(shared), convolution(shared, outputs=6))


def convolution_and_matmul() -> Model:
    """Consumers that restrictions ask for different types of."""
    shared = image(-1.28, 1.27)
    return model(convolution(shared), matmul(shared, inputs=6))


def residual() -> Model:
    first = fake_quantize(convolution(image()), -4.0, 4.0, name="fq_first")
    second = fake_quantize(convolution(first), -3.0, 5.0, name="fq_second")
    return model(convolution(fake_quantize(opset1.relu(opset1.add(second, first)), 0.0, 8.0, name="fq_sum")))


def concat(intervals, levels=(256, 256, 256), between=lambda data: data) -> Model:
    branches = [
        between(image(low, high, count, f"x{index}"))
        for index, ((low, high), count) in enumerate(zip(intervals, levels, strict=False))
    ]
    return model(convolution(opset1.concat(branches, 1), 4 * len(branches)))


def concat_of_two_uses() -> Model:
    """One branch of the Concat also feeds a convolution of its own."""
    first, second = image(0.0, 2.55, name="x0"), image(-1.28, 1.27, name="x1")
    return model(convolution(opset1.concat([first, second], 1), 8), convolution(second))


def depthwise() -> Model:
    """A scale per channel is possible here, and only here."""
    high = np.linspace(1, 2.5, 4).reshape(1, 4, 1, 1)
    kernel = weights([4, 1, 1, 3, 3], np.linspace(0.01, 0.04, 4).reshape(4, 1, 1, 1, 1))
    return model(opset1.group_convolution(image(0 * high, high), kernel, [1, 1], [1, 1], [1, 1], [1, 1]))


def per_channel() -> Model:
    high = np.linspace(1, 2.5, 4).reshape(1, 4, 1, 1)
    return model(convolution(image(0 * high, high)))


def deconvolution(low: float = 0.0, high: float = 2.55) -> Model:
    kernel = weights([4, 3, 2, 2], np.linspace(0.01, 0.02, 3).reshape(1, 3, 1, 1))
    data = image(low, high)
    return model(
        opset1.convolution_backprop_data(data, kernel, [2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1])
    )


def encoder(low: float = 0.0, high: float = 2.55) -> Model:
    return model(matmul(fake_quantize(parameter((2, 3, 4)), low, high)))


def product_of_activations(low: float = -1.0, high: float = 1.55) -> Model:
    left = fake_quantize(parameter((2, 3, 4), "x0"), low, high, name="fq_x0")
    right = fake_quantize(parameter((2, 4, 5), "x1"), -1.28, 1.27, name="fq_x1")
    return model(opset1.matmul(left, right, False, False))


def avg_pool(tail) -> Model:
    """What follows the pools decides whether they keep low precision."""
    data = image()
    for _ in range(2):
        data = opset1.avg_pool(
            opset1.max_pool(data, [1, 1], [0, 0], [0, 0], [2, 2]), [1, 1], [0, 0], [0, 0], [2, 2], True
        )
    return model(tail(data))


def transposed() -> Model:
    data = opset1.transpose(opset1.reshape(image(-1.28, 1.27), i64(1, 4, 36), False), i64(0, 2, 1))
    return model(matmul(data))


def split() -> Model:
    parts = opset1.split(image(-1.0, 1.55), opset1.constant(np.int64(1)), 2)
    return model(convolution(parts.output(0), 2), convolution(parts.output(1), 2))


def multiply() -> Model:
    return model(opset1.multiply(image(0.0, 2.55, name="x0"), image(-1.28, 1.27, name="x1")))


def clamp_and_prelu() -> Model:
    return model(convolution(opset1.prelu(opset1.clamp(image(), 0.0, 2.0), f32([0.1, 0.2, 0.3, 0.4]))))


def float_between() -> Model:
    return model(convolution(opset1.sigmoid(image())))


def lstm() -> Model:
    size = 4

    def kernel(seed: int) -> Node:
        return dequantization(
            integers((1, 4 * size, size), seed=seed), np.linspace(0.01, 0.02, 4 * size).reshape(1, -1, 1)
        )

    data = fake_quantize(parameter((1, 3, size)), -1.0, 1.55, name="fq_x")
    state = fake_quantize(parameter((1, 1, size), "state"), -1.0, 1.55, name="fq_state")
    bias = f32(np.zeros((1, 4 * size)))
    sequence = opset5.lstm_sequence(
        data, state, f32(np.zeros((1, 1, size))), i64(3), kernel(1), kernel(2), bias, size, "forward"
    )
    return model(sequence.output(0))


NETWORKS = {
    "convolution": one_convolution,
    "convolution, zero point": lambda: one_convolution(-1.0, 1.55),
    "convolution, signed": lambda: one_convolution(-1.28, 1.27),
    "convolution with bias": convolution_with_bias,
    "weights with a zero point": weights_with_zero_point,
    "FakeQuantize on weights": fake_quantize_on_weights,
    "two convolutions": two_convolutions,
    "two convolutions, zero point": lambda: two_convolutions(-1.0, 1.55),
    "convolution and MatMul": convolution_and_matmul,
    "residual Add": residual,
    "Concat": lambda: concat([(0.0, 2.55), (0.0, 1.0)]),
    "Concat, signed": lambda: concat([(0.0, 2.55), (-1.28, 1.27), (-1.0, 1.55)]),
    "Concat, other levels": lambda: concat([(0.0, 2.55), (-1.27, 1.27)], (256, 255)),
    "Concat, narrow branch": lambda: concat([(0.0, 255.0), (0.0, 0.5)]),
    "Concat after MaxPool": lambda: concat(
        [(0.0, 2.55), (0.0, 1.0)], between=lambda data: opset1.max_pool(data, [1, 1], [0, 0], [0, 0], [2, 2])
    ),
    "Concat, two uses": concat_of_two_uses,
    "depthwise": depthwise,
    "scale per channel": per_channel,
    "deconvolution": deconvolution,
    "deconvolution, zero point": lambda: deconvolution(-1.0, 1.55),
    "MatMul": encoder,
    "MatMul, zero point": lambda: encoder(-1.0, 1.55),
    "MatMul of activations": product_of_activations,
    "AvgPool before a convolution": lambda: avg_pool(convolution),
    "AvgPool before a Sigmoid": lambda: avg_pool(opset1.sigmoid),
    "Reshape and Transpose": transposed,
    "Split": split,
    "Multiply": multiply,
    "Clamp and PRelu": clamp_and_prelu,
    "Sigmoid between": float_between,
    "LSTM": lstm,
}
