"""Equal nodes of a saved model as one: each takes time whenever the model is loaded, and some at each inference."""

from __future__ import annotations

from collections.abc import Hashable

from ovlpt.graph.constants import precision_of
from ovlpt.graph.consumers import is_output
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Model, Node

_INDICES = frozenset(("i32", "i64"))
_SMALL = 16  # elements


def share_constants(model: Model) -> list[Node]:
    """Orders, shapes and axes, and the integers at which most intervals end; the constants that others stand for."""
    found: dict[Hashable, Node] = {}
    left_out = []
    for node in model.get_ordered_ops():
        kind = _kind(node) if isinstance(node, Constant) else None
        if kind is not None and (first := found.setdefault(kind, node)) is not node:
            replace_output(node.output(0), first.output(0))
            left_out.append(node)
    return left_out


def join_quantizations(model: Model) -> list[Node]:
    """A FakeQuantize for all that quantize a tensor alike; those that others stand for.

    The plugin joins them itself, unless each has a zero of its own that hides it from the plugin's LPT.
    """
    found: dict[Hashable, Node] = {}
    left_out = []
    for node in model.get_ordered_ops():
        kind = _quantization(node) if node.get_type_name() == "FakeQuantize" else None
        if kind is not None and (first := found.setdefault(kind, node)) is not node:
            replace_output(node.output(0), first.output(0))
            left_out.append(node)
    return left_out


def _quantization(node: Node) -> Hashable:
    """The same for nodes that one can stand for; None where an output has its name, or its intervals are not constant."""
    data, *ends = node.input_values()
    if is_output(node.output(0)) or not all(isinstance(end.get_node(), Constant) for end in ends):
        return None
    intervals = tuple((precision_of(end), shape_of(end), end.get_node().data.tobytes()) for end in ends)
    attributes = tuple(sorted((name, str(value)) for name, value in node.get_attributes().items()))
    return data.get_node().get_instance_id(), data.get_index(), precision_of(node.output(0)), attributes, intervals


def _kind(node: Constant) -> Hashable:
    """The same for nodes that one can stand for; None for a node that stays."""
    precision, shape = precision_of(node.output(0)), shape_of(node.output(0))
    if is_output(node.output(0)):
        return None
    is_index = precision in _INDICES and node.data.size <= _SMALL
    if is_index or (precision == "f32" and shape == () and _is_end(node)):
        return precision, shape, node.data.tobytes()
    return None


def _is_end(node: Node) -> bool:
    """Whether only output intervals read it.

    The plugin takes no FakeQuantize into a layer that shares an array with another, or an end of its input interval; a
    scalar of its output interval it does not mind.
    """
    readers = node.output(0).get_target_inputs()
    return all(reader.get_node().get_type_name() == "FakeQuantize" and reader.get_index() > 2 for reader in readers)
