"""What a quantized model computes, each FakeQuantize as such."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.bodies import bodies_of
from ovlpt.graph.constants import constant, precision_of, same_operation, values_of
from ovlpt.inspect import float_model
from ovlpt.interpreter.evaluation import evaluate
from ovlpt.openvino_api import Constant, Model, Node, Output, Type, opset1
from ovlpt.precisions import FLOAT8
from ovlpt.trace import InputError
from tools.parity.driver import core

_REAL = ("f16", "f32")


class NoTruth(RuntimeError):
    """Neither the plugin nor its operations alone can compute a model."""


def simulate(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs as `ovlpt check` simulates them; where the plugin cannot run that model, each operation by itself."""
    try:
        found = [np.array(value) for value in float_model.simulate(model, core())(inputs).values()]
    except (InputError, RuntimeError) as error:
        return _in_steps(model, inputs, error)
    if any(
        values.shape != tuple(port.get_shape())
        for values, port in zip(found, model.outputs, strict=True)
        if port.get_partial_shape().is_static
    ):
        return _in_steps(model, inputs, RuntimeError("the plugin gives a value of another shape"))
    return found


def _in_steps(model: Model, inputs: list[np.ndarray], fault: Exception) -> list[np.ndarray]:
    """Operation by operation, all real numbers in f32: no pass of the plugin changes the model. Raises `NoTruth`."""
    values: dict[tuple[int, int], np.ndarray] = {}
    given = dict(zip((node.get_instance_id() for node in model.get_parameters()), inputs, strict=True))
    results = []
    for node in model.get_ordered_ops():
        arguments = [values[each.get_node().get_instance_id(), each.get_index()] for each in node.input_values()]
        if node.get_type_name() == "Result":
            continue
        try:
            found = (
                _outputs(node, arguments, given)
                if next(bodies_of(node), None) is None
                else _run_alone(model, node, arguments)
            )
        except (InputError, RuntimeError) as error:
            raise NoTruth(str(fault)) from error
        for port, array in enumerate(found):
            values[node.get_instance_id(), port] = array
    for node in model.get_results():
        source = node.input_value(0)
        array = values[source.get_node().get_instance_id(), source.get_index()]
        results.append(array.astype(np.float16) if precision_of(source) == "f16" else array)
    return results


def _outputs(node: Node, arguments: list[np.ndarray], given: dict[int, np.ndarray]) -> list[np.ndarray]:
    if node.get_instance_id() in given:
        return [_wide(given[node.get_instance_id()])]
    if isinstance(node, Constant):
        return [_wide(values_of(node))]
    is_conversion = node.get_type_name() == "Convert" and precision_of(node.input_value(0)) not in FLOAT8
    if is_conversion and precision_of(node.output(0)) in _REAL:
        return [arguments[0].astype(np.float32)]
    inputs = [_source(value, array) for value, array in zip(node.input_values(), arguments, strict=True)]
    return [_wide(array) for array in evaluate(same_operation(node, inputs), arguments)]


def _run_alone(model: Model, node: Node, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """An operation with bodies, which cannot be made anew: cut out of a copy of the model."""
    copy = next(each for each in model.clone().get_ops() if each.get_friendly_name() == node.get_friendly_name())
    parameters, values = [], []
    for each, array in zip(copy.inputs(), arguments, strict=True):
        if not isinstance(each.get_source_output().get_node(), Constant):
            parameters.append(opset1.parameter(list(array.shape), each.get_element_type()))
            each.replace_source_output(parameters[-1].output(0))
            values.append(array)
    alone = Model([opset1.result(output) for output in copy.outputs()], parameters)
    return [_wide(np.array(array)) for array in float_model.simulate(alone, core())(values).values()]


def _source(value: Output, array: np.ndarray) -> Output:
    """What stands for an input of an operation: constants stay such, as some are read when it is made."""
    precision = "f32" if precision_of(value) in _REAL else precision_of(value)
    if isinstance(value.get_node(), Constant):
        return constant(array, precision).output(0)
    return opset1.parameter(list(array.shape), getattr(Type, precision)).output(0)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == np.float16 else array
