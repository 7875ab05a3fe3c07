"""A pass of plugins' first step: alone in a Manager, and by its callback in settings."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.openvino_api import Model, opset1
from ovlpt.predicates import are_quantize_and_dequantize_supported_for_multiply
from ovlpt.prerequisites.convert_quantize_dequantize import ConvertQuantizeDequantize
from tests.conftest import assert_close, run_pass
from tests.graphs import dequantization, f32, model, parameter, run
from tests.prerequisites.graphs import kinds


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
    assert kinds(run_pass(graph, ConvertQuantizeDequantize())) == ["FakeQuantize", "Relu"]
    assert "pair" in [node.get_friendly_name() for node in graph.get_ops()]
    assert_close(run(graph, inputs), before)


@pytest.mark.parametrize("graph", [pair(levels=255), pair("u8", levels=16)])
def test_other_levels_stay(graph):
    assert "Multiply" in kinds(run_pass(graph, ConvertQuantizeDequantize()))


def test_the_callback_of_the_document():
    """LPT takes such a pair itself."""
    passes = ovlpt.PassConfig()
    passes.set_callback(ConvertQuantizeDequantize, are_quantize_and_dequantize_supported_for_multiply)
    assert "Multiply" in kinds(run_pass(pair(), ConvertQuantizeDequantize(pass_config=passes)))
    opened = pair(open_interval=True)
    assert "Multiply" in kinds(opened)
    changed = run_pass(opened, ConvertQuantizeDequantize(pass_config=passes))
    assert ("Multiply" in kinds(changed)) == are_quantize_and_dequantize_supported_for_multiply(
        _last(pair(open_interval=True))
    )


def _last(graph: Model):
    return next(node for node in graph.get_ops() if node.get_friendly_name() == "pair")


def test_common_optimizations_make_one_of_a_pair():
    graph = pair()
    CommonOptimizations().run_on_model(graph)
    assert kinds(graph) == ["FakeQuantize", "Relu"]
