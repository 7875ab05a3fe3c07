from __future__ import annotations

import numpy as np
import pytest

from ovlpt.openvino_api import Model, opset1
from ovlpt.prerequisites.interpolate_layout import interpolated_in_nchw, quantized_before_transpose
from tests.conftest import assert_close, inputs_of
from tests.graphs import fake_quantize, i64, interpolate, model, parameter, run
from tests.prerequisites.graphs import kinds


def resized(mode: str = "linear_onnx", quantize: bool = True, back=(0, 3, 1, 2), axes=(1, 2)) -> Model:
    """An Interpolate of NHWC between Transposes."""
    x = opset1.transpose(parameter((1, 4, 4, 4)), i64(0, 2, 3, 1))
    node = interpolate(x, axes, mode=mode)
    node.set_friendly_name("resized")
    value = fake_quantize(node, -2.0, 2.0) if quantize else node
    return model(opset1.relu(opset1.transpose(value, i64(*back))))


def named(graph: Model, name: str):
    return next(node for node in graph.get_ops() if node.get_friendly_name() == name)


@pytest.mark.parametrize("quantize", [True, False])
def test_channels_come_first_and_the_transposes_go(quantize):
    graph = resized(quantize=quantize)
    inputs = inputs_of(graph)
    before = run(graph, inputs)
    assert interpolated_in_nchw(named(graph, "resized")) is not None
    graph.validate_nodes_and_infer_types()
    assert kinds(graph) == ["Interpolate", *(["FakeQuantize"] if quantize else []), "Relu"]
    assert_close(run(graph, inputs), before)


@pytest.mark.parametrize(
    "graph",
    [resized("nearest", quantize=False), resized(back=(0, 2, 3, 1)), resized(axes=(1, 3))],
    ids=["nearest, which runs in any layout", "not back", "along the channels"],
)
def test_others_stay(graph):
    before = kinds(graph)
    assert interpolated_in_nchw(named(graph, "resized")) is None
    assert kinds(graph) == before


def quantized(high=2.0, readers: int = 1) -> Model:
    turned = opset1.transpose(parameter((1, 5, 6, 4)), i64(0, 3, 1, 2))
    return model(opset1.relu(fake_quantize(turned, -2.0, high)), *[opset1.sigmoid(turned) for _ in range(readers - 1)])


def test_quantized_before_the_transpose():
    graph = quantized()
    inputs = inputs_of(graph)
    before = run(graph, inputs)
    assert quantized_before_transpose(named(graph, "fq")) is not None
    assert kinds(graph) == ["FakeQuantize", "Transpose", "Relu"]
    assert_close(run(graph, inputs), before)


@pytest.mark.parametrize(
    "graph",
    [quantized(np.full((1, 4, 1, 1), 2.0, np.float32) + np.eye(4)[:1].reshape(1, 4, 1, 1)), quantized(readers=2)],
)
def test_per_channel_or_with_other_readers_it_stays(graph):
    before = kinds(graph)
    assert quantized_before_transpose(named(graph, "fq")) is None
    assert kinds(graph) == before
