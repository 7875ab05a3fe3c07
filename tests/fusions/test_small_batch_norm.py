"""Normalizations in small operations: every spelling, layout and kind of parameter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ovlpt.fusions import FreezeVariables, SmallBatchNormFusion, fuse
from ovlpt.fusions.channelwise import batch_norm_inputs
from ovlpt.fusions.evaluation import evaluate
from ovlpt.openvino_api import Manager, Model, opset1
from ovlpt.trace import InputError, Outcome, Trace
from tests.fusions import networks as net
from tests.fusions.conftest import difference, inputs_of
from tests.fusions.networks import SPELLINGS, Numbers, c, kinds, model_of, small_batch_norm, to_nhwc, weighted
from tests.numpy_model import run

PRESENT = list(itertools.product((False, True), repeat=2))
SOURCES = ("Const", "Convert", "ReadValue", "ReadValue+Assign", "Parameter")


class Source:
    """Makes the parameters of a normalization: constants, variables or inputs."""

    def __init__(self, kind: str):
        self.kind, self.sinks, self.parameters, self.values = kind, [], [], {}

    def __call__(self, name, values):
        if self.kind == "Const":
            return c(values)
        if self.kind == "Convert":
            return opset1.convert(opset1.constant(values.astype(np.float64)), "f32")
        if self.kind == "Parameter":
            node = net.parameter(list(values.shape), name)
            self.parameters.append(node)
            self.values[name] = values
            return node
        node = net.opset8.read_value(c(values), name)
        if self.kind == "ReadValue+Assign":
            self.sinks.append(net.opset8.assign(node, name))
        return node


def structure(spelling, scale, offset, layout="NCHW", source=None, seed=0, kind="conv", before=lambda y: y):
    """(model, source, parameters of the normalization)."""
    numbers, source = Numbers(seed), source or Source("Const")
    x, y, channels = weighted(kind, numbers)
    y = before(y)
    parameters = numbers.batch_norm(channels)
    if layout == "NHWC":
        y = to_nhwc(y)
    rank = len(y.shape)
    y, _ = small_batch_norm(y, parameters, rank - 1 if layout == "NHWC" else 1, rank, spelling, scale, offset, source)
    return model_of(y, x, *source.parameters, sinks=source.sinks), source, parameters


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("scale", "offset"), PRESENT)
def test_every_variant(scale: bool, offset: bool, layout: str, source: str) -> None:
    for seed, spelling in enumerate(SPELLINGS):
        model, made, _ = structure(spelling, scale, offset, layout, Source(source), seed)
        inputs = inputs_of(model) | made.values
        expected = run(model, inputs)[0]
        trace = Trace()
        result = fuse(model, trace, values=made.values)
        centred = offset or not spelling.startswith("simplified")
        transposed = {"Transpose": 1} if layout == "NHWC" else {}
        assert kinds(result) == {"Convolution": 1, **({"Add": 1} if centred else {}), **transposed}
        assert difference(expected, run(result, inputs)[0]) <= 1e-5
        assert all(event.outcome is Outcome.TRANSFORMED for event in trace)
        assert not result.get_sinks()
        assert not result.get_variables()
        assert [parameter.get_friendly_name() for parameter in result.get_parameters()] == ["x"]


@pytest.mark.parametrize("kind", net.WEIGHTED)
def test_after_any_quantizable_operation(kind: str, fused) -> None:
    for spelling in SPELLINGS:
        model, _, _ = structure(spelling, True, True, kind=kind, seed=3)
        result, _ = fused(model)
        assert kinds(result)["BatchNormInference"] == 0
        assert sum(kinds(result).values()) == 2


def test_bias_before_the_structure(fused) -> None:
    for spelling in SPELLINGS:
        model, _, _ = structure(spelling, True, True, before=lambda y: opset1.add(y, c(2.5)))
        result, _ = fused(model)
        assert kinds(result) == {"Convolution": 1, "Add": 1}


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("spelling", SPELLINGS[:-1])
@pytest.mark.parametrize(("scale", "offset"), PRESENT)
def test_alone_it_leaves_one_normalization_with_the_parameters(scale, offset, spelling, layout) -> None:
    """An absent scale is ones, an absent offset exactly zeros."""
    model, _, parameters = structure(spelling, scale, offset, layout)
    inputs = inputs_of(model)
    expected = run(model, inputs)[0]
    manager = Manager()
    manager.register_pass(SmallBatchNormFusion())
    manager.run_passes(model)
    assert kinds(model)["BatchNormInference"] == 1
    assert sum(kinds(model).values()) == (2 if layout == "NCHW" else 5)
    node = next(node for node in model.get_ops() if node.get_type_name() == "BatchNormInference")
    actual = {name: evaluate(value) for name, value in batch_norm_inputs(node).items() if name != "data"}
    wanted = parameters | ({} if scale else {"gamma": 1.0}) | ({} if offset else {"beta": 0.0})
    for name, values in actual.items():
        np.testing.assert_array_equal(values, np.broadcast_to(wanted[name], values.shape))
    assert node.get_attributes()["epsilon"] == pytest.approx(1e-3)
    assert difference(expected, run(model, inputs)[0]) <= 1e-6


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_inner_node_read_outside_stops_it(spelling: str) -> None:
    numbers = Numbers(1)
    which = 0
    while True:
        x, y, channels = weighted("conv", numbers)
        y, inner = small_batch_norm(y, numbers.batch_norm(channels), 1, 4, spelling, True, True)
        if spelling == "simplified":
            inner = [y.input_value(0).get_node()]
        if which == len(inner):
            break
        outside = opset1.relu(inner[which])
        model = Model([opset1.result(y), opset1.result(outside)], [x], "escape")
        before, trace = kinds(model), Trace()
        result = fuse(model, trace)
        assert kinds(result) == before
        assert {event.reason.code for event in trace} == {"inner_node_read"}
        assert inner[which].get_friendly_name() in " ".join(str(event.reason) for event in trace)
        which += 1
    assert which >= 1


def test_output_may_have_several_readers(fused) -> None:
    """Hard swish: the normalized value is read twice, once by an addition of a constant."""
    for spelling in SPELLINGS:
        numbers = Numbers(2)
        x, y, channels = weighted("conv", numbers)
        y, _ = small_batch_norm(y, numbers.batch_norm(channels), 1, 4, spelling, True, True)
        gate = opset1.clamp(opset1.add(y, c(3.0)), 0.0, 6.0)
        model, _ = fused(model_of(opset1.multiply(y, opset1.multiply(gate, c(1 / 6))), x))
        assert kinds(model) == {"Convolution": 1, "Add": 2, "Clamp": 1, "Multiply": 2}


def test_parameters_may_be_shared(fused) -> None:
    """Two normalizations with one set of constants: those are leaves, not inner nodes."""
    numbers = Numbers(2)
    made = {}

    def source(name, values):
        return made.setdefault(name, c(values))

    x, y, channels = weighted("conv", numbers)
    parameters = numbers.batch_norm(channels)
    y, _ = small_batch_norm(y, parameters, 1, 4, "multiply_power", True, True, source)
    y = net.convolution(opset1.relu(y), c(numbers.normal(channels, channels, 1, 1)))
    y, _ = small_batch_norm(y, parameters, 1, 4, "multiply_power", True, True, source)
    model, _ = fused(model_of(y, x))
    assert kinds(model) == {"Convolution": 2, "Add": 2, "Relu": 1}


def test_data_must_come_from_a_quantizable_operation() -> None:
    for spelling in SPELLINGS:
        model, _, _ = structure(spelling, True, True, before=opset1.relu)
        before, trace = kinds(model), Trace()
        assert kinds(fuse(model, trace)) == before
        assert {event.reason.code for event in trace} == {"not_quantizable"}
        assert "Relu" in str(trace.events[0].reason)


def test_attention_scale_is_no_normalization() -> None:
    q, k = net.parameter([2, 4, 8], "q"), net.parameter([2, 4, 8], "k")
    model = model_of(opset1.multiply(opset1.matmul(q, k, False, True), c(0.125)), q, k)
    assert kinds(fuse(model)) == {"MatMul": 1, "Multiply": 1}


def _variables(assign) -> tuple[Model, Source]:
    source = Source("ReadValue")
    model, _, _ = structure("multiply_power", True, True, source=source)
    reads = [node for node in model.get_ops() if node.get_type_name() == "ReadValue"]
    assigns = [assign(read, read.get_attributes()["variable_id"]) for read in reads]
    model.add_sinks(assigns)
    return model


def test_variable_that_changes_is_refused() -> None:
    model = _variables(lambda read, name: net.opset8.assign(opset1.multiply(read, c(0.9)), name))
    trace = Trace()
    result = fuse(model, trace)
    assert kinds(result)["ReadValue"] == kinds(result)["Assign"] == 4
    assert kinds(result)["Convolution"] == 1
    assert {e.reason.code for e in trace if e.transformation == "FreezeVariables"} == {"assigned"}
    assert all(event.outcome is Outcome.REJECTED for event in trace)


def test_variable_that_holds_activations_is_left_alone() -> None:
    x = net.parameter([1, 4])
    read = net.opset8.read_value(c(np.zeros((1, 4))), "state")
    model = model_of(opset1.concat([x, read], 1), x)
    trace = Trace()
    assert kinds(fuse(model, trace)) == {"ReadValue": 1, "Concat": 1}
    assert [event.reason.code for event in trace] == ["other_reader"]


def test_values_that_do_not_fit() -> None:
    model, _, _ = structure("multiply_power", True, True, source=Source("Parameter"))
    with pytest.raises(InputError, match=r'no input "gama" to give a value to; the model has x, '):
        fuse(model, values={"gama": np.ones(3)})
    with pytest.raises(InputError, match=r'the value for "gamma" has the shape \[77\]; it must fit'):
        fuse(model, values={"gamma": np.ones(77)})


def test_parameters_without_a_value_are_refused() -> None:
    model, _, _ = structure("subtract_divide_sqrt", True, True, source=Source("Parameter"))
    before, trace = kinds(model), Trace()
    assert kinds(fuse(model, trace)) == before
    assert not any(event.outcome is Outcome.TRANSFORMED for event in trace)


def test_freezing_alone() -> None:
    model, _, _ = structure("multiply_power", True, True, source=Source("ReadValue+Assign"))
    inputs = inputs_of(model)
    expected = run(model, inputs)[0]
    manager = Manager()
    manager.register_pass(FreezeVariables())
    manager.run_passes(model)
    assert not model.get_variables()
    assert not model.get_sinks()
    assert kinds(model)["ReadValue"] == 0
    np.testing.assert_array_equal(expected, run(model, inputs)[0])
