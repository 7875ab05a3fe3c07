"""The passes of plugins' first step that have names: alone in a Manager, and by name and callback in settings."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.openvino_api import Manager, Model, opset1
from ovlpt.predicates import are_quantize_and_dequantize_supported_for_multiply
from ovlpt.prerequisites.convert_quantize_dequantize import ConvertQuantizeDequantize
from ovlpt.prerequisites.convert_subtract import ConvertSubtract
from ovlpt.prerequisites.lin_op_sequence_fusion import LinOpSequenceFusion
from tests.conftest import assert_close
from tests.graphs import dequantization, f32, fake_quantize, model, parameter, run


def kinds(graph: Model) -> list[str]:
    hidden = ("Parameter", "Result", "Constant")
    return [node.get_type_name() for node in graph.get_ordered_ops() if node.get_type_name() not in hidden]


def run_passes(graph: Model, *passes) -> Model:
    manager = Manager()
    for each in passes:
        manager.register_pass(each)
    manager.run_passes(graph)
    return graph


def pair(
    precision: str = "i8", zero_point=3.0, levels: int = 256, open_interval: bool = False, reads: int = 1
) -> Model:
    """FakeQuantize, Convert, and a dequantization."""
    x = parameter((2, 4))
    limits = np.iinfo(np.int8 if precision == "i8" else np.uint8)
    low = parameter((), "low") if open_interval else f32(-1.0)
    quantize = opset1.fake_quantize(x, low, f32(2.0), f32(limits.min), f32(limits.max), levels)
    restored = dequantization(opset1.convert(quantize, precision), np.float32([0.1, 0.2, 0.3, 0.4]), zero_point, "pair")
    return model(*[opset1.relu(restored) for _ in range(reads)])


@pytest.mark.parametrize("precision", ["i8", "u8"])
@pytest.mark.parametrize("zero_point", [None, 3.0])
def test_a_pair_becomes_one_fake_quantize(precision, zero_point):
    graph = pair(precision, zero_point)
    inputs = [np.random.default_rng(0).uniform(-2, 3, (2, 4)).astype(np.float32)]
    before = run(graph, inputs)
    assert kinds(run_passes(graph, ConvertQuantizeDequantize())) == ["FakeQuantize", "Relu"]
    assert "pair" in [node.get_friendly_name() for node in graph.get_ops()]
    assert_close(run(graph, inputs), before)


@pytest.mark.parametrize("graph", [pair(levels=255), pair("u8", levels=16)])
def test_other_levels_stay(graph):
    assert "Multiply" in kinds(run_passes(graph, ConvertQuantizeDequantize()))


def test_the_callback_of_the_document():
    """LPT takes such a pair itself."""
    passes = ovlpt.PassConfig()
    passes.set_callback(ConvertQuantizeDequantize, are_quantize_and_dequantize_supported_for_multiply)
    assert "Multiply" in kinds(run_passes(pair(), ConvertQuantizeDequantize(pass_config=passes)))
    opened = pair(open_interval=True)
    assert "Multiply" in kinds(opened)
    changed = run_passes(opened, ConvertQuantizeDequantize(pass_config=passes))
    assert ("Multiply" in kinds(changed)) == are_quantize_and_dequantize_supported_for_multiply(
        _last(pair(open_interval=True))
    )


def _last(graph: Model):
    return next(node for node in graph.get_ops() if node.get_friendly_name() == "pair")


def test_common_optimizations_make_one_of_a_pair():
    graph = pair()
    CommonOptimizations().run_on_model(graph)
    assert kinds(graph) == ["FakeQuantize", "Relu"]


def difference() -> Model:
    return model(opset1.subtract(parameter((2, 4)), parameter((2, 4), "y")))


def test_a_difference_becomes_a_sum():
    inputs = [np.random.default_rng(seed).standard_normal((2, 4)).astype(np.float32) for seed in (0, 1)]
    graph = difference()
    before = run(graph, inputs)
    assert kinds(run_passes(graph, ConvertSubtract())) == ["Multiply", "Add"]
    assert_close(run(graph, inputs), before)
    passes = ovlpt.PassConfig()
    passes.set_callback(ConvertSubtract, lambda node: True)
    assert kinds(run_passes(difference(), ConvertSubtract(pass_config=passes))) == ["Subtract"]


@pytest.mark.parametrize("settings", [{"disabled": ("ConvertSubtract",)}, {"callbacks": {"ConvertSubtract": bool}}])
def test_settings_reach_the_first_step(settings):
    graph = model(opset1.relu(opset1.subtract(fake_quantize(parameter((2, 4)), 0, 2.55), parameter((2, 4), "y"))))
    for config, left in ((ovlpt.PluginConfig("mine", **settings), True), (ovlpt.PluginConfig("mine"), False)):
        assert ("Subtract" in kinds(ovlpt.transform(graph, plugin=config, lowered=False))) == left


def test_a_zero_point_stays():
    graph = model(opset1.subtract(parameter((2, 4)), f32(3.0)))
    assert kinds(run_passes(graph, ConvertSubtract())) == ["Subtract"]


def sequence() -> Model:
    return model(opset1.add(opset1.add(opset1.multiply(opset1.add(parameter((2, 4)), f32(1)), f32(2)), f32(3)), f32(4)))


def test_linear_operations_become_two():
    assert kinds(run_passes(sequence(), LinOpSequenceFusion())) == ["Multiply", "Add"]


@pytest.mark.parametrize(
    "settings", [{"disabled": {"LinOpSequenceFusion"}}, {"callbacks": {"LinOpSequenceFusion": bool}}]
)
def test_its_name_stands_for_all_three(settings):
    graph, trace, passes = sequence(), ovlpt.Trace(), ovlpt.PassConfig(**settings)
    run_passes(graph, LinOpSequenceFusion(pass_config=passes))
    assert kinds(graph) == ["Add", "Multiply", "Add", "Add"]
    run_passes(graph, ovlpt.LowPrecision(pass_config=passes, trace=trace))
    assert not [event for event in trace if event.transformation.endswith("Fusion") and event.outcome == "transformed"]
