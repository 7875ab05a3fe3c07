"""What outputs values of its data and no others, by the table of operations."""

from __future__ import annotations

from ovlpt.openvino_api import Node, Output
from ovlpt.operations import OPERATIONS


def copied_data(node: Node) -> list[Output]:
    """The inputs of which a node outputs values and no others; none of a node that computes."""
    row = OPERATIONS.get(node.get_type_name())
    if row is None or not row.copies:
        return []
    values = node.input_values()
    return values if row.data_inputs is None else [values[port] for port in row.data_inputs]
