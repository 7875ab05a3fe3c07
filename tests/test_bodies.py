"""If, Loop and TensorIterator: their bodies are transformed as the native library does, and run in int8."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt.graph.bodies import bodies_of
from ovlpt.openvino_api import RELEASE, Model, opset1, opset8
from tests.conftest import TRUTH
from tests.graphs import dequantization, fake_quantize, parameter
from tests.tools.test_parity import GRANULARITY, PRECISIONS, assert_native

SHAPE = (1, 4, 6, 6)


def layer(data, low: float, high: float):
    # half of the range, which processors without VNNI add up exactly
    stored = opset1.constant(np.random.default_rng(1).integers(-60, 60, (4, 4, 3, 3)).astype(np.int8))
    kernel = dequantization(stored, np.linspace(0.01, 0.02, 4).reshape(4, 1, 1, 1))
    return opset1.convolution(fake_quantize(data, low, high), kernel, [1, 1], [1, 1], [1, 1], [1, 1])


def branch(low: float, high: float, outputs: int = 1) -> Model:
    inner = parameter(SHAPE, "inner")
    return Model([opset1.relu(layer(inner, low, high))] * outputs, [inner], "branch")


def with_if() -> Model:
    data, condition = parameter(SHAPE), parameter((), "condition", np.bool_)
    node = opset8.if_op(condition)
    bodies = branch(0.0, 2.55), branch(-1.28, 1.27)
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(data.output(0), *(body.get_parameters()[0] for body in bodies))
    result = node.set_output(*(body.get_results()[0] for body in bodies))
    return Model([opset1.result(result)], [data, condition], "if")


def with_loop() -> Model:
    data, inner = parameter(SHAPE), parameter(SHAPE, "inner")
    again, end = opset1.constant(np.array(True)), opset1.relu(layer(inner, 0.0, 2.55))
    body = Model([opset1.result(again), opset1.result(end)], [inner], "body")
    node = opset8.loop(opset1.constant(np.array(2)), opset1.constant(np.array(True)))
    node.set_function(body)
    node.set_special_body_ports([-1, 0])
    node.set_merged_input(inner, data.output(0), end.output(0))
    return Model([opset1.result(node.get_iter_value(end.output(0), -1))], [data], "loop")


def with_tensor_iterator() -> Model:
    data, inner = parameter((3, *SHAPE[1:])), parameter(SHAPE, "inner")
    end = opset1.relu(layer(inner, -1.28, 1.27))
    node = opset8.tensor_iterator()
    node.set_body(Model([opset1.result(end)], [inner], "body"))
    node.set_sliced_input(inner, data.output(0), 0, 1, 1, -1, 0)
    slices = node.get_concatenated_slices(end.output(0), 0, 1, 1, -1, 0)
    return Model([opset1.result(slices)], [data], "tensor iterator")


NETWORKS = {"If": with_if, "Loop": with_loop, "TensorIterator": with_tensor_iterator}


def bodies(model: Model) -> list[Model]:
    return [body for node in model.get_ordered_ops() for body in bodies_of(node)]


def convolutions(model: Model) -> list[str]:
    """The element types of the weights of all convolutions in bodies."""
    nodes = [node for body in bodies(model) for node in body.get_ops() if node.get_type_name() == "Convolution"]
    return [node.get_input_element_type(1).get_type_name() for node in nodes]


@pytest.mark.skipif(shutil.which("g++") is None, reason="the native pass is driven by a C++ program")
@pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one")
@pytest.mark.parametrize("name", NETWORKS)
def test_bodies_as_in_the_native_library(name):
    assert_native(NETWORKS[name](), PRECISIONS, GRANULARITY)
    assert_native(NETWORKS[name]())


@pytest.mark.parametrize("name", NETWORKS)
def test_bodies_are_transformed_and_run(name, core):
    network = NETWORKS[name]()
    transformed = ovlpt.transform(network, core=core)
    assert set(convolutions(transformed)) == {"i8"}
    assert "i8" not in convolutions(network), "the caller's model was changed"
    random = np.random.default_rng(0)
    inputs = [
        np.array(True) if not port.get_partial_shape().rank.get_length() else
        random.uniform(-1, 2.5, port.get_shape()).astype(np.float32)
        for port in network.inputs
    ]  # fmt: skip
    expected, found = (core.compile_model(model, "CPU", TRUTH) for model in (network, transformed))
    expected, found = expected(inputs)[0], found(inputs)[0]
    assert np.abs(found - expected).max() <= 0.02 * np.abs(expected).max()


_PRIMITIVES = """
import sys, openvino
core = openvino.Core()
core.get_property("CPU", "FULL_DEVICE_NAME")
core.compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"})
"""


@pytest.mark.parametrize("name", NETWORKS)
def test_bodies_run_in_int8(name, core, tmp_path):
    openvino.serialize(ovlpt.transform(NETWORKS[name](), core=core), tmp_path / "network.xml")
    environment = os.environ | {"ONEDNN_VERBOSE": "profile_create"}
    command = [sys.executable, "-c", _PRIMITIVES, str(tmp_path / "network.xml")]
    log = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    created = [line for line in log.splitlines() if ",convolution," in line]
    assert created
    assert all("wei:s8" in line or "wei_s8" in line for line in created), created
