"""Random graphs: no exception, the same interface, the same numbers, the native result."""

from __future__ import annotations

import shutil
from functools import cache, lru_cache

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from ovlpt.openvino_api import RELEASE
from tools.fuzz import native, numbers, stages
from tools.fuzz.graphs import Graph, build, draw_graph, random_graph
from tools.fuzz.shrink import shrink


class Drawn:
    """What `draw_graph` asks of a random generator, answered by hypothesis."""

    def __init__(self, draw):
        self.draw = draw

    def random(self) -> float:
        return self.draw(st.integers(0, 999)) / 1000

    def integers(self, low: int, high: int | None = None) -> int:
        low, high = (0, low) if high is None else (low, high)
        return self.draw(st.integers(low, high - 1))

    def choice(self, count: int, p: np.ndarray) -> int:
        return self.draw(_weighted(tuple(np.rint(p * 400).astype(int))))

    def permutation(self, items) -> list[int]:
        return self.draw(st.permutations(list(items)))


@cache
def _weighted(weights: tuple[int, ...]) -> st.SearchStrategy[int]:
    return st.sampled_from([index for index, weight in enumerate(weights) for _ in range(max(weight, 1))])


@st.composite
def graphs(draw) -> Graph:
    """A quantized graph, drawn step by step."""
    graph = draw_graph(Drawn(draw), draw(st.integers(0, 2**31)))
    assume(graph.results and graph.is_quantized)
    return graph


def many(count: int) -> settings:
    slow = [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
    ]
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # to make a graph smaller takes minutes here; `tools.fuzz` does it
        suppress_health_check=slow,
    )


@lru_cache(maxsize=1)  # mutations that change nothing come one after the other
def ours(check, graph: Graph) -> list[numbers.Failure]:
    return [failure for failure in check.failures(graph) if failure.way != numbers.STOCK]


def test_a_seed_means_one_graph():
    assert random_graph(3) == random_graph(3)
    assert len({str(random_graph(seed)) for seed in range(20)}) == 20


def test_graphs_are_quantized_and_varied():
    sample = [random_graph(seed) for seed in range(60)]
    kinds = {step.kind for graph in sample for step in graph.steps}
    assert sum(graph.is_quantized for graph in sample) > 45
    assert len(kinds) > 30
    assert {graph.form.precision for graph in sample} == {"f32", "f16 constants", "f16"}
    assert sum(build(graph).is_dynamic() for graph in sample[:20]) > 5


@many(200)
@given(graphs())
def test_each_quantization_keeps_the_numbers(graph):
    assert not ours(stages, graph)


@many(8)
@given(graphs())
def test_whole_graphs_keep_the_numbers(graph):
    assert not ours(numbers, graph)


def against_native(test):
    """A test that runs the native pass."""
    test = pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one")(test)
    return pytest.mark.skipif(shutil.which("g++") is None, reason="the native pass is driven by a C++ program")(test)


@against_native
@many(60)
@given(graphs())
def test_the_native_result(graph):
    assert not ours(native, graph)


@against_native
@pytest.mark.parametrize(("seed", "fault"), [(300135, "AvgPoolTransformation"), (300048, "the plugin cannot run")])
def test_a_fault_of_openvino_hides_nothing(seed, fault, monkeypatch):
    """The parts of the graph that have no share in it are compared."""
    (found,) = native.failures(random_graph(seed))
    assert (found.way, fault in found.cause) == (numbers.STOCK, True)
    monkeypatch.setattr(native, "ours", lambda model, settings: model.clone())
    assert {"native", numbers.STOCK} == {failure.way for failure in native.failures(random_graph(seed))}


@against_native
def test_a_failure_of_ours_beside_a_fault_of_openvino_is_found(monkeypatch):
    def fails(model, settings):
        raise IndexError("7")

    monkeypatch.setattr(native, "ours", fails)
    assert "error" in {failure.cause for failure in native.failures(random_graph(300135))}


@against_native
def test_only_levels_from_above_are_a_fault_of_the_native_pass(monkeypatch):
    graph, right = random_graph(300325), native.ours

    def other_levels(model, settings):
        result = right(model, settings)
        for node in result.get_ops():
            if node.get_type_name() == "FakeQuantize":
                node.set_attribute("levels", 77)
        return result

    assert [failure.way for failure in native.failures(graph)] == [numbers.STOCK]
    monkeypatch.setattr(native, "ours", other_levels)
    assert [failure.way for failure in native.failures(graph)] == ["native"]


def test_the_stock_plugin_is_at_fault_on_few_graphs():
    found = [failure.way for seed in range(100, 108) for failure in stages.failures(random_graph(seed))]
    assert found.count(numbers.STOCK) < 3


def test_a_stage_that_is_off_is_found(monkeypatch):
    graph = next(graph for graph in map(random_graph, range(50)) if stages.staged(graph).is_quantized)
    runs = {"NO": lambda value: 9 + 2 * value, "YES": lambda value: value}
    monkeypatch.setattr(stages, "run", lambda model, inputs, lpt: list(map(runs[lpt], numbers.run(model, inputs, lpt))))
    assert [(failure.way, failure.cause) for failure in stages.failures(graph)] == [(stages.WAY, "numbers")]


def test_a_failing_graph_is_made_smaller():
    def has_relu(graph: Graph) -> bool:
        return any(step.kind == "Relu" for step in graph.steps)

    candidates = map(random_graph, range(50))
    small = shrink(next(graph for graph in candidates if has_relu(graph) and len(graph.steps) > 8), has_relu)
    assert has_relu(small)
    assert len(small.steps) <= 3
