"""Passes that share one traversal, and one call from OpenVINO for each node."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

import ovlpt
from ovlpt import layer_transformation, precisions
from ovlpt.graph.text import to_text
from ovlpt.layer_transformation import InTurn, LayerTransformation, replace_output, run_in_turn
from ovlpt.low_precision import MAIN
from ovlpt.main.add import AddTransformation
from ovlpt.main.assign_and_read_value import AssignAndReadValueTransformation
from ovlpt.main.mat_mul import MatMulTransformation
from ovlpt.openvino_api import Model, opset1
from tests import networks
from tools.fuzz.graphs import build, random_graph

GRAPHS = {
    "one_convolution": networks.one_convolution,
    "residual": networks.residual,
    "encoder": networks.encoder,
    **{f"random {seed}": lambda seed=seed: build(random_graph(seed)) for seed in (0, 1, 2, 4)},
}


def transformed(graph, native_only: bool) -> tuple[str, list]:
    """Its text, and the events."""
    trace = ovlpt.Trace()
    config = ovlpt.plugin_config.cpu.config()
    result = ovlpt.transform(graph, "CPU", config, lowered=False, native_only=native_only, trace=trace)
    events = [(event.outcome, event.transformation, _unnumbered(event.node)) for event in trace]
    return _unnumbered(to_text(result)), events


def _unnumbered(text: str) -> str:
    """OpenVINO numbers the nodes that have no name."""
    return re.sub(r"\b([A-Z][A-Za-z0-9]+)_\d+", r"\1_N", text)


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_as_a_rewrite_of_the_passes_themselves(name, native_only, monkeypatch):
    graph = GRAPHS[name]()
    text, events = transformed(graph, native_only)
    monkeypatch.setattr(InTurn, "of", classmethod(lambda _, passes: passes))
    text_of_each, events_of_each = transformed(graph, native_only)
    assert text == text_of_each
    assert set(events) == set(events_of_each)
    assert len(events) <= len(events_of_each)


def test_a_relaxed_node_is_visited_once(monkeypatch):
    """OpenVINO shows it twice in a row."""
    shown = []
    visit = InTurn.visit
    monkeypatch.setattr(InTurn, "visit", lambda self, node: shown.append(node.get_instance_id()) or visit(self, node))
    visited = []
    of_pass = layer_transformation.LayerTransformation.visit

    def counted(self, node):
        visited.append((self, node.get_instance_id()))
        return of_pass(self, node)

    monkeypatch.setattr(layer_transformation.LayerTransformation, "visit", counted)
    transformed(networks.one_convolution(), False)
    assert any(one == other for one, other in pairwise(shown))
    assert len({(id(step), number) for step, number in visited}) == len(visited)


def test_versions_that_differ_are_told_apart_by_openvino():
    settings = {"params": ovlpt.Params()}
    several = [AddTransformation(**settings), MatMulTransformation(**settings)]
    assert isinstance(InTurn.of(several)[0], InTurn)
    assert len(InTurn.of(several)) == 1
    assert not InTurn.of([])
    other = type("Other", (AddTransformation,), {"type_names": classmethod(lambda _: ["opset2.Add"])})
    passes = [*several, other(**settings)]
    assert InTurn.of(passes) is passes


ENDS = [0.0, -0.0, 1e-7, 1e-6, -1e-6, 1.0, -1.0, 127.0, -128.0, 2.55, -1.0039, 255.0, 3e38, -3e38, np.inf, np.nan]


@pytest.mark.parametrize("levels", [2, 15, 16, 255, 256, 65536, 2**32])
def test_one_interval_is_read_as_several_are(levels):
    intervals = [(low, high) for low in ENDS for high in ENDS]
    intervals += [(-high * (1 + off), high) for high in (1.0, 3.3) for off in np.linspace(-0.01, 0.01, 41)]
    for low, high in np.array(intervals, np.float32):
        one = precisions._signs_of_one(levels, low, high)
        with np.errstate(over="ignore", invalid="ignore"):
            assert one == precisions._signs(levels, np.array([low]), np.array([high])), (low, high)


def test_main_step_shows_what_the_model_has():
    """The passes of operations that are not there are not made."""
    made = []
    settings = {"params": ovlpt.Params(), "pass_config": ovlpt.PassConfig(), "trace": ovlpt.Trace()}
    step = ovlpt.LowPrecision()
    graph = networks.one_convolution()
    made = step._main_of({"Convolution", "FakeQuantize"}, graph, settings)
    assert {type(each).__name__ for each in made} == {
        "ConvolutionTransformation",
        "FakeQuantizeDecompositionTransformation",
        "FakeQuantizeTransformation",
    }
    assert len(step._main_of({"LSTMSequence"}, graph, settings)) == len(MAIN) + 1
    assert any(
        isinstance(each, AssignAndReadValueTransformation) for each in step._main_of({"Assign"}, graph, settings)
    )


def test_passes_one_after_the_other_are_those_that_are_shown_something():
    """What one of them makes is shown to those after it; the others are not made."""
    made = []

    def kind(operation: str, to: str) -> type[LayerTransformation]:
        def transform(self, node):
            new = getattr(opset1, to)(node.input_value(0))
            replace_output(node.output(0), new.output(0))

        def init(self, **settings):
            made.append(operation)
            LayerTransformation.__init__(self, **settings)

        names = classmethod(lambda _: [f"opset1.{operation}"])
        return type("Kind", (LayerTransformation,), {"type_names": names, "transform": transform, "__init__": init})

    data = opset1.parameter([1, 4], np.float32)
    model = Model([opset1.relu(data)], [data], "relu")
    run_in_turn(model, [kind("Tanh", "exp"), kind("Relu", "tanh"), kind("Tanh", "sigmoid"), kind("Relu", "exp")])
    assert made == ["Relu", "Tanh"]
    assert model.get_results()[0].input_value(0).get_node().get_type_name() == "Sigmoid"
