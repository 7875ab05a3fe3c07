"""What outputs values of its data and no others, by the table of operations."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import copies_values

_VALUE = 3  # the input of a Pad


def copied_data(node: Node) -> list[Output]:
    """The inputs of which a node outputs values and no others; none of a node that computes."""
    row = OPERATIONS.get(node.get_type_name())
    if row is None:
        return []
    values = node.input_values()
    if not row.copies:
        return [values[port] for port in _chosen(node)]
    return values if row.data_inputs is None else [values[port] for port in row.data_inputs]


def _chosen(node: Node) -> tuple[int, ...]:
    """The inputs that an operation copies in some of its modes."""
    kind, attributes = node.get_type_name(), node.get_attributes()
    if kind == "Interpolate":
        return (0,) if copies_values(attributes) else ()
    if kind == "Pad":
        if attributes["pad_mode"] != "constant":
            return (0,)
        return (0, _VALUE) if node.get_input_size() > _VALUE else ()
    if kind == "SpaceToBatch":
        pads = [constant_above(node.input_value(port)) for port in (2, 3)]
        return (0,) if all(each is not None and not np.any(each) for each in pads) else ()
    return ()


def holds_booleans(value: Output) -> bool:
    """Whether the data is a mask of booleans that are stored as integers, or in part."""
    pending, seen = [value], set()
    while pending:
        node = pending.pop().get_node()
        if node.get_instance_id() in seen:
            continue
        seen.add(node.get_instance_id())
        if node.get_type_name() == "Convert" and precision_of(node.input_value(0)) == "boolean":
            return True
        pending += copied_data(node)
    return False


def is_of_use(node: Node) -> bool:
    """Whether something that there is a rule for reads the node, directly or through copies."""
    pending, seen = [node], set()
    while pending:
        outputs = pending.pop().outputs()
        for reader in (target.get_node() for output in outputs for target in output.get_target_inputs()):
            row = OPERATIONS.get(reader.get_type_name())
            if row is None:
                continue
            if not row.copies:
                if row.has_rule:
                    return True
            elif reader.get_instance_id() not in seen:
                seen.add(reader.get_instance_id())
                pending.append(reader)
    return False
