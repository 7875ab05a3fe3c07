"""Interpolate in the layout of the layers around it, as plugins have it before their own LPT."""

from __future__ import annotations

from ovlpt.graph.constants import constant, values_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node, NodeFactory

_TO_CHANNELS_LAST, _TO_CHANNELS_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


def interpolated_in_nchw(node: Node) -> Node | None:
    """An Interpolate-4 between a Transpose to NHWC and those back to NCHW interpolates NCHW; None where it is not one.

    The plugin puts Transposes around it, so that all of them cancel out; once a dequantization stands between, they stay.
    The mode nearest, which runs on integers in any layout, is left alone.
    """
    attributes, before = node.get_attributes(), node.input_value(0).get_node()
    readers = [target.get_node() for target in node.output(0).get_target_inputs()]
    if attributes["mode"] == "nearest" or any((*attributes["pads_begin"], *attributes["pads_end"])):
        return None
    if _order(before) != _TO_CHANNELS_LAST or not all(_order(reader) == _TO_CHANNELS_FIRST for reader in readers):
        return None
    axes = node.input_value(3).get_node()
    if not isinstance(axes, Constant) or not set(values_of(axes).tolist()) <= {1, 2}:
        return None
    inputs = [before.input_value(0), *node.input_values()[1:3], constant(values_of(axes) + 1, "i64").output(0)]
    moved = NodeFactory("opset4").create("Interpolate", inputs, attributes)
    moved.set_friendly_name(node.get_friendly_name())
    for reader in readers:
        replace_output(reader.output(0), moved.output(0))
    return moved


def _order(node: Node) -> list[int] | None:
    """The order of a Transpose."""
    order = node.input_value(1).get_node() if node.get_type_name() == "Transpose" else None
    return values_of(order).tolist() if isinstance(order, Constant) else None
