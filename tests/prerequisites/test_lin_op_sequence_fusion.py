"""Neighbouring linear operations with constants: alone in a Manager, and by name and callback in settings."""

from __future__ import annotations

import pytest

import ovlpt
from ovlpt.openvino_api import Model, opset1
from ovlpt.prerequisites.lin_op_sequence_fusion import LinOpSequenceFusion
from tests.conftest import run_pass
from tests.graphs import f32, model, parameter
from tests.prerequisites.graphs import kinds


def sequence() -> Model:
    return model(opset1.add(opset1.add(opset1.multiply(opset1.add(parameter((2, 4)), f32(1)), f32(2)), f32(3)), f32(4)))


def test_linear_operations_become_two():
    assert kinds(run_pass(sequence(), LinOpSequenceFusion())) == ["Multiply", "Add"]


@pytest.mark.parametrize(
    "settings", [{"disabled": {"LinOpSequenceFusion"}}, {"callbacks": {"LinOpSequenceFusion": bool}}]
)
def test_its_name_stands_for_all_three(settings):
    graph, trace, passes = sequence(), ovlpt.Trace(), ovlpt.PassConfig(**settings)
    run_pass(graph, LinOpSequenceFusion(pass_config=passes))
    assert kinds(graph) == ["Add", "Multiply", "Add", "Add"]
    run_pass(graph, ovlpt.LowPrecision(pass_config=passes, trace=trace))
    assert not [event for event in trace if event.transformation.endswith("Fusion") and event.outcome == "transformed"]
