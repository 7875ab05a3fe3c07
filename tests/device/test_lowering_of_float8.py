"""A rounding to floats of 8 bits is a layer of its own: nothing is put between it and what reads it."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.interpreter.execution import execute
from ovlpt.openvino_api import RELEASE, opset1
from tests.graphs import f32, fake_quantize, model, parameter
from tools.fuzz.numbers import as_natively, compiled_as_it_stands, dropped_in, run, transformed
from tools.fuzz.truth import simulate

SHAPE = (1, 4, 6, 6)


def rounded(data, kind: str):
    stored = opset1.convert(opset1.clamp(opset1.divide(data, f32(0.1)), -440.0, 440.0), kind)
    return opset1.multiply(opset1.convert(stored, "f32"), f32(0.1))


def network(kind: str, opened: bool):
    """A product that may not be fused with an interval that differs between rows, and f8 between them."""
    product = opset1.matmul(parameter(SHAPE), parameter(SHAPE, "y"), False, False)
    ends = [f32(sign * np.linspace(1, 3, 4).reshape(1, 4, 1, 1)) for sign in (-1, 1, -1, 1)]
    graph = model(opset1.fake_quantize(rounded(product, kind), *ends, 255))
    if opened:
        graph.reshape({port: [-1, *port.get_shape()[1:]] for port in graph.inputs})
    return graph


@pytest.mark.skipif(RELEASE < (2025, 0), reason="the CPU plugin has no f8 there")
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("change", [transformed, compiled_as_it_stands, dropped_in, as_natively])
def test_rows_that_are_quantized_after_it(change, kind, opened):
    graph, random = network(kind, opened), np.random.default_rng(0)
    data = [random.standard_normal(SHAPE).astype(np.float32) for _ in range(2)]
    found, expected = run(change(graph), data, "NO")[0], simulate(network(kind, False), data)[0]
    assert np.isclose(found, expected, atol=1e-5).mean() > 0.98  # the rest are ties


@pytest.mark.skipif(RELEASE < (2025, 0), reason="the CPU plugin has no f8 there")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("constant", [f32(2.0), f32(np.linspace(0.5, 2, 4).reshape(1, 4, 1, 1))])
@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("change", [transformed, compiled_as_it_stands, dropped_in])
def test_a_scale_reads_real_numbers(change, kind, constant, opened, threads):
    """Read in f8 itself, it throws; with one thread and dynamic sizes the output is empty, or the process ends."""
    scaled = opset1.multiply(rounded(parameter(SHAPE), kind), constant)
    graph = model(scaled, fake_quantize(parameter(SHAPE, "y"), -1.28, 1.27))
    if opened:
        graph.reshape({port: [-1, *port.get_shape()[1:]] for port in graph.inputs})
    random = np.random.default_rng(0)
    data = [random.standard_normal(SHAPE).astype(np.float32) for _ in range(2)]
    found = run(change(graph), data, "NO", INFERENCE_NUM_THREADS=threads)[0]
    np.testing.assert_allclose(found, simulate(graph, data)[0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
def test_each_operation_alone(kind):
    """As `verify` computes it: f8 is no number of 8 bits without a sign."""
    data = np.random.default_rng(0).uniform(-3, 3, (4, 8)).astype(np.float32)
    graph = model(rounded(parameter((4, 8)), kind))
    for found in (execute(graph, [data])[0], simulate(graph, [data])[0]):
        np.testing.assert_allclose(found, data, rtol=2 ** -(4 if kind == "f8e4m3" else 3))
