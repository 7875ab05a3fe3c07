"""Common optimizations give the same graph, whether or not layers are set aside meanwhile."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest

from ovlpt import layers_aside
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import values_of
from ovlpt.layers_aside import LayersAside
from ovlpt.openvino_api import Constant, Model, opset1
from tests.networks import (
    const,
    convolution,
    depthwise,
    encoder,
    int8_weights,
    model,
    parameter,
    quantized,
    residual,
    shared_zero_point,
)

BIAS = np.linspace(-1, 1, 8).reshape(1, 8, 1, 1)
IMAGE = [1, 4, 8, 8]


def layer(weights=None, data=None):
    """An input, and a convolution of eight channels of it, quantized."""
    x = parameter(IMAGE)
    data = quantized(x, 0, 2.55) if data is None else data(x)
    weights = int8_weights([8, 4, 1, 1]) if weights is None else weights
    return x, opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def followed(follow, **how) -> Model:
    """By what reads the layer, a FakeQuantize, and another layer."""
    x, node = layer(**how)
    return model(convolution(quantized(follow(node), 0, 2.55), 4, seed=1), x)


def plus(values):
    return lambda node: opset1.add(node, const(values))


def computed_bias(node):
    """As a file of QuantizeLinear and DequantizeLinear stores it."""
    stored = opset1.convert(const(np.arange(8), "i32"), "f32")
    shape = const([1, 8, 1, 1], "i64")
    return opset1.add(node, opset1.reshape(opset1.multiply(stored, const(0.01)), shape, False))


def gated(node):
    biased = plus(BIAS)(node)
    return opset1.multiply(biased, opset1.sigmoid(biased))


def pooled(node):
    return opset1.max_pool(node, [1, 1], [1, 1], [1, 1], [3, 3])


def joined(x):
    quantize = quantized(opset1.split(x, const(1, "i64"), 2).output(0), 0, 2.55)
    return opset1.concat([quantize, pooled(quantize)], 1)


def parts(x):
    """In reverse order, which goes into the weights."""
    return opset1.concat(opset1.split(quantized(x, 0, 2.55), const(1, "i64"), 4).outputs()[::-1], 1)


def twice(node):
    """Other weights, which two layers read."""
    weights = int8_weights([8, 8, 1, 1])
    for _ in range(2):
        node = opset1.convolution(quantized(node, 0, 2.55), weights, [1, 1], [0, 0], [0, 0], [1, 1])
    return node


def flat_scale():
    stored = opset1.convert(const(np.arange(32).reshape(8, 4, 1, 1), "i8"), "f32")
    return opset1.multiply(stored, const(0.01))


def zero_point(shape=(1, 1, 1, 1)):
    stored = opset1.convert(const(np.arange(32).reshape(8, 4, 1, 1), "u8"), "f32")
    zero = opset1.convert(const(np.full(shape, 16), "u8"), "f32")
    return opset1.multiply(opset1.subtract(stored, zero), const(np.full((8, 1, 1, 1), 0.01)))


def tiny_scale():
    stored = opset1.convert(const(np.arange(32).reshape(8, 4, 1, 1), "i8"), "f32")
    return opset1.multiply(stored, const(np.full((8, 1, 1, 1), 1e-39)))


def namesakes():
    net = followed(plus(BIAS))
    for node in net.get_ops():
        if node.get_type_name() in ("Convolution", "Multiply"):
            node.set_friendly_name(node.get_type_name())
    return net


def opened(net: Model) -> Model:
    net.reshape([-1, 4, -1, 8])
    return net


def measured(node):
    """Scaled by its own size."""
    biased = plus(BIAS)(node)
    size = opset1.convert(opset1.shape_of(biased), "f32")
    return opset1.multiply(biased, opset1.reduce_prod(size, const([0], "i64"), False))


def with_output():
    x, node = layer()
    return model([node, quantized(plus(BIAS)(node), 0, 2.55)], x)


# Each network, and how many of its layers are set aside.
NETWORKS = {
    "bias": (lambda: followed(plus(BIAS)), 1),
    "bias, Relu": (lambda: followed(lambda node: opset1.relu(plus(BIAS)(node))), 1),
    "bias, Clamp": (lambda: followed(lambda node: opset1.clamp(plus(BIAS)(node), 0, 6)), 1),
    "no bias": (lambda: followed(lambda node: node), 1),
    "computed bias": (lambda: followed(computed_bias), 1),
    "gated": (lambda: followed(gated), 1),
    "zero point": (lambda: followed(plus(BIAS), weights=zero_point()), 1),
    "zero point without axes": (lambda: followed(plus(BIAS), weights=zero_point(())), 1),
    "pooled": (lambda: followed(plus(BIAS), data=lambda x: pooled(quantized(x, 0, 2.55))), 1),
    "joined": (lambda: followed(plus(BIAS), data=joined), 1),
    "depthwise": (lambda: followed(lambda node: depthwise(quantized(plus(BIAS)(node), 0, 2.55))), 2),
    "residual": (residual, 2),
    "dynamic sizes": (lambda: opened(followed(gated)), 1),
    "dynamic sizes, computed": (lambda: opened(followed(measured)), 0),
    # what may be fused into a layer, or is written otherwise
    "bias of all channels": (lambda: followed(plus(0.5)), 0),
    "two biases": (lambda: followed(lambda node: plus(BIAS)(plus(BIAS)(node))), 0),
    "scale": (lambda: followed(lambda node: opset1.multiply(node, const(BIAS))), 0),
    "bias, scale": (lambda: followed(lambda node: opset1.multiply(plus(BIAS)(node), const(BIAS))), 0),
    "scale of another rank": (lambda: followed(plus(BIAS), weights=flat_scale()), 0),
    "subnormal scale": (lambda: followed(plus(BIAS), weights=tiny_scale()), 0),
    "subnormal bias": (lambda: followed(plus(1e-39 * BIAS)), 0),
    "shared weights": (lambda: followed(twice), 1),
    "real data": (lambda: followed(plus(BIAS), data=opset1.sigmoid), 0),
    "joined parts": (lambda: followed(plus(BIAS), data=parts), 0),
    "moved": (
        lambda: followed(lambda node: opset1.transpose(plus(BIAS)(node), const([0, 1, 3, 2], "i64"))),
        0,
    ),
    "output": (with_output, 0),
    "names": (namesakes, 0),
    "last layers": (shared_zero_point, 0),
    "no convolution": (encoder, 0),
}


def text(net: Model) -> list[str]:
    """The graph without what says nothing of its numbers."""
    numbers, lines = {}, []
    for node in all_nodes(net):
        numbers[node.get_instance_id()] = len(numbers)
        inputs = [(numbers[value.get_node().get_instance_id()], value.get_index()) for value in node.input_values()]
        outputs = [
            (str(output.get_element_type()), str(output.get_partial_shape()), sorted(output.get_names()))
            for output in node.outputs()
        ]
        if isinstance(node, Constant):
            about = hashlib.sha256(np.ascontiguousarray(values_of(node)).tobytes()).hexdigest()
        else:
            about = str(sorted(node.get_attributes().items()))
        name = re.sub(r"_\d+$", "", node.get_friendly_name())  # of what has no name, with its number in the process
        lines.append(f"{name} {node.get_type_name()} {inputs} {outputs} {about}")
    return lines


def optimized(net: Model) -> list[str]:
    net = net.clone()
    CommonOptimizations().run_on_model(net)
    return text(net)


@pytest.fixture
def aside(monkeypatch):
    """How many layers each model has set aside."""
    counts, made = [], LayersAside.__init__

    def counted(self, net):
        made(self, net)
        counts.append(len(self._layers))

    monkeypatch.setattr(LayersAside, "__init__", counted)
    return counts


@pytest.mark.parametrize("name", NETWORKS)
def test_the_graph_is_the_same(name, aside, monkeypatch):
    build, count = NETWORKS[name]
    net = build()
    found = optimized(net)
    assert aside == [count]
    monkeypatch.setattr(layers_aside, "_layer", lambda node, open_sizes: None)
    assert found == optimized(net)


@pytest.mark.parametrize("name", [name for name, (_, count) in NETWORKS.items() if count])
def test_the_graph_is_the_same_where_the_surroundings_change(name, monkeypatch):
    """Then the optimizations are run once more, on all layers."""
    net = NETWORKS[name][0]()
    expected = optimized(net)
    monkeypatch.setattr(LayersAside, "_read_as_before", lambda layers, ends: False)
    assert optimized(net) == expected
