from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import LowPrecision
from ovlpt.openvino_api import Manager, opset1
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.graphs import f32, fake_quantize, model, parameter, weights
from tests.networks import int8_weights

_SHAPE = (1, 2, 6, 4)


def layer(data):
    return opset1.matmul(data, int8_weights([8, 4]), False, True)


# What a constant with more axes than the data stands after or before
PLACES = {
    "factor": lambda x, c: opset1.multiply(fake_quantize(x, 0.0, 2.55), c),
    "term": lambda x, c: opset1.add(c, fake_quantize(x, 0.0, 2.55)),
    "difference": lambda x, c: opset1.subtract(fake_quantize(x, 0.0, 2.55), c),
    "factor before an interval": lambda x, c: fake_quantize(opset1.multiply(x, c), 0.0, 2.55),
    "term before an interval": lambda x, c: fake_quantize(opset1.add(x, c), 0.0, 2.55),
    "factor before a layer": lambda x, c: layer(opset1.multiply(fake_quantize(x, 0.0, 2.55), c)),
    "term before a layer": lambda x, c: layer(opset1.add(fake_quantize(x, 0.0, 2.55), c)),
    "factor after a layer": lambda x, c: opset1.multiply(layer(fake_quantize(x, 0.0, 2.55)), c),
    "factor between": lambda x, c: fake_quantize(opset1.multiply(layer(fake_quantize(x, 0.0, 2.55)), c), 0.0, 2.55),
    "bias": lambda x, c: opset1.relu(opset1.add(layer(fake_quantize(x, 0.0, 2.55)), c)),
    "maximum": lambda x, c: opset1.multiply(opset1.maximum(fake_quantize(x, 0.0, 2.55), c), c),
}


@pytest.mark.parametrize("opened", [False, True], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1), (1, 1, 2, 1, 1), (2, 1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("place", PLACES)
def test_axes_that_a_constant_adds_are_kept(core, infer, place, sizes, opened):
    constant = f32(np.linspace(0.5, 0.75, int(np.prod(sizes))).reshape(sizes))
    net = model(PLACES[place](parameter(_SHAPE), constant))
    inputs = inputs_of(net)
    parts = []
    for values in constant.data.reshape(-1, *sizes[-len(_SHAPE) :]):  # OpenVINO itself throws at some with more axes
        part = model(PLACES[place](parameter(_SHAPE), f32(values)))
        parts.append(core.compile_model(part, "CPU", TRUTH)(inputs)[0].copy())
    expected = np.stack(parts).reshape(*sizes[: -len(_SHAPE)], *parts[0].shape)
    if opened:
        net.reshape({net.input(0): (-1, 2, -1, 4)})
    ranks = [output.get_partial_shape() for output in net.outputs]
    alone = net.clone()
    manager = Manager()
    manager.register_pass(LowPrecision())
    manager.run_passes(alone)
    for changed in (alone, ovlpt.transform(net, core=core)):
        assert [output.get_partial_shape() for output in changed.outputs] == ranks
    found = ovlpt.compile_model(net, "CPU", EXACT, core=core)(inputs)[0]
    assert found.shape == expected.shape
    assert_close([found], [expected], level=0.02)


def test_weights_are_left_alone():
    """Their scale has as many axes as it likes."""
    net = model(
        opset1.convolution(
            fake_quantize(parameter(_SHAPE), 0.0, 2.55), weights((4, 2, 1, 1), 0.02), [1, 1], [0, 0], [0, 0], [1, 1]
        )
    )
    trace = ovlpt.Trace()
    ovlpt.transform(net, trace=trace)
    assert not [event for event in trace if event.transformation == "AddedAxes"]
