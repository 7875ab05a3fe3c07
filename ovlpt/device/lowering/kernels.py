"""Layers for which the plugin is asked to take another kernel than it would."""

from __future__ import annotations

from ovlpt.graph.constants import precision_of
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Node


def with_older_kernels(layer: Node) -> Node:
    """The relaxed ``layer``, in its place, by oneDNN's kernels before brgemm, where they have a form of it."""
    attributes, output = layer.get_attributes(), layer.output(0)
    new = relaxed(layer.get_type_name(), layer.input_values(), precision_of(output), attributes, older_kernels=True)
    new.set_friendly_name(layer.get_friendly_name())
    replace_output(output, new.output(0))
    return new
