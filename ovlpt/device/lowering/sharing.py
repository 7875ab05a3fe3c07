"""Equal nodes as one: each takes time whenever a saved model is loaded, and some at each inference."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ovlpt.graph.constants import constant, constant_above, is_real, precision_of
from ovlpt.graph.consumers import is_output
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.graph.replaced import detach
from ovlpt.graph.shapes import may_be_open, shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Model, Node, Output, opset1

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


def join_layers(layer: Node) -> Node | None:
    """A layer of integers for all that compute the same of the same data, at dynamic sizes.

    The plugin joins them itself, after its constants are compared, when rules have made of each what its own reader needs:
    it then takes the scale of one as that of all.

    Scales of integers, which are equal where what parted them is dropped, it joins to one of integers: its result is rounded.
    """
    if not is_relaxed(layer) or not (layer.get_type_name() == "Multiply" or may_be_open(layer.output(0))):
        return None
    joined = []
    for target in layer.input_value(0).get_target_inputs():
        other = target.get_node()
        if other.get_instance_id() == layer.get_instance_id() or is_output(other.output(0)):
            continue
        if target.get_index() == 0 and is_relaxed(other) and _is_same_layer(layer, other):
            replace_output(other.output(0), layer.output(0))
            joined.append(other)
    detach(*joined)
    return layer if joined else None


def negate_scaled(scale: Node) -> Node | None:
    """What multiplies sums by the negative of a scale as the negative of what that scale gives, as ``x - x`` has become.

    In bf16 the two may be rounded at other places, and the rounding would be left of what cancels. And where that scale alone
    reads a layer, it is part of it.
    """
    sums, factor = scale.input_value(0), scale.input_value(1).get_node()
    targets = sums.get_target_inputs()
    if (
        len(targets) == 1
        or not is_real(precision_of(sums))
        or not isinstance(factor, Constant)
        or factor.data.sum() <= 0
    ):
        return None
    negated = []
    for target in targets:
        other = target.get_node()
        if target.get_index() or other.get_type_name() != "Multiply" or is_output(other.output(0)):
            continue
        values, kinds = constant_above(other.input_value(1)), [precision_of(each.output(0)) for each in (scale, other)]
        if values is not None and kinds[0] == kinds[1] and np.array_equal(values, -factor.data):
            negative = opset1.multiply(scale, constant(np.float32(-1), kinds[0]))
            negative.set_friendly_name(other.get_friendly_name())
            replace_output(other.output(0), negative.output(0))
            negated.append(other)
    detach(*negated)
    return scale if negated else None


def _is_same_layer(one: Node, other: Node) -> bool:
    """Whether two layers that read the same data do the same to it."""
    if one.get_type_info() != other.get_type_info() or one.get_attributes() != other.get_attributes():
        return False
    if precision_of(one.output(0)) != precision_of(other.output(0)):  # of what a relaxed operation reports
        return False
    return all(map(_is_same_value, one.input_values()[1:], other.input_values()[1:]))


def _is_same_value(one: Output, other: Output) -> bool:
    if one == other:
        return True
    if precision_of(one) != precision_of(other) or shape_of(one) != shape_of(other):
        return False
    first, second = (value.get_node() for value in (one, other))
    return isinstance(first, Constant) and isinstance(second, Constant) and np.array_equal(first.data, second.data)


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
