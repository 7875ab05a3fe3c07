"""The numbers of a constant expression, in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovlpt.graph.constants import is_real, precision_of, values_of
from ovlpt.openvino_api import Constant, Output
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import RESHAPES

_RULES: dict[str, Callable[..., np.ndarray]] = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "Divide": np.divide,
    "Power": np.power,
    "Sqrt": np.sqrt,
    "Negative": np.negative,
    "Convert": lambda values: values,
    "ConvertLike": lambda values, like: values,
    "Transpose": lambda values, order: np.transpose(values, order),
    "LogicalNot": np.logical_not,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
}

EVALUATED = frozenset(_RULES) | RESHAPES  # what an expression over parameters may consist of


_DATA = WEIGHTED | {"Parameter", "ReadValue"}  # the walk up need not go on


def is_constant(value: Output) -> bool:
    """Whether nothing above the value depends on data; a ConvertLike takes only a type from its example."""
    pending, seen = [value.get_node()], set()
    while pending:
        node = pending.pop()
        kind = node.get_type_name()
        if kind in _DATA or (not isinstance(node, Constant) and not node.get_input_size()):
            return False
        sources = node.input_values()[:1] if kind == "ConvertLike" else node.input_values()
        for source in sources:
            above = source.get_node()
            if above.get_instance_id() not in seen:
                seen.add(above.get_instance_id())
                pending.append(above)
    return True


def evaluate(value: Output) -> np.ndarray | None:
    """The value of an expression over Constants; None where it holds anything else.

    Real numbers are computed in float64 whatever their element type, so that the rounding of a fused constant
    is one rounding of the exact result.
    """
    node = value.get_node()
    if isinstance(node, Constant):
        values = values_of(node)
        return values.astype(np.float64) if is_real(precision_of(value)) else values
    kind = node.get_type_name()
    if kind in RESHAPES:
        source = evaluate(node.input_value(0))
        return None if source is None or value.get_partial_shape().is_dynamic else source.reshape(value.get_shape())
    if kind not in _RULES:
        return None
    ports = (0,) if kind == "ConvertLike" else range(node.get_input_size())
    arguments = [evaluate(node.input_value(port)) for port in ports]
    if any(argument is None for argument in arguments):
        return None
    if kind == "ConvertLike":
        return arguments[0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(_RULES[kind](*arguments))
