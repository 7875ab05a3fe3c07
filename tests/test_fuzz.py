"""A small sample of random graphs: no exception, the same interface, the same numbers, the native result."""

from __future__ import annotations

import shutil

import pytest

from ovlpt.openvino_api import RELEASE
from tools.fuzz import native, numbers
from tools.fuzz.graphs import Graph, random_graph
from tools.fuzz.shrink import shrink


def sample(first: int, count: int) -> list[Graph]:
    return [random_graph(seed) for seed in range(first, first + count)]


def test_a_seed_means_one_graph():
    assert random_graph(3) == random_graph(3)
    assert len({str(graph) for graph in sample(0, 20)}) == 20


def test_graphs_are_quantized_and_varied():
    graphs = sample(0, 60)
    kinds = {step.kind for graph in graphs for step in graph.steps}
    assert sum(graph.is_quantized for graph in graphs) > 45
    assert len(kinds) > 30


def test_the_numbers_stay():
    found = [(graph.seed, failure) for graph in sample(100, 20) for failure in numbers.failures(graph)]
    assert not [each for each in found if each[1].way != numbers.STOCK]
    assert len(found) < 5, "too many graphs fail on the stock plugin to say anything"


@pytest.mark.skipif(shutil.which("g++") is None, reason="the native pass is driven by a C++ program")
@pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one")
def test_the_native_result():
    found = [(graph.seed, failure) for graph in sample(200, 25) for failure in native.failures(graph)]
    assert not [each for each in found if each[1].way != numbers.STOCK]
    assert len(found) < 5, "the native pass fails on too many graphs to say anything"


def test_a_failing_graph_is_made_smaller():
    def has_relu(graph: Graph) -> bool:
        return any(step.kind == "Relu" for step in graph.steps)

    small = shrink(next(graph for graph in sample(0, 50) if has_relu(graph) and len(graph.steps) > 8), has_relu)
    assert has_relu(small)
    assert len(small.steps) <= 3
