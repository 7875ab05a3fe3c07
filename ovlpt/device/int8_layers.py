"""Layers that run in int8, and what follows one, read from the graph alone."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant_above, is_constant_above, precision_of
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import ARITHMETIC
from ovlpt.precisions import is_low

_AFFINE = ARITHMETIC | {"Negative"}  # beside constants


def is_int8_layer(node: Node) -> bool:
    """A weighted operation that reads two low precision tensors (or weights)."""
    return (
        node.get_type_name() in WEIGHTED
        and is_relaxed(node)
        and all(is_low(_precision_read(value)) for value in node.input_values()[:2])
    )


def is_depthwise(node: Node) -> bool:
    """A convolution, transposed or not, in groups of one channel with one output."""
    weights = shape_of(node.input_value(1)) if node.get_type_name().startswith("Group") else None
    return weights is not None and weights[1:3] == (1, 1)


def is_depthwise_over_three_axes(node: Node) -> bool:
    """Groups of one channel: with a zero point they run in float."""
    weights = shape_of(node.input_value(1)) or () if node.get_type_name() == "GroupConvolution" else ()
    return len(weights) == 6 and weights[2] == 1


def _precision_read(value: Output) -> str:
    """Of the integers, where a zero point stands between."""
    while value.get_node().get_type_name() in ("Subtract", "Convert") and not is_low(precision_of(value)):
        value = value.get_node().input_value(0)
    return precision_of(value)


def negative_scale_after_relu(node: Node) -> Node | None:
    """The Relu or PRelu after a layer, with at most a scale and a shift between, before scales of a negative product."""
    while True:
        found = _only_reader(node)
        if node.get_type_name() in ("Relu", "PRelu"):
            return node if found is not None and _scales_negatively(*found) else None
        if found is None or found[0].get_type_name() not in _AFFINE | {"Relu", "PRelu"}:
            return None
        node = found[0]


def _scales_negatively(node: Node, port: int) -> bool:
    """Whether what is multiplied by from ``node`` on, a constant less it counting as -1, is negative; shifts come after."""
    scale: np.ndarray | int = 1
    found: tuple[Node, int] | None = (node, port)
    while found is not None and (kind := found[0].get_type_name()) in _AFFINE:
        node, port = found
        if kind in ("Multiply", "Divide"):
            scale = scale * np.sign(constant_above(node.input_value(1 - port)))
        elif kind == "Negative" or (kind == "Subtract" and port == 1):
            scale = -1 * scale
        if (np.asarray(scale) < 0).any():
            return True
        found = _only_reader(node)
    return False


def _only_reader(node: Node) -> tuple[Node, int] | None:
    """What alone reads a result, beside constants, and at which input."""
    targets = node.output(0).get_target_inputs()
    if len(targets) != 1:
        return None
    (target,) = targets
    reader, port = target.get_node(), target.get_index()
    for at, value in enumerate(reader.input_values()):
        if at != port and not is_constant_above(value):
            return None
    return reader, port
