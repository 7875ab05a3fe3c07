import numpy as np
import pytest

from ovlpt import Trace
from ovlpt.cleanup.fq_stripping import FQStrippingTransformation
from ovlpt.openvino_api import Manager
from tests.conftest import run_pass
from tests.graphs import dequantization, f32, fake_quantize, i64, model, opset1, parameter, run


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


def test_an_infinite_end_is_that_of_all_numbers():
    """The least number in steps of a scale that is rounded up is beyond f32."""
    kinds, reasons = stripped(opset1.relu(fake_quantize(parameter((1, 3)), -np.inf, 0.0, 65536)))
    assert kinds == ["Parameter", "Clamp", "Relu", "Result"]
    assert reasons == [None]


def test_clipping_by_channel():
    ends = [f32(np.full((1, 3), sign) * [[1, 2, 3]]) for sign in (-1, 1)]
    graph = model(opset1.relu(opset1.fake_quantize(parameter((1, 3)), *ends, *ends, 65536)))
    run_pass(graph, FQStrippingTransformation([65536]))
    assert "FakeQuantize" not in kinds_of(graph)
    np.testing.assert_array_equal(run(graph, [np.full((1, 3), 2.5, np.float32)])[0], [[1, 2, 2.5]])


def on_grid(x, step, beyond):
    return fake_quantize(x, beyond - 255 * step + 1, beyond + 1, 256)


def integers(x, scale, zero_point=None):
    quantize = opset1.fake_quantize(x, f32(0), f32(1), f32(0), f32(255), 256)
    return dequantization(opset1.convert(quantize, "u8"), np.reshape(scale, (1, -1)), zero_point)


_WITHIN = {
    "softmax": lambda x: opset1.softmax(x, 1),
    "moved": lambda x: opset1.reshape(opset1.sigmoid(x), i64(3, 1), False),
    "relu": lambda x: opset1.relu(opset1.clamp(x, -8.0, 1.0)),
    "joined": lambda x: opset1.concat([opset1.relu(opset1.tanh(x)), fake_quantize(x, 0.0, 1.0, 256)], 1),
    "a step beyond": lambda x: opset1.clamp(x, 0.0, 1.0 + 1 / 65535),
    "half a step of a coarser grid beyond": lambda x: opset1.transpose(on_grid(x, 1 / 255, 0.5 / 255), i64(1, 0)),
    "gathered": lambda x: opset1.gather(opset1.sigmoid(x), i64(2, 0), i64(1)),
    "half a step of integers beyond": lambda x: integers(x, 1 / 254.5),
    "scaled": lambda x: opset1.multiply(integers(x, 2 / 254.5, 0.3), f32(0.5)),
}
_BEYOND = {
    "relu": opset1.relu,
    "joined": lambda x: opset1.concat([opset1.sigmoid(x), x], 1),
    "two steps beyond": lambda x: opset1.clamp(x, 0.0, 1.0 + 2 / 65535),
    "below": lambda x: opset1.clamp(x, -1.0, 1.0),
    "a step of a coarser grid beyond": lambda x: on_grid(x, 1 / 255, 1 / 255),
    "a step of integers beyond": lambda x: integers(x, 1 / 254),
    "scaled": lambda x: opset1.multiply(on_grid(x, 1 / 255, 0.0), f32(2)),
    "turned": lambda x: opset1.multiply(on_grid(x, 1 / 255, 0.0), f32(-1)),
    "integers by channel": lambda x: integers(x, [1 / 255, 1 / 128, 1 / 255]),
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
    assert found[-3:] == ["Clamp", "Negative", "Result"]


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.4, 0.6])
def test_what_is_quantized_again_to_the_same_ends_is_not_clipped(shift):
    """``shift``: of the coarser interval, in its steps."""
    ends, data = (shift / 255, 1 + shift / 255), np.linspace(-0.5, 1.5, 60, dtype=np.float32).reshape(20, 3)
    graph = model(fake_quantize(fake_quantize(parameter((20, 3)), 0.0, 1.0, 65536), *ends, 256))
    expected = np.rint((np.clip(np.clip(data, 0, 1), *ends) - ends[0]) * 255) / 255 + ends[0]
    run_pass(graph, FQStrippingTransformation([65536]))
    assert ("Clamp" in kinds_of(graph)) == (shift == 0.6)
    np.testing.assert_allclose(run(graph, [data])[0], expected, atol=1e-6)


def test_what_another_reader_takes_is_clipped():
    wide = fake_quantize(parameter((1, 3)), 0.0, 1.0, 65536)
    assert "Clamp" in stripped(fake_quantize(wide, 0.0, 1.0, 256), opset1.negative(wide))[0]


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
