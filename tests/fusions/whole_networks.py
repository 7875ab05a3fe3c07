"""Networks as TensorFlow's front end leaves them: channels last, each operation between Transposes, nothing
fused.
"""

from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Model, Node, Output, opset1
from tests.fusions.networks import (
    Numbers,
    c,
    index,
    model_of,
    normalized,
    parameter,
    small_batch_norm,
    to_nchw,
    to_nhwc,
)


def _weights(numbers: Numbers, *shape: int) -> Node:
    """Scaled so that values keep their size from layer to layer."""
    return c(numbers.normal(*shape) / np.sqrt(np.prod(shape[1:])))


def _statistics(numbers: Numbers, channels: int) -> dict[str, np.ndarray]:
    return numbers.batch_norm(channels) | {
        "mean": 0.1 * numbers.normal(channels),
        "beta": 0.5 * numbers.positive(channels),
    }


def conv(x: Node | Output, numbers: Numbers, outputs: int, kernel: int = 3, stride: int = 1) -> Node:
    pad = [kernel // 2] * 2
    weights = _weights(numbers, outputs, x.shape[3], kernel, kernel)
    return to_nhwc(opset1.convolution(to_nchw(x), weights, [stride] * 2, pad, pad, [1, 1]))


def depthwise(x: Node, numbers: Numbers, stride: int = 1) -> Node:
    weights = c(numbers.normal(x.shape[3], 1, 1, 3, 3) / 3)
    return to_nhwc(opset1.group_convolution(to_nchw(x), weights, [stride] * 2, [1, 1], [1, 1], [1, 1]))


def small(x: Node, numbers: Numbers) -> Node:
    """As ``tf.nn.batch_normalization`` computes it."""
    return small_batch_norm(x, _statistics(numbers, x.shape[3]), 3, 4, "multiply_power", True, True)[0]


def large(x: Node, numbers: Numbers) -> Node:
    """As FusedBatchNorm comes in."""
    return to_nhwc(normalized(to_nchw(x), _statistics(numbers, x.shape[3])))


def classifier(x: Node, image: Node, numbers: Numbers) -> Model:
    pooled = opset1.reduce_mean(x, index([1, 2]), False)
    return model_of(opset1.matmul(pooled, _weights(numbers, x.shape[3], 10), False, False), image)


def resnet(seed: int = 0, size: int = 32) -> Model:
    """A stem and six bottlenecks in three stages: 22 convolutions with small normalizations."""
    numbers = Numbers(seed)
    image = parameter([1, size, size, 3])
    x = opset1.relu(small(conv(image, numbers, 32), numbers))
    for stage, channels in enumerate((16, 32, 64)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = opset1.relu(small(conv(x, numbers, channels, 1), numbers))
            y = opset1.relu(small(conv(y, numbers, channels, 3, stride), numbers))
            y = small(conv(y, numbers, 4 * channels, 1), numbers)
            if not block:
                x = small(conv(x, numbers, 4 * channels, 1, stride), numbers)
            x = opset1.relu(opset1.add(x, y))
    return classifier(x, image, numbers)


def mobilenet(seed: int = 0, size: int = 32) -> Model:
    """A stem and six inverted residuals with ReLU6: 19 convolutions with BatchNormInference."""
    numbers = Numbers(seed)

    def relu6(value: Node) -> Node:
        return opset1.clamp(value, 0.0, 6.0)

    image = parameter([1, size, size, 3])
    x = relu6(large(conv(image, numbers, 16, stride=2), numbers))
    for channels, stride in ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (64, 1)):
        y = relu6(large(conv(x, numbers, 4 * x.shape[3], 1), numbers))
        y = relu6(large(depthwise(y, numbers, stride), numbers))
        y = large(conv(y, numbers, channels, 1), numbers)
        x = opset1.add(x, y) if list(x.shape) == list(y.shape) else y
    return classifier(x, image, numbers)


def resnext(seed: int = 0, size: int = 32, groups: int = 8) -> Model:
    """A stem and four bottlenecks whose 3x3 convolution is Split, eight convolutions with biases, Concat."""
    numbers = Numbers(seed)
    image = parameter([1, size, size, 3])
    x = opset1.relu(small(conv(image, numbers, 64), numbers))
    for channels in (64, 64, 128, 128):
        y = opset1.relu(small(conv(x, numbers, channels, 1), numbers))
        parts = opset1.split(y, index(3), groups).outputs()
        branches = [conv(part, numbers, channels // groups) for part in parts]
        branches = [opset1.add(branch, c(numbers.normal(channels // groups))) for branch in branches]
        y = opset1.relu(small(opset1.concat(branches, 3), numbers))
        y = small(conv(y, numbers, channels, 1), numbers)
        if x.shape[3] != channels:
            x = small(conv(x, numbers, channels, 1), numbers)
        x = opset1.relu(opset1.add(x, y))
    return classifier(x, image, numbers)


NETWORKS = {"ResNet-like": resnet, "MobileNet-like": mobilenet, "ResNeXt-like": resnext}
