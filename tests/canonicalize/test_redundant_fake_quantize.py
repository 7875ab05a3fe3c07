from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.canonicalize.redundant_fake_quantize import RedundantFakeQuantize
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import Transformed, inputs_of, run_pass
from tests.graphs import f32, fake_quantize, i64, model, parameter, run, weights

_SHAPE = (2, 4, 4, 4)
_CHANNELS = np.linspace(1, 2.5, 4, dtype=np.float32).reshape(1, 4, 1, 1)


def twice(low, high, levels, between, first=(-1.0, 1.55, 256), after=lambda x: opset1.softmax(x, 1)):
    before = fake_quantize(parameter(_SHAPE), *first, name="before")
    return model(after(fake_quantize(between(before), low, high, levels)))


def pooled(x):
    return opset1.max_pool(x, [1, 1], [1, 1], [1, 1], [3, 3])


def transposed(x):
    return opset1.transpose(x, i64(0, 2, 3, 1))


def joined(x):
    other = fake_quantize(opset1.multiply(x.input_value(0), f32(-1)), -0.5, 0.5 + 0.01 * 54, 155, name="other")
    return opset1.concat([x, other], 1)


def said(result: Transformed) -> list[tuple[Outcome, str]]:
    return [
        (event.outcome, event.reason.code) for event in result.trace if event.transformation == "RedundantFakeQuantize"
    ]


@pytest.mark.parametrize("between", [lambda x: x, pooled, transposed, lambda x: transposed(pooled(x)), joined])
def test_what_gives_the_values_that_it_gets_goes(between):
    result = Transformed(twice(-1.0, 1.55, 256, between))
    assert said(result) == [(Outcome.TRANSFORMED, "redundant")]
    result.assert_numbers(1e-6)
    assert said(Transformed(twice(-1.0, 1.55, 256, between), Params(native_only=True))) == []


def test_a_coarser_one_before():
    """Each second value of the same interval, and a narrower interval."""
    for first in ((-1.0, 1.54, 128), (-0.5, 1.0, 151)):
        assert said(Transformed(twice(-1.0, 1.55, 256, pooled, first))) == [(Outcome.TRANSFORMED, "redundant")]


def test_per_channel():
    first = (0 * _CHANNELS, _CHANNELS, 256)
    same = lambda x: x  # noqa: E731
    assert said(Transformed(twice(0 * _CHANNELS, _CHANNELS, 256, same, first))) == [(Outcome.TRANSFORMED, "redundant")]
    assert said(Transformed(twice(0 * _CHANNELS, _CHANNELS, 256, pooled, first))) == []


@pytest.mark.parametrize("low, high, levels", [(-1.0, 1.5, 256), (-1.0, 1.0, 201), (-1.0, 1.55, 128), (0.0, 1.55, 156)])
def test_what_rounds_or_cuts_stays(low, high, levels):
    result = Transformed(twice(low, high, levels, pooled))
    assert said(result) == []
    assert sum(node.get_type_name() == "FakeQuantize" for node in result.after.get_ops()) == 2
    result.assert_numbers()


def test_an_output_keeps_its_name():
    graph = twice(-1.0, 1.55, 256, pooled, after=lambda x: x)
    result = Transformed(graph)
    assert said(result) == [(Outcome.TRANSFORMED, "redundant")]
    assert [node.input_value(0).get_node().get_friendly_name() for node in result.after.get_results()] == ["y"]
    result.assert_numbers()


@pytest.mark.parametrize(
    "between", [opset1.sigmoid, lambda x: opset1.avg_pool(x, [1, 1], [0, 0], [0, 0], [2, 2], True)]
)
def test_other_values_are_no_concern(between):
    assert said(Transformed(twice(-1.0, 1.55, 256, between))) == []


def test_for_a_layer_in_low_precision_it_is_of_use():
    assert said(Transformed(twice(-1.0, 1.55, 256, transposed, after=lambda x: opset1.relu(pooled(x))))) == []


@pytest.mark.parametrize(("first", "count"), [((-1.28, 1.27, 256), 1), ((-2.56, 2.54, 256), 2)])
def test_after_a_max_pool_of_its_own_interval(first, count):
    """As symmetric quantization writes it: i8 before the MaxPool, and u8 after it, in a layer of its own."""

    def convolved(x):
        return opset1.convolution(x, weights((8, 4, 3, 3), 0.1), [1, 1], [0, 0], [0, 0], [1, 1])

    graph = twice(-1.28, 1.27, 256, pooled, first, convolved)
    before = run(graph, inputs_of(graph))
    run_pass(graph, RedundantFakeQuantize())
    assert [node.get_type_name() for node in graph.get_ops()].count("FakeQuantize") == count
    np.testing.assert_array_equal(run(graph, inputs_of(graph))[0], before[0])
