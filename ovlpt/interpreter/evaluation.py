"""One node evaluated by OpenVINO's own reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovlpt.openvino_api import Node, Tensor
from ovlpt.trace import InputError


def evaluate(node: Node, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The node's outputs for one array per input. Raises `InputError` where OpenVINO has no reference for it."""
    outputs = []
    for port in node.outputs():
        shape = port.get_partial_shape()
        outputs.append(Tensor(port.get_element_type(), shape.to_shape() if shape.is_static else [0]))
    try:
        done = node.evaluate(outputs, [Tensor(np.ascontiguousarray(array)) for array in arrays])
    except RuntimeError as error:
        raise _unknown(node) from error
    if not done:
        raise _unknown(node)
    return [np.array(tensor.data) for tensor in outputs]


def _unknown(node: Node) -> InputError:
    return InputError(
        f'{node.get_type_name()} "{node.get_friendly_name()}" has no kernel here and OpenVINO cannot evaluate it alone; '
        "run the model with compile_model instead"
    )
