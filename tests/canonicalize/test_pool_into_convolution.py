from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import EXACT, Transformed
from tests.graphs import dequantization, f32, fake_quantize, model, parameter, run

WINDOW = ((8, 8), 2, 2)  # size, kernel, stride


def pooled(size, kernel, stride, interval=(0, 2.55), pads=0, rounding="floor"):
    data = fake_quantize(parameter((2, 8, *size)), *interval)
    return opset1.avg_pool(data, [stride] * 2, [pads] * 2, [pads] * 2, [kernel] * 2, True, rounding)


def stored(outputs=6, zero_point=None):
    values = np.random.default_rng(0).integers(-60, 61, (outputs, 8, 1, 1)).astype(np.int8)
    return dequantization(opset1.constant(values), np.linspace(0.01, 0.03, outputs).reshape(-1, 1, 1, 1), zero_point)


def after_fake_quantize():
    return fake_quantize(f32(np.random.default_rng(0).uniform(-1, 1, (6, 8, 1, 1))), -1, 1, 255, "w")


def layer(data, weights=None, strides=1, pads=0):
    weights = stored() if weights is None else weights
    return opset1.convolution(data, weights, [strides] * 2, [pads] * 2, [pads] * 2, [1, 1])


def said(result):
    return [
        (event.outcome, event.reason.code) for event in result.trace if event.transformation == "PoolIntoConvolution"
    ]


@pytest.mark.parametrize("weights", [stored, after_fake_quantize])
@pytest.mark.parametrize("interval", [(0, 2.55), (-1.28, 1.27), (-0.5, 1.5)], ids=str)
@pytest.mark.parametrize(
    "window",
    [WINDOW, ((9, 7), 3, 2), ((8, 10), 2, 1), ((9, 9), 3, 3), ((-1, -1), 2, 2)],
    ids=["apart", "overlapping", "dense", "odd", "dynamic sizes"],
)
def test_the_numbers_are_the_same(window, interval, weights):
    graph = model(layer(pooled(*window, interval), weights()))
    if window[0][0] == -1:
        graph.reshape({0: [2, 8, -1, -1]})
    result = Transformed(graph)
    assert said(result) == [(Outcome.TRANSFORMED, "pool")]
    assert "AvgPool" not in {node.get_type_name() for node in result.after.get_ops()}
    result.assert_numbers(batch=6)


def test_windows_rounded_up_that_are_whole():
    assert said(Transformed(model(layer(pooled(*WINDOW, rounding="ceil"))))) == [(Outcome.TRANSFORMED, "pool")]


@pytest.mark.parametrize(
    "build, code",
    [
        (lambda: layer(pooled(*WINDOW, pads=1)), "padding"),
        (lambda: layer(pooled(*WINDOW), pads=1), "padding"),
        (lambda: layer(pooled((9, 9), 2, 2, rounding="ceil")), "pooled_size"),
        (lambda: layer(pooled(*WINDOW), strides=2), "strides"),
    ],
)
def test_refusals(build, code):
    assert said(Transformed(model(build()))) == [(Outcome.REJECTED, code)]


@pytest.mark.parametrize(
    "build",
    [
        lambda: [layer(pooled(*WINDOW), stored(17))],
        lambda: [layer(pool := pooled(*WINDOW)), opset1.relu(pool)],
        lambda: [layer(pooled(*WINDOW), f32(np.ones((6, 8, 1, 1))))],
    ],
    ids=["many outputs", "another reader", "real weights"],
)
def test_no_concern(build):
    assert said(Transformed(model(*build()))) == []


def test_native_only():
    assert said(Transformed(model(layer(pooled(*WINDOW))), Params(native_only=True))) == []


def test_its_means_are_not_rounded(core):
    graph = model(layer(pooled(*WINDOW)))
    inputs = [np.random.default_rng(1).uniform(0, 2.55, (2, 8, 8, 8)).astype(np.float32)]
    expected = run(graph, inputs)[0]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert ovlpt.execution_types(compiled).summary()["Convolution"] == (1, 1)
    largest = np.abs(expected).max()
    assert np.abs(compiled(inputs)[0] - expected).max() < 1e-5 * largest
    assert np.abs(core.compile_model(graph, "CPU", EXACT)(inputs)[0] - expected).max() > 1e-3 * largest
