"""If over a training and an inference normalization, as Switch and Merge come in, too."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.fusions import BatchNormBranchFusion, fuse
from ovlpt.openvino_api import Core, Manager, Model, opset1
from ovlpt.trace import Outcome, Trace
from tests.fusions import networks as net
from tests.fusions.conftest import difference, inputs_of
from tests.fusions.networks import Numbers, c, index, kinds, model_of, normalized
from tests.fusions.tensorflow_graph import batch_norm_with_switch
from tests.numpy_model import run

CHANNELS = 4


def body(numbers: Numbers, training: bool) -> tuple[Model, object]:
    x = net.parameter([2, CHANNELS, 6, 6], "training" if training else "inference")
    parameters = numbers.batch_norm(CHANNELS)
    if training:
        mean = opset1.reduce_mean(x, index([0, 2, 3]), True)
        centred = opset1.subtract(x, mean)
        variance = opset1.reduce_mean(opset1.multiply(centred, centred), index([0, 2, 3]), True)
        y = opset1.divide(centred, opset1.sqrt(opset1.add(variance, c(1e-3))))
        y = opset1.multiply(y, c(parameters["gamma"].reshape(1, -1, 1, 1)))
    else:
        y = normalized(x, parameters)
    return Model([opset1.result(y)], [x], "body"), x


def network(condition, then_training=True, else_training=False, different_data=False) -> Model:
    """``condition``: a value, or None for an input."""
    numbers = Numbers(1)
    x = net.parameter([2, 3, 6, 6])
    y = net.convolution(x, c(numbers.normal(CHANNELS, 3, 3, 3)), pad=1)
    parameters = [x]
    if condition is None:
        node = opset1.parameter([], np.bool_, name="is_training")
        parameters.append(node)
    else:
        node = condition if hasattr(condition, "get_type_name") else opset1.constant(np.array(condition))
    branch = net.opset8.if_op(node.output(0))
    (then_body, then_x), (else_body, else_x) = body(numbers, then_training), body(numbers, else_training)
    branch.set_then_body(then_body)
    branch.set_else_body(else_body)
    if different_data:
        branch.set_input(y.output(0), then_x, None)
        branch.set_input(opset1.relu(y).output(0), None, else_x)
    else:
        branch.set_input(y.output(0), then_x, else_x)
    branch.set_output(then_body.get_results()[0], else_body.get_results()[0])
    return model_of(opset1.relu(branch.output(0)), *parameters)


@pytest.mark.parametrize(
    "condition",
    [
        False,
        lambda: opset1.logical_not(opset1.constant(np.array(True))),
        lambda: net.opset8.read_value(opset1.constant(np.array(False)), "is_training"),
    ],
)
def test_constant_condition(condition, fused) -> None:
    model, _ = fused(network(condition() if callable(condition) else condition), plugin=True)
    assert kinds(model) == {"Convolution": 1, "Add": 1, "Relu": 1}


def test_input_that_the_caller_decides() -> None:
    """Its value makes the training branch dead."""
    model, trace = network(None), Trace()
    inputs = {"x": inputs_of(network(False))["x"], "is_training": np.array(False)}
    assert kinds(fuse(model, trace))["If"] == 1
    assert "the condition is not a constant" in [str(event.reason) for event in trace]
    result = fuse(model, values={"is_training": False})
    assert kinds(result) == {"Convolution": 1, "Add": 1, "Relu": 1}
    assert difference(run(model, inputs)[0], run(result, inputs)[0]) <= 1e-6


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"condition": True}, "training_output"),
        ({"condition": False, "else_training": True}, "inference_is_training"),
        ({"condition": False, "different_data": True}, "different_data"),
    ],
)
def test_the_three_refusals(arguments, code) -> None:
    trace = Trace()
    assert kinds(fuse(network(**arguments), trace)) == {"Convolution": 1, "If": 1, "Relu": 1} | (
        {"Relu": 2} if code == "different_data" else {}
    )
    assert [event.reason.code for event in trace if event.operation == "If"] == [code]


def test_other_conditions_are_not_its_business() -> None:
    x = net.parameter([2, 3])
    branch = net.opset8.if_op(opset1.constant(np.array(False)))
    models = []
    for operation in (opset1.relu, opset1.tanh):
        inner = net.parameter([2, 3])
        models.append((Model([opset1.result(operation(inner))], [inner], "body"), inner))
    branch.set_then_body(models[0][0])
    branch.set_else_body(models[1][0])
    branch.set_input(x.output(0), models[0][1], models[1][1])
    branch.set_output(models[0][0].get_results()[0], models[1][0].get_results()[0])
    trace = Trace()
    assert kinds(fuse(model_of(branch.output(0), x), trace)) == {"If": 1}
    assert not trace.events


def test_alone() -> None:
    model = network(False)
    inputs = inputs_of(model)
    expected = run(model, inputs)[0]
    manager = Manager()
    manager.register_pass(BatchNormBranchFusion())
    manager.run_passes(model)
    assert kinds(model) == {"Convolution": 1, "BatchNormInference": 1, "Relu": 1}
    assert difference(expected, run(model, inputs)[0]) <= 1e-6


def test_switch_and_merge_of_a_tensorflow_graph(tmp_path) -> None:
    """The front end leaves an If; its inference branch is in small operations, channels last."""
    path = tmp_path / "graph.pb"
    path.write_bytes(batch_norm_with_switch())
    model, trace = Core().read_model(path), Trace()
    assert kinds(model)["If"] == 1
    result = fuse(model, trace, values={"is_training:0": False})
    assert kinds(result) == {"Transpose": 2, "Convolution": 1, "Add": 1, "Relu": 1}
    assert all(event.outcome is Outcome.TRANSFORMED for event in trace)
    x = np.random.default_rng(0).normal(size=(1, 8, 8, 3)).astype(np.float32)
    compiled = Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = compiled([x, np.array(False)] if "x" in str(model.inputs[0].names) else [np.array(False), x])[0]
    name = result.get_parameters()[0].get_friendly_name()
    assert difference(expected, run(result, {name: x})[0]) <= 1e-5
