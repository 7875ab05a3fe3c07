"""Recurrent layers: the ports of their weights, where their values come from, and where their hidden states lie."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.copies import copied_data
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Constant, Model, Node, Output, Tensor, opset1
from ovlpt.operations import RECURRENT
from ovlpt.precisions import REAL

MOVES = frozenset(("Reshape", "Slice", "Split", "Squeeze", "StridedSlice", "Transpose", "Unsqueeze", "VariadicSplit"))
_STATES, _LAST_STATE = 0, 1  # outputs


def has_quantized_weights(model: Model) -> bool:
    """Whether a recurrent layer of the model reads dequantized integer weights."""
    return any(
        not isinstance(node.input_value(port).get_node(), Constant)
        for node in all_nodes(model)
        for port in RECURRENT.get(node.get_type_name(), ())
    )


def state_interval(node: Node) -> tuple[float, float]:
    """Of the hidden states: [-1, 1], as a gate times a tanh, but what calibration has seen where all that reads them is
    quantized.
    """
    readers = state_readers(node)
    read = [QuantizationDetails.of(each) if each.get_type_name() == "FakeQuantize" else None for each in readers]
    if not read or None in read:
        return -1.0, 1.0
    low = min(float(each.input_low.min()) for each in read)
    high = max(float(each.input_high.max()) for each in read)
    return (max(low, -1.0), min(high, 1.0)) if low < 0 < high else (-1.0, 1.0)


def state_readers(node: Node) -> list[Node]:
    """What reads the hidden states that the layer hands out, after all that only moves them."""
    readers, moved = [], [node.output(_STATES), node.output(_LAST_STATE)]
    while moved:
        for target in consumers_of(moved.pop()):
            reader = target.get_node()
            if reader.get_type_name() in MOVES:
                moved += reader.outputs()
            else:
                readers.append(reader)
    return readers


def sources(value: Output) -> Iterator[Output]:
    """What gives the values of ``value``, above all that only hands them on."""
    pending = [value]
    while pending:
        value = pending.pop()
        node = value.get_node()
        is_convert = node.get_type_name() == "Convert"
        if data := copied_data(node):
            pending += reversed(data)
        elif is_convert and {precision_of(value), precision_of(node.input_value(0))} <= REAL:
            pending.append(node.input_value(0))
        else:
            yield value


def evaluated(value: Output) -> np.ndarray:
    """What a path of constants gives, in float32."""
    result = Tensor(value.get_element_type(), value.get_shape())
    Model([opset1.result(value)], [], "constants").evaluate([result], [])
    return np.array(result.data, np.float32)


def quantized_weights(node: Node) -> list[int]:
    """The ports of the weights that are constants on a grid, after a FakeQuantize or a dequantization."""
    return [port for port in RECURRENT[node.get_type_name()] if _is_quantized(node.input_value(port))]


def _is_quantized(value: Output) -> bool:
    if folded_constant(value) is None:
        return False
    while not isinstance(value.get_node(), Constant):
        if value.get_node().get_type_name() == "FakeQuantize":
            return True
        value = value.get_node().input_value(0)
    return precision_of(value) not in REAL


def make_weights_real(node: Node) -> bool:
    """Let the layer read its weights as plain constants; whether any were not.

    The CPU plugin throws on a layer with integers for weights that it cannot run in low precision.
    """
    ports = quantized_weights(node)
    for port in ports:
        value = node.input_value(port)
        real = constant(folded_constant(value), precision_of(value))
        real.set_friendly_name(value.get_node().get_friendly_name())
        node.input(port).replace_source_output(real.output(0))
    return bool(ports)
