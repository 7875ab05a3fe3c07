"""Which of two quantized inputs keeps its dequantization: what Add and Multiply share."""

import numpy as np
import pytest

from ovlpt import LowPrecision, Params
from ovlpt.openvino_api import Manager, opset1
from tests.conftest import Transformed
from tests.graphs import dequantization, fake_quantize, model, parameter, weights


@pytest.mark.parametrize("behind_layers", [False, True])
@pytest.mark.parametrize(
    "other, full",
    [
        ((1, 8, 1, 1), "other"),  # of 1x1 space: the larger one is empty, as OpenVINO's guide says
        ((1, 1, 4, 4), "data"),  # its volumes decide nothing else, in the native library and here
        ((1, 8, 1, 4), "data"),
        ((1, 8, 4, 4), "data"),
    ],
)
def test_which_of_two_volumes_keeps_its_dequantization(other, full, behind_layers):
    """After a layer each, or after none."""
    data, small = (
        fake_quantize(layer(name, shape) if behind_layers else parameter(shape, name), 0.0, high, name=name)
        for shape, name, high in (((1, 8, 4, 4), "data", 2.55), (other, "other", 5.1))
    )
    for reads in ([data, small], [small, data]) if full == "other" else ([data, small],):
        graph = model(opset1.relu(opset1.add(*reads)))
        manager = Manager()
        manager.register_pass(LowPrecision())
        manager.run_passes(graph)
        add = next(node for node in graph.get_ops() if node.get_type_name() == "Add")
        empty = [
            value.get_node().get_friendly_name()
            for value in add.input_values()
            if value.get_element_type().get_type_name() == "u8"
        ]
        assert empty == [{"data": "other", "other": "data"}[full]]


def layer(name: str, shape=(1, 8, 4, 4)):
    """A quantized convolution, whose result is quantized, too."""
    data = fake_quantize(parameter((1, 8, *shape[2:]), f"x_{name}"), 0.0, 2.55, name=f"{name}_data")
    node = opset1.convolution(data, weights([shape[1], 8, 1, 1], 0.01), [1, 1], [0, 0], [0, 0], [1, 1])
    node.set_friendly_name(f"{name}_layer")
    return node


def branch(name: str, high: float = 2.55, data=None):
    return fake_quantize(parameter((1, 8, 4, 4), name) if data is None else data, 0.0, high, name=name)


def one_is_quantized():
    return [opset1.sigmoid(parameter((1, 8, 4, 4), "a")), branch("b")], [], "b"


def one_has_a_fake_quantize():
    """The dequantization of the other came through a pooling."""
    pooled = opset1.max_pool(branch("b"), [1, 1], [1, 1], [1, 1], [3, 3])
    pooled.set_friendly_name("pooled")
    return [branch("a"), pooled], [], "pooled"


def one_has_several_consumers():
    b = branch("b", 5.1)
    return [branch("a"), b], [opset1.max_pool(b, [1, 1], [0, 0], [0, 0], [2, 2])], "b"


def one_layer_has_several_consumers():
    a, b = layer("a"), layer("b")
    return [branch("a", data=a), branch("b", data=b)], [opset1.sigmoid(b)], "b"


STEPS = [one_is_quantized, one_has_a_fake_quantize, one_has_several_consumers, one_layer_has_several_consumers]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("step", STEPS, ids=lambda each: each.__name__)
def test_which_branch_is_empty(step, turned):
    """Steps 1, 2, 3 and 6 of OpenVINO's page on Add, whichever input comes first."""
    reads, others, expected = step()
    result = Transformed(model(opset1.relu(opset1.add(*(reads[::-1] if turned else reads))), *others))
    (add,) = (node for node in result.after.get_ops() if node.get_type_name() == "Add")
    empty = [
        value.get_node().get_friendly_name()
        for value in add.input_values()
        if value.get_element_type().get_type_name() == "u8"
    ]
    assert empty == [expected]
    result.assert_numbers()


PASSES = {"Add": "Add", "Multiply": "MultiplyPartial"}
each_operation = pytest.mark.parametrize("name", PASSES)


@each_operation
def test_a_scale_along_space_stays(assert_rejected, name):
    scales = np.linspace(0.5, 2, 4).reshape(1, 1, 4, 1)
    inputs = [dequantization(parameter((1, 8, 4, 4), each, np.uint8), scales) for each in "ab"]
    assert_rejected(model(getattr(opset1, name.lower())(*inputs)), PASSES[name], "not_per_channel")


@each_operation
def test_floats_stay(assert_rejected, name):
    inputs = [parameter((1, 8, 4, 4), each) for each in "ab"]
    assert_rejected(model(getattr(opset1, name.lower())(*inputs)), PASSES[name], "not_quantized")


@each_operation
@pytest.mark.parametrize("native_only", [False, True])
def test_a_scale_of_more_than_five_axes_stays(assert_rejected, name, native_only):
    """Behind it each of several readers would compute the rest, as those of the sampled places of a deformable attention."""
    shape = (1, 8, 2, 3, 2, 2)
    inputs = [dequantization(parameter(shape, each, np.uint8), np.full((1,) * len(shape), 0.5)) for each in "ab"]
    net = model(getattr(opset1, name.lower())(*inputs))
    assert_rejected(net, PASSES[name], "not_per_channel", Params(native_only=native_only))
