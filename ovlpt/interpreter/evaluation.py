"""One node evaluated by OpenVINO: by its own reference, or alone on the CPU where it has none."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ovlpt.canonicalize.boolean_masks import BooleanMasks
from ovlpt.device.properties import EXACT
from ovlpt.graph.constants import precision_of, rounded_to, same_operation
from ovlpt.layer_transformation import run_in_turn
from ovlpt.openvino_api import Constant, Core, Model, Node, Output, Tensor, Type, opset1
from ovlpt.precisions import NUMPY
from ovlpt.trace import InputError


def evaluate(node: Node, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The node's outputs for one array per input. Raises `InputError` where OpenVINO can do neither.

    Types that numpy does not have, as u4 and bf16, come and go as float32, and what only moves them computes in it: few
    references know how to move four bits.
    """
    if any(map(_lacks, node.input_values())) and any(map(_lacks, node.outputs())):
        return _in_f32(node, arrays)
    outputs = []
    for port in node.outputs():
        shape = port.get_partial_shape()
        outputs.append(Tensor(port.get_element_type(), shape.to_shape() if shape.is_static else [0]))
    try:
        tensors = list(map(_tensor, node.input_values(), arrays))
        return list(map(_array, outputs)) if node.evaluate(outputs, tensors) else _alone(node, tensors)
    except RuntimeError as error:
        raise InputError(
            f'OpenVINO cannot evaluate {node.get_type_name()} "{node.get_friendly_name()}" alone '
            f"({str(error).strip().splitlines()[-1]}); run the model with compile_model instead"
        ) from error


def _lacks(port: Output | Tensor) -> bool:
    """Whether numpy has no type for that of a port."""
    precision = port.get_element_type().get_type_name()
    return precision not in NUMPY and precision not in ("boolean", "string")


def _in_f32(node: Node, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a node that computes in types that numpy lacks, rounded to them."""
    inputs = [
        opset1.parameter(list(array.shape), Type.f32).output(0) if _lacks(value) else value
        for value, array in zip(node.input_values(), arrays, strict=True)
    ]
    results = evaluate(same_operation(node, inputs), arrays)
    return [
        rounded_to(result, precision_of(port)) if _lacks(port) else result
        for port, result in zip(node.outputs(), results, strict=True)
    ]


def _tensor(value: Output, array: np.ndarray) -> Tensor:
    """What an input is given, in the input's own type: what only moves its data copies as many bytes as the tensor has,
    into an output of that type, and a wider one would be written over its end.
    """
    if not _lacks(value):
        return Tensor(np.asarray(array, NUMPY.get(precision_of(value)), order="C"))
    return _converted(Tensor(np.asarray(array, np.float32, order="C")), value.get_element_type())


def _array(tensor: Tensor) -> np.ndarray:
    return np.array((_converted(tensor, Type.f32) if _lacks(tensor) else tensor).data)


def _converted(tensor: Tensor, element_type: Type) -> Tensor:
    result = Tensor(element_type, tensor.get_shape())
    convert = opset1.convert(opset1.parameter(list(tensor.get_shape()), tensor.get_element_type()), element_type)
    if not convert.evaluate([result], [tensor]):
        raise RuntimeError(f"there is no conversion to {element_type.get_type_name()}")
    return result


def _alone(node: Node, tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """GatherElements, Roll, the bitwise operations … have no reference that a node can call. A boolean mask is read as it is
    defined.
    """
    inputs, parameters, values = [], [], []
    for value, tensor in zip(node.input_values(), tensors, strict=True):
        source = value.get_node()
        if not isinstance(source, Constant):
            source = opset1.parameter(list(tensor.get_shape()), value.get_element_type())
            parameters.append(source)
            values.append(tensor)
        inputs.append(source.output(0))
    copy = same_operation(node, inputs)
    model = Model([opset1.result(output) for output in copy.outputs()], parameters)
    run_in_turn(model, [BooleanMasks])
    request = _core().compile_model(model, "CPU", EXACT).create_infer_request()
    request.infer(values)
    return [_array(request.get_output_tensor(index)) for index in range(len(model.outputs))]


@functools.cache
def _core() -> Core:
    return Core()
