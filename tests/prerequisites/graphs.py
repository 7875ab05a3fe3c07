"""What the tests of single passes share."""

from __future__ import annotations

from ovlpt.openvino_api import Model

_HIDDEN = ("Parameter", "Result", "Constant")


def kinds(graph: Model) -> list[str]:
    """The types of the operations, in order."""
    return [node.get_type_name() for node in graph.get_ordered_ops() if node.get_type_name() not in _HIDDEN]
