"""Layers that run in int8, and what follows one, read from the graph alone."""

from __future__ import annotations

from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import WEIGHTED
from ovlpt.precisions import is_low


def is_int8_layer(node: Node) -> bool:
    """A weighted operation that reads two low precision tensors (or weights)."""
    return (
        node.get_type_name() in WEIGHTED
        and is_relaxed(node)
        and all(is_low(_precision_read(value)) for value in node.input_values()[:2])
    )


def _precision_read(value: Output) -> str:
    """Of the integers, where a zero point stands between."""
    while value.get_node().get_type_name() in ("Subtract", "Convert") and not is_low(precision_of(value)):
        value = value.get_node().input_value(0)
    return precision_of(value)


def negative_scale_after_relu(node: Node) -> Node | None:
    """The Relu or PRelu after a layer, with at most a scale and a shift between, before a negative Multiply."""
    while True:
        targets = list(node.output(0).get_target_inputs())
        if len(targets) != 1:
            return None
        follower = targets[0].get_node()
        kind = follower.get_type_name()
        others = [
            constant_above(follower.input_value(at))
            for at in range(follower.get_input_size())
            if at != targets[0].get_index()
        ]
        if node.get_type_name() in ("Relu", "PRelu"):
            negative = kind == "Multiply" and others[0] is not None and (others[0] < 0).any()
            return node if negative else None
        if kind not in ("Multiply", "Add", "Subtract", "Relu", "PRelu") or any(each is None for each in others):
            return None
        node = follower
