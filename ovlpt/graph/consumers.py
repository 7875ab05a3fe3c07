"""What reads a value."""

from __future__ import annotations

from typing import Any

from ovlpt.openvino_api import Node, Output


def targets_of(output: Output) -> list:
    """The inputs that read a value, in the order in which their operations were made.

    OpenVINO gives a set, which is ordered by addresses: another way in each process.
    """
    targets = list(output.get_target_inputs())
    return sorted(targets, key=_age) if len(targets) > 1 else targets


def _age(target: Any) -> tuple[int, int]:
    return target.get_node().get_instance_id(), target.get_index()


def consumers_of(output: Output) -> list:
    """`targets_of`, those that only ask for the shape left out."""
    return [target for target in targets_of(output) if target.get_node().get_type_name() != "ShapeOf"]


def readers_of(node: Node) -> list[Node]:
    """The operations that read the first output of a node, one for each input that does."""
    return [target.get_node() for target in targets_of(node.output(0))]


def readers_of_all_outputs(node: Node) -> list[Node]:
    """The operations that read any output of a node, as those of a Split, one for each input that does."""
    return [target.get_node() for value in node.outputs() for target in targets_of(value)]


def is_output(value: Output) -> bool:
    """Whether a Result reads the value."""
    return any(target.get_node().get_type_name() == "Result" for target in value.get_target_inputs())
