"""Sizes that are known although others of the same tensor are dynamic."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Model, Node, Output, opset1
from ovlpt.operations.families import RESHAPES

_UNKNOWN = -2  # no size, and no number of a shape


def fold_known_sizes(model: Model) -> None:
    """A known size that is read from the shape of a tensor becomes a constant, and what is computed of it alone folds.

    OpenVINO folds only where all sizes are known; with a dynamic batch each step, as a root for the scale of an attention,
    would be a layer of one number. Not for a model that may be reshaped later.
    """
    gathers = [node for node in all_nodes(model) if node.get_type_name() == "Gather"]
    if not gathers:
        return
    for node in gathers:
        if (sizes := known_sizes(node)) is not None:
            found = constant(sizes, precision_of(node.output(0)))
            found.set_friendly_name(node.get_friendly_name())
            replace_output(node.output(0), found.output(0))
    for node in all_nodes(model):
        if node.get_type_name() == "Concat" and precision_of(node.output(0)) in ("i32", "i64"):
            _join_whole_shape(node)


def _join_whole_shape(concat: Node) -> None:
    """All sizes of one tensor in their order, the open ones read from its shape: the shape itself, without a Gather."""
    values = concat.input_values()
    parts = [_sizes_in(value) or [(None, _UNKNOWN)] for value in values]
    flat = [(*size, port) for port, part in enumerate(parts) for size in part]
    for place, (shape, axis, _) in enumerate(flat):
        known = None if shape is None else shape_of(shape.input_value(0))
        run = flat[place - axis : place - axis + len(known)] if known is not None and place >= axis else []
        if len(run) < 2 or len(run) != len(known):
            continue
        first, last = run[0][2], run[-1][2]
        is_whole = len(run) == sum(map(len, parts[first : last + 1]))
        if is_whole and all(map(_is_size, run, known, range(len(run)), [shape.input_value(0)] * len(run))):
            joined = opset1.concat([*values[:first], shape.output(0), *values[last + 1 :]], 0)
            joined.set_friendly_name(concat.get_friendly_name())
            replace_output(concat.output(0), joined.output(0))
            return


def _is_size(found: tuple[Node | None, int, int], known: int | None, axis: int, data: Output) -> bool:
    shape, number, _ = found
    return number == known if shape is None else number == axis and shape.input_value(0) == data


def _sizes_in(value: Output) -> list[tuple[Node | None, int]] | None:
    """The elements of a vector: numbers, or the ShapeOf that one is read from and its axis; None for others."""
    node = value.get_node()
    while node.get_type_name() in RESHAPES:
        node = node.input_value(0).get_node()
    if isinstance(node, Constant):
        return [(None, int(number)) for number in values_of(node).reshape(-1)]
    if node.get_type_name() != "Gather":
        return None
    source, axes = (each.get_node() for each in node.input_values()[:2])
    is_read = source.get_type_name() == "ShapeOf" and precision_of(source.output(0)) == precision_of(value)
    if not is_read or not isinstance(axes, Constant):
        return None
    rank = len(shape_of(source.input_value(0)) or ())
    return [(source, int(axis) % rank) for axis in values_of(axes).reshape(-1)] if rank else None


def known_sizes(node: Node) -> np.ndarray | None:
    """What a Gather picks of a shape, where that is known though other sizes may be open; None of anything else."""
    if node.get_type_name() != "Gather":
        return None
    source, axes = (value.get_node() for value in node.input_values()[:2])
    shape = shape_of(source.input_value(0)) if source.get_type_name() == "ShapeOf" else None
    if shape is None or not isinstance(axes, Constant):
        return None
    sizes = [shape[axis] for axis in values_of(axes).reshape(-1)]
    return None if None in sizes else np.array(sizes).reshape(values_of(axes).shape)
