"""Reductions, and the post-operations that they take on a CPU."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.relaxed import is_relaxed, relaxed
from ovlpt.graph.shapes import reshaped, shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node, NodeFactory, opset1

# Post-operations of a reduction
_AFTER_REDUCTION = frozenset(("Add", "FakeQuantize", "Multiply", "Subtract"))


def reduce_alone(node: Node) -> Node:
    """Between two Reshapes: the last axis as rows of a matrix, axis 1 with an axis more.

    A reduction of the last axis alone, and one that drops axis 1, takes constants by channel, and a FakeQuantize to
    integers, wrongly as post-operations: wrong numbers, no error, in float too. It stands between two Reshapes, and takes
    none.
    """
    shape, output_shape = shape_of(node.input_value(0)), shape_of(node.output(0))
    axes, targets = node.input_value(1).get_node(), node.output(0).get_target_inputs()
    readers = [target.get_node().get_type_name() for target in targets]
    if not isinstance(axes, Constant) or shape is None or len(shape) < 3 or len(readers) != 1:
        return node
    reduced_axes = [int(axis) % len(shape) for axis in axes.data.reshape(-1)]
    if reduced_axes == [len(shape) - 1]:
        between = (None, shape[-1])
    elif reduced_axes == [1] and not node.get_attributes()["keep_dims"]:
        between = (*shape, 1)
    else:
        return node
    if readers[0] not in _AFTER_REDUCTION:
        return node
    is_open = any(sizes.count(None) > 1 for sizes in (between, output_shape))
    if is_open and len(between) == 2:
        return node
    added = constant(np.array([len(shape)]), "i64")
    data = opset1.unsqueeze(node.input_value(0), added) if is_open else reshaped(node.input_value(0), between)
    inputs = [data.output(0), constant(np.array([1]), "i64").output(0)]
    attributes = {**node.get_attributes(), "keep_dims": len(between) > 2}
    kind, precision = node.get_type_name(), precision_of(node.output(0))
    if is_relaxed(node):
        reduced = relaxed(kind, inputs, precision, attributes)
    else:
        reduced = NodeFactory("opset1").create(kind, inputs, attributes)
    if is_open:
        shaped = opset1.squeeze(reduced, constant(np.array([1, len(shape)]), "i64"))
    else:
        shaped = reshaped(reduced.output(0), output_shape)
    reduced.set_friendly_name(f"{node.get_friendly_name()}/Alone")
    shaped.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), shaped.output(0))
    return reduced
