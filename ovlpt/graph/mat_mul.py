"""Transposes that a MatMul can do itself."""

from __future__ import annotations

from ovlpt.openvino_api import Constant, Node, Output


def absorbed_transposes(node: Node) -> tuple[list[Output], dict[str, object]] | None:
    """Inputs and attributes of the MatMul with Transposes of the last two axes taken into its flags; None:
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
