"""What follows an If of dynamic sizes, in the first inference."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Core, Model, NodeFactory, Type, opset1, opset8
from tests.conftest import EXACT
from tests.lowered import FORMS, compiled_in
from tests.networks import const, convolution, model, parameter, quantized


def branching(data, size: list[int], precision: str = "f32"):
    """An If of dynamic sizes: twice or three times the data, which is not below 0."""
    inner = [opset1.parameter(size, getattr(Type, precision)) for _ in range(2)]
    bodies = [
        Model([opset1.relu(opset1.multiply(each, const(factor, precision)))], [each], "body")
        for each, factor in zip(inner, (2.0, 3.0), strict=True)
    ]
    largest = opset1.reduce_max(data, const([0, 1, 2, 3], "i64"))
    node = opset8.if_op(opset1.greater(largest, const(0.5, precision)).output(0))
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(data.output(0), *inner)
    node.set_output(*(body.get_results()[0] for body in bodies))
    return node


def network():
    """Layers whose data the plugin lays out anew, one after the If, one beside it."""
    x = parameter([-1, 3, -1, -1])
    beside = convolution(quantized(x, -2.56, 2.54), 16, seed=1)
    return model([convolution(quantized(branching(x, [-1, 3, -1, -1]), 0, 5.1), 16), opset1.relu(beside)], x)


@pytest.fixture(scope="module")
def inputs():
    return [np.random.default_rng(0).uniform(-2, 2, (1, 3, 6, 6)).astype(np.float32)]


@pytest.fixture(scope="module")
def expected(inputs):
    """With all sizes known."""
    net = network()
    net.reshape([1, 3, 6, 6])
    return [np.array(value) for value in simulate(net, Core())(inputs).values()]


@pytest.mark.parametrize("form", FORMS)
def test_a_layer_after_branches_of_open_sizes(by_form, form, inputs, expected):
    """Other memory was read at most compilations: numbers of any size."""
    for _ in range(8):
        np.testing.assert_allclose(by_form(network(), inputs, form), expected[0], atol=0.02 * np.abs(expected[0]).max())


@pytest.mark.parametrize("form", FORMS)
def test_branches_in_f16_that_are_an_output(core, tmp_path, form, inputs):
    """The plugin computes them in f32, and their output reads a Convert."""
    x = parameter([-1, 3, -1, -1], "f16")
    ends = [const(end, "f16") for end in (-2.56, 2.54) * 2]
    beside = opset1.matmul(opset1.fake_quantize(x, *ends, 256), x, False, True)
    net = model(
        [beside, branching(x, [-1, 3, -1, -1], "f16"), NodeFactory("opset4").create("HSwish", [beside.output(0)], {})],
        x,
    )
    data = inputs[0][:, :, :4, :3].astype(np.float16)
    expected = np.maximum(data * (2.0 if data.max() > 0.5 else 3.0), 0)
    for _ in range(8):
        found = compiled_in(form, net, core, tmp_path)([data])[1]
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_the_simulation_waits_for_branches(core, inputs, expected):
    for _ in range(8):
        found = list(simulate(network(), core)(inputs).values())
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3)


def test_nothing_is_added_where_sizes_are_known(core):
    net = network()
    net.reshape([1, 3, 6, 6])
    kinds = [node.get_type_name() for node in ovlpt.transform(net, core=core).get_ordered_ops()]
    assert "If" in kinds
    assert "Broadcast" not in kinds


@pytest.mark.parametrize("native_only", [False, True])
def test_a_shift_of_integers_in_f16_beside_branches(core, native_only):
    """A model with bodies stays in f16, where a shift gave f16 and its scale read f32, which threw."""
    x, y = parameter([1, 3, 6, 6], "f16"), parameter([1, 6, 12], "f16", "y")
    ends = [const(value, "f16") for value in (-4, 3.97, -128, 127)]
    stored = opset1.clamp(opset1.convert(opset1.fake_quantize(y, *ends, 256), "i8"), -63, 63)
    scaled = opset1.multiply(opset1.convert(stored, "f16"), const(0.03125, "f16"))
    shift = const(np.linspace(-1, 1, 6).reshape(1, 6, 1), "f16")
    net = model([branching(x, [1, 3, 6, 6], "f16"), opset1.add(scaled, shift)], [x, y])
    random = np.random.default_rng(0)
    data = [random.uniform(-2, 2, port.shape).astype(np.float16) for port in net.inputs]
    lowered = ovlpt.transform(net, core=core, native_only=native_only)
    found = core.compile_model(lowered, "CPU", {**ovlpt.lpt_properties(lowered, "CPU"), **EXACT})(data)
    for one, other in zip(found.values(), simulate(net, core)(data).values(), strict=True):
        np.testing.assert_allclose(one, other, atol=4e-3)
