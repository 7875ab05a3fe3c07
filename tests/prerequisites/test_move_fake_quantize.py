from __future__ import annotations

import numpy as np
import pytest

from ovlpt.openvino_api import Model, opset1
from ovlpt.prerequisites.move_fake_quantize import MoveFakeQuantize
from tests.conftest import assert_close, inputs_of, run_pass
from tests.graphs import f32, fake_quantize, model, parameter, run
from tests.prerequisites.graphs import kinds


def joined(sizes=(2, 3), high=2.55, relu: bool = False, axis: int = 1) -> Model:
    value = opset1.concat([parameter((1, size, 4), name) for size, name in zip(sizes, "ab", strict=True)], axis)
    return model(opset1.relu(fake_quantize(opset1.relu(value) if relu else value, 0.0, high)))


def assert_moved(graph: Model, expected: list[str]) -> None:
    inputs = inputs_of(graph)
    before = run(graph, inputs)
    assert kinds(run_pass(graph, MoveFakeQuantize())) == expected
    assert_close(run(graph, inputs), before)


def assert_stays(graph: Model) -> None:
    before = kinds(graph)
    assert kinds(run_pass(graph, MoveFakeQuantize())) == before


def test_each_branch_is_quantized():
    assert_moved(joined(), ["FakeQuantize", "FakeQuantize", "Concat", "Relu"])


def test_intervals_along_the_axis_are_split():
    graph = joined(high=np.arange(1.0, 6.0, dtype=np.float32).reshape(1, 5, 1))
    assert_moved(graph, ["FakeQuantize", "FakeQuantize", "Concat", "Relu"])
    highs = [node.input_value(2).get_shape() for node in graph.get_ops() if node.get_type_name() == "FakeQuantize"]
    assert sorted(map(list, highs)) == [[1, 2, 1], [1, 3, 1]]


def test_a_relu_goes_along():
    assert sorted(kinds(run_pass(joined(relu=True), MoveFakeQuantize())))[-3:] == ["Relu"] * 3


def test_what_one_split_took_apart_stays_joined():
    parts = opset1.split(parameter((1, 4, 4)), opset1.constant(np.int64(1)), 2)
    assert_stays(model(opset1.relu(fake_quantize(opset1.concat(list(parts.outputs())[::-1], 1), 0.0, 2.55))))


def test_a_concat_that_others_read_stays():
    value = opset1.concat([parameter((1, 2, 4), name) for name in "ab"], 1)
    assert_stays(model(opset1.relu(fake_quantize(value, 0.0, 2.55)), opset1.sigmoid(value)))


def test_intervals_that_are_computed_stay():
    value = opset1.concat([parameter((1, 2, 4), name) for name in "ab"], 1)
    ends = [f32(0.0), parameter((), "high"), f32(0.0), f32(2.55)]
    assert_stays(model(opset1.relu(opset1.fake_quantize(value, *ends, 256))))


@pytest.mark.parametrize(("high", "count"), [(2.55, 2), (5.1, 3)])
def test_a_branch_that_is_quantized_alike_already_is_so_once(high, count):
    """As in a U-Net whose joined tensors have one scale: two quantizations of a tensor would be two layers."""
    skipped, other = parameter((1, 2, 4), "a"), parameter((1, 2, 4), "b")
    joined = fake_quantize(opset1.concat([skipped, other], 1), 0.0, 2.55)
    graph = model(opset1.relu(joined), opset1.sigmoid(fake_quantize(skipped, 0.0, high)))
    before = run(graph, inputs_of(graph))
    assert kinds(run_pass(graph, MoveFakeQuantize())).count("FakeQuantize") == count
    for actual, expected in zip(run(graph, inputs_of(graph)), before, strict=True):
        assert_close(actual, expected)
