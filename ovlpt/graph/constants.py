"""Constants of the graph as numpy arrays, and back."""

from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Constant, Node, NodeFactory, Output, Type, opset1
from ovlpt.precisions import NUMPY, REAL


def precision_of(output: Output) -> str:
    """Element type of a value as a string: "u8", "f32" …"""
    return output.get_element_type().get_type_name()


def constant(values: np.ndarray | float, precision: str = "f32") -> Constant:
    """A Constant of ``precision`` with the shape of ``values``."""
    if precision in NUMPY:
        return Constant(np.asarray(values, NUMPY[precision]))
    return opset1.constant(np.asarray(values, np.float32), getattr(Type, precision))  # bf16 has no numpy type


def values_of(node: Constant) -> np.ndarray:
    """The values of a Constant in its own shape; f16, bf16 and 4-bit types come as float32."""
    precision = node.get_output_element_type(0).get_type_name()
    if precision in NUMPY and precision != "f16":
        return node.data
    return np.asarray(node.get_data(dtype=np.float32))


def rounded_to(values: np.ndarray, precision: str) -> np.ndarray:
    """The float32 values that a real ``precision`` can hold, nearest to ``values``."""
    return values if precision == "f32" else values_of(constant(values, precision)).astype(np.float32, copy=False)


def constant_above(output: Output) -> np.ndarray | None:
    """The value of a Constant, or of a Constant behind one Convert, as float32; None for anything else."""
    node = output.get_node()
    if node.get_type_name() == "Convert":
        node = node.input_value(0).get_node()
    return values_of(node).astype(np.float32, copy=False) if isinstance(node, Constant) else None


def same_operation(node: Node, inputs: list[Output]) -> Node:
    """A new node that does to other inputs what ``node`` does to its own."""
    return NodeFactory(node.get_type_info().version_id).create(node.get_type_name(), inputs, node.get_attributes())


def is_scalar_like(values: np.ndarray) -> bool:
    """One element, or all elements equal."""
    return values.size == 1 or bool((values == values.flat[0]).all())


def to_scalar_if_possible(values: np.ndarray) -> np.ndarray:
    """Collapse equal elements to one value of shape ()."""
    return values.reshape(-1)[0].reshape(()) if is_scalar_like(values) else values


_SOURCES_OF_ACTIVATIONS = frozenset(
    ("Parameter", "Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul", "ReadValue")
)


def is_constant_path(node: Node) -> bool:
    """Whether nothing above the node depends on data, so that it could be folded.

    As in the native library, weighted operations end the walk as if they were data.
    """
    pending, seen = [node], set()
    while pending:
        node = pending.pop()
        if node.get_type_name() in _SOURCES_OF_ACTIVATIONS:
            return False
        for value in reversed(node.input_values()):  # the data input is followed first: it ends the walk soonest
            source = value.get_node()
            if isinstance(source, Constant):
                continue
            key = source.get_instance_id()
            if key not in seen:
                seen.add(key)
                pending.append(source)
    return True


def is_real(precision: str) -> bool:
    return precision in REAL
