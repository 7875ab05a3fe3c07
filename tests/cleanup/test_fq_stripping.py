import numpy as np
import pytest

from ovlpt import Trace
from ovlpt.cleanup.fq_stripping import FQStrippingTransformation
from ovlpt.openvino_api import Manager
from tests.conftest import run_pass
from tests.graphs import f32, fake_quantize, i64, model, opset1, parameter, run


def stripped(*outputs):
    graph, trace = model(*outputs), Trace()
    manager = Manager()
    manager.register_pass(FQStrippingTransformation([65536], trace=trace))
    manager.run_passes(graph)
    return kinds_of(graph), [event.reason for event in trace]


def kinds_of(graph):
    return [node.get_type_name() for node in graph.get_ordered_ops() if node.get_type_name() != "Constant"]


def test_of_an_identity_of_so_many_levels_its_clipping_stays():
    kinds, reasons = stripped(opset1.relu(fake_quantize(parameter((1, 3)), -1.0, 1.0, 65536)))
    assert kinds == ["Parameter", "Clamp", "Relu", "Result"]
    assert reasons == [None]


def test_clipping_by_channel():
    ends = [f32(np.full((1, 3), sign) * [[1, 2, 3]]) for sign in (-1, 1)]
    graph = model(opset1.relu(opset1.fake_quantize(parameter((1, 3)), *ends, *ends, 65536)))
    run_pass(graph, FQStrippingTransformation([65536]))
    assert "FakeQuantize" not in kinds_of(graph)
    np.testing.assert_array_equal(run(graph, [np.full((1, 3), 2.5, np.float32)])[0], [[1, 2, 2.5]])


_WITHIN = {
    "softmax": lambda x: opset1.softmax(x, 1),
    "moved": lambda x: opset1.reshape(opset1.sigmoid(x), i64(3, 1), False),
    "relu": lambda x: opset1.relu(opset1.clamp(x, -8.0, 1.0)),
    "joined": lambda x: opset1.concat([opset1.relu(opset1.tanh(x)), fake_quantize(x, 0.0, 1.0, 256)], 1),
    "a step beyond": lambda x: opset1.clamp(x, 0.0, 1.0 + 1 / 65535),
}
_BEYOND = {
    "relu": opset1.relu,
    "joined": lambda x: opset1.concat([opset1.sigmoid(x), x], 1),
    "two steps beyond": lambda x: opset1.clamp(x, 0.0, 1.0 + 2 / 65535),
    "below": lambda x: opset1.clamp(x, -1.0, 1.0),
}


@pytest.mark.parametrize("name", _WITHIN)
def test_what_lies_within_is_not_clipped(name):
    source = _WITHIN[name](parameter((1, 3)))
    before = kinds_of(model(opset1.negative(source)))
    assert stripped(opset1.negative(fake_quantize(source, 0.0, 1.0, 65536)))[0] == before


@pytest.mark.parametrize("name", _BEYOND)
def test_what_may_lie_beyond_is_clipped(name):
    source = _BEYOND[name](parameter((1, 3)))
    found, _ = stripped(opset1.negative(fake_quantize(source, 0.0, 1.0, 65536)))
    assert "FakeQuantize" not in found
    assert found[-3:] == ["Clamp", "Negative", "Result"]


def test_other_levels_stay():
    kinds, reasons = stripped(opset1.relu(fake_quantize(parameter((1, 3)), -1.0, 1.0, 256)))
    assert "FakeQuantize" in kinds
    assert reasons == []


def test_a_mapping_stays_with_the_distance():
    mapping = opset1.fake_quantize(parameter((1, 3)), f32(-1), f32(1), f32(-1), f32(3), 65536)
    kinds, (reason,) = stripped(opset1.relu(mapping))
    assert "FakeQuantize" in kinds
    assert reason.text == "its output interval lies 2 off its input interval"


def test_between_two_outputs_its_clipping_stays():
    """Without it both were one tensor, with the names of both."""
    relu = opset1.relu(parameter((1, 3)))
    kinds, _ = stripped(relu, fake_quantize(relu, -1.0, 1.0, 65536))
    assert "FakeQuantize" not in kinds
    assert "Clamp" in kinds
