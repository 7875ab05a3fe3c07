"""What reads a value."""

from __future__ import annotations

from ovlpt.openvino_api import Output


def consumers_of(output: Output) -> list:
    """The inputs that read a value, those that only ask for its shape left out."""
    return [target for target in output.get_target_inputs() if target.get_node().get_type_name() != "ShapeOf"]


def is_output(value: Output) -> bool:
    """Whether a Result reads the value."""
    return any(target.get_node().get_type_name() == "Result" for target in value.get_target_inputs())
