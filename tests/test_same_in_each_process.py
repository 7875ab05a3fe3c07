"""Readers of a value come as a set in the order of their addresses, which is another in each process."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ovlpt.inspect.inputs import typical_inputs
from ovlpt.openvino_api import Output
from tests.networks import convolution, model, parameter, quantized, residual, shared_zero_point
from tools.fingerprint import describe
from tools.fuzz.graphs import Form, Graph, Step
from tools.fuzz.graphs import build as build_graph


def graph(*steps: Step, dynamic: str):
    read = {source for step in steps for source, _ in step.sources}
    results = tuple((index, 0) for index in range(len(steps)) if index not in read)
    return lambda: build_graph(Graph(steps, results, 1, Form("f32", dynamic)))


NETWORKS = {
    # which of two MatMuls needs the order of the channels
    "shuffled": graph(
        Step("Parameter", (), 328842124, (1, 16, 3, 3)),
        Step("Concat", ((0, 0), (0, 0)), 1469591261, (1, 32, 3, 3)),
        Step("FakeQuantize", ((1, 0),), 2117599025, (1, 32, 3, 3)),
        Step("StridedSlice", ((1, 0),), 861823287, (1, 32, 2, 3)),
        Step("ShuffleChannels", ((3, 0),), 434633285, (1, 32, 2, 3)),
        Step("FakeQuantize", ((4, 0),), 155151129, (1, 32, 2, 3)),
        Step("Attention", ((4, 0), (5, 0)), 1795167051, (1, 32, 2, 3)),
        Step("FakeQuantize", ((4, 0),), 1667782009, (1, 32, 2, 3)),
        Step("Pointwise", ((7, 0),), 1189423248, (1, 4, 1, 2)),
        dynamic="space",
    ),
    # whether a scale restores weights, which a convolution of dynamic sizes and a MatMul read
    "scale of two layers": graph(
        Step("Parameter", (), 339046835, (1, 8, 1)),
        Step("FakeQuantize", ((0, 0),), 1850939898, (1, 8, 1)),
        Step("Convolution", ((1, 0),), 1434610962, (1, 6, 1)),
        Step("FakeQuantize", ((2, 0),), 1550627499, (1, 6, 1)),
        Step("Attention", ((3, 0), (1, 0)), 1617242420, (1, 6, 1)),
        dynamic="batch",
    ),
    "residual": residual,
    "zero points": shared_zero_point,
}


@pytest.fixture
def order(monkeypatch):
    """Sets the order in which readers come: +1 or -1, forward or backward in their age."""
    way, given = SimpleNamespace(sign=1), Output.get_target_inputs

    class Ordered(set):
        def __iter__(self):
            by_age = sorted(super().__iter__(), key=lambda each: (each.get_node().get_instance_id(), each.get_index()))
            return iter(by_age[:: way.sign])

    monkeypatch.setattr(Output, "get_target_inputs", lambda value: Ordered(given(value)))
    return way


@pytest.mark.parametrize("name", NETWORKS)
def test_the_transformed_model_and_its_trace(name, order, core):
    texts = []
    for order.sign in (1, -1):
        texts.append(describe(NETWORKS[name](), core).splitlines())
    assert texts[0] == texts[1]


def test_inputs_of_a_network_that_quantizes_its_input_twice(order):
    """They are of the interval of the first that reads it."""
    x = parameter([1, 16, 8, 8])
    net = model([convolution(quantized(x, 0, high), 16, seed=1) for high in (2.55, 25.5)], x)
    found = []
    for order.sign in (1, -1):
        found += typical_inputs(net)
    np.testing.assert_array_equal(*found)
