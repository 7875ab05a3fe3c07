"""The shape of a MatMul with weights, and Transposes that a MatMul can do itself."""

from __future__ import annotations

import math

from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import Constant, Node, Output


def absorbed_transposes(node: Node) -> tuple[list[Output], dict[str, object]] | None:
    """Inputs and attributes of the MatMul with Transposes of the last two axes absorbed into its flags; None:
    nothing to do.
    """
    inputs, attributes = node.input_values(), node.get_attributes()
    changed = False
    for port, flag in enumerate(("transpose_a", "transpose_b")):
        source = inputs[port].get_node()
        if source.get_type_name() == "Transpose" and isinstance(source.input_value(1).get_node(), Constant):
            order = [int(axis) for axis in source.input_value(1).get_node().data.reshape(-1)]
            rank = len(order)
            if rank >= 2 and order == [*range(rank - 2), rank - 1, rank - 2]:
                inputs[port], attributes[flag], changed = source.input_value(0), not attributes[flag], True
    return (inputs, attributes) if changed else None


def sizes_by_weights(node: Node) -> tuple[int, int, int] | None:
    """(rows, input channels, output channels) of a MatMul with weights of rank 2, -1 for an open number of rows."""
    data, weights = (shape_of(value) for value in node.input_values())
    if not data or weights is None or None in weights or len(weights) != 2:
        return None
    inputs, outputs = reversed(weights) if node.get_attributes()["transpose_b"] else weights
    return -1 if None in data else math.prod(data) // inputs, inputs, outputs
