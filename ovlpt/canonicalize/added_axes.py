from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import (
    constant,
    constant_above,
    is_constant_above,
    is_constant_path,
    is_real,
    precision_of,
    same_operation,
)
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.operations.families import ARITHMETIC
from ovlpt.trace import Reason

_OPERATIONS = ARITHMETIC | {"Maximum", "Minimum"}


class AddedAxes(LayerTransformation):
    """``x * c`` of a constant with more axes than ``x`` as ``unsqueeze(x * squeeze(c))``, or ``unsqueeze(x) * c``.

    Wherever the constant is folded into an interval, a scale or a zero point, its axes would be lost: another shape, no error.
    """

    why = Reason("added_axes", "its constant has more axes than its data, which would be lost with the constant")

    @classmethod
    def type_names(cls) -> list[str]:
        return [f"opset1.{kind}" for kind in sorted(_OPERATIONS)]

    def concerns(self, node: Node) -> bool:
        return _data_port(node) is not None

    def transform(self, node: Node) -> None:
        port, name = _data_port(node), node.get_friendly_name()
        data, other = node.input_value(port), node.input_value(1 - port)
        added = _rank(node, 1 - port) - _rank(node, port)
        axes = constant(np.arange(added), "i64")
        if set(other.get_shape()[:added]) != {1}:
            widened = opset1.unsqueeze(data, axes)
            widened.set_friendly_name(made_for(name, Made.AXES))
            node.input(port).replace_source_output(widened.output(0))
            return
        fewer = constant(constant_above(other).reshape(other.get_shape()[added:]), precision_of(other)).output(0)
        computed = same_operation(node, [data, fewer] if port == 0 else [fewer, data])
        computed.set_friendly_name(made_for(name, Made.AXES))
        widened = opset1.unsqueeze(computed, axes)
        widened.set_friendly_name(name)
        replace_output(node.output(0), widened.output(0))


def _data_port(node: Node) -> int | None:
    """Of data whose rank is known, and less than that of the constant beside it."""
    if not is_real(precision_of(node.output(0))):
        return None
    ranks = [_rank(node, port) for port in (0, 1)]
    if not all(ranks) or ranks[0] == ranks[1]:
        return None
    port = ranks.index(min(ranks))
    is_added = is_constant_above(node.input_value(1 - port)) and not is_constant_path(node.input_value(port).get_node())
    return port if is_added else None


def _rank(node: Node, port: int) -> int:
    """0 of a scalar, and where it is not known."""
    return len(shape_of(node.input_value(port)) or ())
