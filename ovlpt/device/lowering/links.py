"""Chains of operations that the plugin fuses into a layer or an interval: how they are read, and how they are cut."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Any

import numpy as np

from ovlpt.device.int8_layers import is_depthwise_over_three_axes
from ovlpt.graph.constants import constant_above, is_constant_above, is_real, kept_apart, precision_of
from ovlpt.graph.consumers import consumers_of, readers_of, targets_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import insert_after, move_tensor_names
from ovlpt.openvino_api import Node, opset1
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import ACTIVATIONS, AFFINE, ARITHMETIC, REARRANGES
from ovlpt.precisions import FLOAT8, INT8

# What the plugin folds into the interval of a FakeQuantize, or drops before one
BEFORE_INTERVAL = ARITHMETIC | {"Clamp", "Convert", "Floor", "Relu"}
# What the plugin fuses into a layer
POST_OPERATIONS = BEFORE_INTERVAL | ACTIVATIONS | {"Abs", "FakeQuantize", "PRelu", "Round", "Sqrt"}
# What a Subgraph computes beside them
OF_TWO = frozenset(("Maximum", "Minimum", "Power", "SquaredDifference"))
# What a per-tensor operation is moved up through
MOVES_UP = REARRANGES | {
    "BatchToSpace", "Broadcast", "DepthToSpace", "Gather", "ReverseSequence", "Roll", "ShuffleChannels",
}  # fmt: skip
FLOAT_MAX = float(np.finfo(np.float32).max)


def is_in_f64(link: Node) -> bool:
    """Whether it reads or gives f64, and no fusion reaches through (`compute_scale_in_f64`)."""
    return "f64" in (precision_of(link.input_value(0)), precision_of(link.output(0)))


def first_by_channel(last: Node, but: Collection[str] = ()) -> Node | None:
    """What the first post-operation after ``last`` reads that has a constant of several values, ``but`` for these kinds."""
    while (target := merged_target(last)) is not None and (
        kind := target.get_node().get_type_name()
    ) in POST_OPERATIONS:
        reader = target.get_node()
        if kind == "Subtract" and is_zero_point(reader):
            return None
        others = [value for port, value in enumerate(reader.input_values()) if port != target.get_index()]
        constants = list(map(constant_above, others))
        if kind != "Add" and any(values is None for values in constants):
            return None  # of two tensors only a sum is a post-operation
        if kind not in but and any(values is not None and values.size > 1 for values in constants):
            return last
        last = reader
    return None


def first_after_affine(layer: Node, but: Collection[str] = ()) -> Node | None:
    """The same after the scale and the bias of a layer."""
    return first_by_channel([layer, *affine_links(layer)][-1], but)


def is_zero_point(subtract: Node) -> bool:
    """Whether only layers with integer weights read it, which fuse it as the zero point of their data."""
    readers = readers_of(subtract)
    return precision_of(subtract.input_value(0)) in INT8 and all(map(_takes_zero_point, readers))


def is_zero_point_before_floats(subtract: Node) -> bool:
    """Whether a Subtract of a constant is relaxed, and only layers whose weights are real numbers read it."""
    if subtract.get_type_name() != "Subtract" or not is_relaxed(subtract):
        return False
    readers = readers_of(subtract) if is_constant_above(subtract.input_value(1)) else []
    are_floats = [each.get_type_name() in WEIGHTED and is_real(precision_of(each.input_value(1))) for each in readers]
    return bool(are_floats) and all(are_floats)


def _takes_zero_point(node: Node) -> bool:
    return node.get_type_name() in WEIGHTED and is_relaxed(node) and not is_depthwise_over_three_axes(node)


def only_reader(node: Node) -> Node | None:
    targets = list(node.output(0).get_target_inputs())
    return targets[0].get_node() if len(targets) == 1 else None


def merged_target(node: Node) -> Any:
    """The input that alone reads a result once the plugin has merged equal readers, or None. What asks for the shape of a
    FakeQuantize will ask elsewhere (`join_dequantization`).
    """
    readers_in = consumers_of if node.get_type_name() == "FakeQuantize" else targets_of
    target, *more = readers_in(node.output(0)) or [None]
    return target if all(_is_equal(target, each) for each in more) else None


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two inputs belong to operations that do the same to constants and to what both read there."""
    nodes = one.get_node(), other.get_node()
    if one.get_index() != other.get_index() or nodes[0].get_type_info() != nodes[1].get_type_info():
        return False
    if nodes[0].get_attributes() != nodes[1].get_attributes():
        return False
    for port in set(range(nodes[0].get_input_size())) - {one.get_index()}:
        first, second = (constant_above(node.input_value(port)) for node in nodes)
        if first is None or second is None or not np.array_equal(first, second):
            return False
    return True


def may_be_one_element(node: Node) -> bool:
    """Whether dynamic sizes may leave one element a channel."""
    batch, _, *space = shape_of(node.output(0)) or (0, 0)
    if None not in (batch, *space) or not {batch, *space} <= {None, 1}:
        return False
    sizes = list(node.get_output_partial_shape(0))
    return all(size.get_min_length() <= 1 for size in (sizes[0], *sizes[2:]))


def guard_output(node: Node, floor: bool = False) -> bool:
    """A Clamp after a node, or a Floor, which changes no integer, and which no post-operation passes. Whether there was none."""
    targets = node.output(0).get_target_inputs()
    if any(
        target.get_node().get_friendly_name() == made_for(node.get_friendly_name(), Made.GUARD) for target in targets
    ):
        return False
    guard = opset1.floor(node.output(0)) if floor else opset1.clamp(node.output(0), -FLOAT_MAX, FLOAT_MAX)
    guard.set_friendly_name(made_for(node.get_friendly_name(), Made.GUARD))
    for target in targets:
        target.replace_source_output(guard.output(0))
    move_tensor_names(node.output(0), guard.output(0))
    return True


def links_above(node: Node, kinds: Set[str] = BEFORE_INTERVAL) -> tuple[list[Node], Node]:
    """The operations of ``kinds`` from ``node`` up, and what stands above them; none that the plugin drops first, and no
    rounding to f8, which is a layer of its own and the only one that reads or gives f8.
    """
    links: list[Node] = []
    while (idle := does_nothing(node)) or (node.get_type_name() in kinds and not _is_apart(node)):
        if not idle:
            links.append(node)
        node = node.input_value(0).get_node()
    return links, node


def _is_apart(node: Node) -> bool:
    """Whether what is computed from ``node`` on is no part of the layer above."""
    return is_in_f64(node) or precision_of(node.output(0)) in FLOAT8


def does_nothing(node: Node) -> bool:
    """Whether it returns its data unchanged, which the shapes do not show where sizes are dynamic."""
    kind = node.get_type_name()
    if kind == "Concat":
        return node.get_input_size() == 1
    if kind == "Convert":
        return precision_of(node.output(0)) == precision_of(node.input_value(0))
    if kind == "Pad":
        pads = [constant_above(node.input_value(port)) for port in (1, 2)]
        return all(values is not None and not values.any() for values in pads)
    values = constant_above(node.input_value(1)) if kind in ("Add", "Broadcast", "Tile", "Transpose") else None
    if values is None or values.size == 0:
        return False
    if kind == "Transpose":
        return bool((values == np.arange(values.size)).all())
    if kind == "Broadcast" and node.get_attributes()["mode"] != "bidirectional":
        return False
    rank = node.input_value(0).get_partial_shape().rank
    if rank.is_dynamic or rank.get_length() < (values.ndim if kind == "Add" else values.size):
        return False
    return not values.any() and values.size == 1 if kind == "Add" else bool((values == 1).all())


def other_constant(link: Node) -> np.ndarray | None:
    """What an operation of `BEFORE_INTERVAL` computes with beside its data, where that is constant."""
    return constant_above(link.input_value(1)) if link.get_input_size() > 1 else None


def block_fusion(node: Node) -> Node:
    """The maximum of a result and the least number, which is not a post-operation, after it."""
    targets, alone = node.output(0).get_target_inputs(), kept_apart(node.output(0))
    alone.set_friendly_name(made_for(node.get_friendly_name(), Made.ALONE))
    insert_after(node.output(0), alone.output(0), targets, [])
    return node


def affine_links(node: Node) -> list[Node]:
    """The Multiply, Add and Subtract operations with float constants that follow, each the only consumer."""
    links: list[Node] = []
    while True:
        targets = node.output(0).get_target_inputs()
        if len(targets) != 1:
            return links
        (target,) = targets
        node = target.get_node()
        if node.get_type_name() not in AFFINE or target.get_index():
            return links
        value = node.input_value(1)
        if not is_constant_above(value) or precision_of(value) != "f32":
            return links
        links.append(node)
