"""A pass of plugins' first step: alone in a Manager, and by name and callback in settings."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.openvino_api import Model, opset1
from ovlpt.prerequisites.convert_subtract import ConvertSubtract
from tests.conftest import assert_close, run_pass
from tests.graphs import f32, fake_quantize, model, parameter, run
from tests.prerequisites.graphs import kinds


def difference() -> Model:
    return model(opset1.subtract(parameter((2, 4)), parameter((2, 4), "y")))


def test_a_difference_becomes_a_sum():
    inputs = [np.random.default_rng(seed).standard_normal((2, 4)).astype(np.float32) for seed in (0, 1)]
    graph = difference()
    before = run(graph, inputs)
    assert kinds(run_pass(graph, ConvertSubtract())) == ["Multiply", "Add"]
    assert_close(run(graph, inputs), before)
    passes = ovlpt.PassConfig()
    passes.set_callback(ConvertSubtract, lambda node: True)
    assert kinds(run_pass(difference(), ConvertSubtract(pass_config=passes))) == ["Subtract"]


@pytest.mark.parametrize("settings", [{"disabled": ("ConvertSubtract",)}, {"callbacks": {"ConvertSubtract": bool}}])
def test_settings_reach_the_first_step(settings):
    graph = model(opset1.relu(opset1.subtract(fake_quantize(parameter((2, 4)), 0, 2.55), parameter((2, 4), "y"))))
    for config, left in ((ovlpt.PluginConfig("mine", **settings), True), (ovlpt.PluginConfig("mine"), False)):
        assert ("Subtract" in kinds(ovlpt.transform(graph, plugin=config, lowered=False))) == left


def test_a_zero_point_stays():
    graph = model(opset1.subtract(parameter((2, 4)), f32(3.0)))
    assert kinds(run_pass(graph, ConvertSubtract())) == ["Subtract"]
