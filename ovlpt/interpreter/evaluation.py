"""One node evaluated by OpenVINO: by its own reference, or alone on the CPU where it has none."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ovlpt.device.properties import EXACT
from ovlpt.graph.constants import precision_of, same_operation
from ovlpt.openvino_api import Constant, Core, Model, Node, Output, Tensor, opset1
from ovlpt.precisions import FLOAT8
from ovlpt.trace import InputError


def evaluate(node: Node, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The node's outputs for one array per input. Raises `InputError` where OpenVINO can do neither."""
    outputs = []
    for port in node.outputs():
        shape = port.get_partial_shape()
        outputs.append(Tensor(port.get_element_type(), shape.to_shape() if shape.is_static else [0]))
    try:
        if node.evaluate(outputs, list(map(_tensor, node.input_values(), arrays))):
            return [np.array(tensor.data) for tensor in outputs]
        return _alone(node, arrays)
    except RuntimeError as error:
        raise InputError(
            f'OpenVINO cannot evaluate {node.get_type_name()} "{node.get_friendly_name()}" alone '
            f"({str(error).strip().splitlines()[-1]}); run the model with compile_model instead"
        ) from error


def _tensor(value: Output, array: np.ndarray) -> Tensor:
    """What an input is given; f8, for which numpy has no type, comes as its bytes."""
    if precision_of(value) not in FLOAT8:
        return Tensor(np.asarray(array, order="C"))
    tensor = Tensor(value.get_element_type(), array.shape)
    tensor.data[...] = array
    return tensor


def _alone(node: Node, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """GatherElements, Roll, the bitwise operations … have no reference that a node can call."""
    inputs, parameters, values = [], [], []
    for value, array in zip(node.input_values(), arrays, strict=True):
        source = value.get_node()
        if not isinstance(source, Constant):
            source = opset1.parameter(list(array.shape), value.get_element_type())
            parameters.append(source)
            values.append(array)
        inputs.append(source.output(0))
    copy = same_operation(node, inputs)
    model = Model([opset1.result(output) for output in copy.outputs()], parameters)
    return [np.array(array) for array in _core().compile_model(model, "CPU", EXACT)(values).values()]


@functools.cache
def _core() -> Core:
    return Core()
