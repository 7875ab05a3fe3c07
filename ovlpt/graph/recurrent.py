"""Recurrent layers: the ports of their weights, and where their hidden states lie."""

from __future__ import annotations

from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.openvino_api import Node

RECURRENT = {"LSTMSequence": (4, 5), "GRUSequence": (3, 4)}  # ports of their weights: for the input, and recurrent
MOVES = frozenset(("Reshape", "Slice", "Split", "Squeeze", "StridedSlice", "Transpose", "Unsqueeze", "VariadicSplit"))
_STATES, _LAST_STATE = 0, 1  # outputs


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
    """What reads the hidden states that the layer hands out, behind all that only moves them."""
    readers, moved = [], [node.output(_STATES), node.output(_LAST_STATE)]
    while moved:
        for target in consumers_of(moved.pop()):
            reader = target.get_node()
            if reader.get_type_name() in MOVES:
                moved += reader.outputs()
            else:
                readers.append(reader)
    return readers
