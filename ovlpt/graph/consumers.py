"""What reads a value."""

from __future__ import annotations

from ovlpt.openvino_api import Node, Output


def consumers_of(output: Output) -> list:
    """The inputs that read a value, those that only ask for its shape left out."""
    return [target for target in output.get_target_inputs() if target.get_node().get_type_name() != "ShapeOf"]


def readers_of(node: Node) -> list[Node]:
    """The operations that read the first output of a node, one for each input that does."""
    return [target.get_node() for target in node.output(0).get_target_inputs()]


def is_output(value: Output) -> bool:
    """Whether a Result reads the value."""
    return any(target.get_node().get_type_name() == "Result" for target in value.get_target_inputs())
