"""Sizes that are known although others of the same tensor are dynamic."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Model, Node


def fold_known_sizes(model: Model) -> None:
    """A known size that is read from the shape of a tensor becomes a constant, and what is computed of it alone folds.

    OpenVINO folds only where all sizes are known; with a dynamic batch each step, as a root for the scale of an attention,
    would be a layer of one number. Not for a model that may be reshaped later.
    """
    for node in all_nodes(model):
        if (sizes := _known_sizes(node)) is not None:
            found = constant(sizes, precision_of(node.output(0)))
            found.set_friendly_name(node.get_friendly_name())
            replace_output(node.output(0), found.output(0))


def _known_sizes(node: Node) -> np.ndarray | None:
    if node.get_type_name() != "Gather":
        return None
    source, axes = (value.get_node() for value in node.input_values()[:2])
    shape = shape_of(source.input_value(0)) if source.get_type_name() == "ShapeOf" else None
    if shape is None or not isinstance(axes, Constant):
        return None
    sizes = [shape[axis] for axis in values_of(axes).reshape(-1)]
    return None if None in sizes else np.array(sizes).reshape(values_of(axes).shape)
