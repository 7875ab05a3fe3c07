"""Shapes as plain tuples."""

from __future__ import annotations

import functools

import numpy as np

from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.openvino_api import Constant, Node, Output, opset1

Shape = tuple[int | None, ...]  # None: a dynamic dimension


def shape_of(output: Output) -> Shape | None:
    """The shape of a value, None for dynamic dimensions; None for a dynamic rank.

    To walk over an OpenVINO ``Shape`` takes twelve times as long.
    """
    return _parsed(str(output.get_partial_shape()))


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Shape | None:
    """From "[1,?,8..16]": OpenVINO prints a shape twenty times as fast as Python walks over its dimensions."""
    if text == "[...]":
        return None
    sizes = (size.strip() for size in text[1:-1].split(",") if size)
    return tuple(int(size) if size.isdigit() else None for size in sizes)


def may_be_open(output: Output) -> bool:
    """Whether a size is dynamic, or none is known: of a dynamic rank, or of a scalar, which has none."""
    return None in (shape_of(output) or (None,))


def order_of(node: Node) -> list[int] | None:
    """The order of a Transpose; None where it is no Constant, and of other operations."""
    source = node.input_value(1).get_node() if node.get_type_name() == "Transpose" else None
    if not isinstance(source, Constant):
        return None
    return source.data.reshape(-1).tolist() or list(range(len(shape_of(node.output(0)) or ())))[::-1]


def reshaped(output: Output, shape: Shape) -> Node:
    """A Reshape to ``shape``, or the constant that it gives. Of its dynamic dimensions all but the last are those of the data
    at the same places.
    """
    if isinstance(output.get_node(), Constant) and None not in shape:
        return constant(values_of(output.get_node()).reshape(shape), precision_of(output))
    dynamic = [axis for axis, size in enumerate(shape) if size is None]
    sizes = np.array([-1 if size is None else size for size in shape])
    sizes[dynamic[:-1]] = 0
    return opset1.reshape(output, constant(sizes, "i64"), len(dynamic) > 1)
