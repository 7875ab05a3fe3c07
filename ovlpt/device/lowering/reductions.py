"""Reductions and pools, and the post-operations that a CPU fuses into them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ovlpt.device.lowering.links import FLOAT_MAX, MOVES_UP, block_fusion, merged_target
from ovlpt.graph.constants import constant, constant_above, kept_apart, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.recurrent import is_for_recurrent_layer
from ovlpt.graph.relaxed import relaxed_like
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import RELEASE, Constant, Node, opset1
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import ACTIVATIONS, ARITHMETIC
from ovlpt.operations.values import is_scalar_like
from ovlpt.precisions import INT8, REAL

# Post-operations of a reduction, beside FakeQuantize
_AFTER_REDUCTION = ARITHMETIC | ACTIVATIONS | {
    "Abs", "Clamp", "Convert", "Exp", "Floor", "Negative", "PRelu", "Power", "Relu", "Sqrt",
}  # fmt: skip
_WIDENS = ("Broadcast", "Concat", "Tile")
_VECTOR = 16  # results that a pool needs for other kernels than the reference

REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")


def join_reductions(node: Node) -> Node | None:
    """Means or sums one after the other, as of columns and then of rows, as the one that the plugin would make of them. It
    is relaxed, and reads integers.
    """
    joined = None
    while (target := next(iter(node.output(0).get_target_inputs()), None)) is not None:
        second = target.get_node()
        if len(node.output(0).get_target_inputs()) > 1 or (axes := _axes_of_both(node, second)) is None:
            break
        joined = relaxed_like(node, [node.input_value(0), constant(np.array(axes), "i64").output(0)], "f32")
        joined.set_friendly_name(second.get_friendly_name())
        replace_output(second.output(0), joined.output(0))
        node = joined
    return joined


def _axes_of_both(first: Node, second: Node) -> list[int] | None:
    """The axes of a reduction and of the one that reads it, by their numbers before both; None where they are not of one
    kind, or one reads or gives another type.
    """
    shape, keeps = shape_of(first.input_value(0)), first.get_attributes()["keep_dims"]
    if (
        shape is None
        or second.get_type_name() != first.get_type_name()
        or second.get_attributes()["keep_dims"] != keeps
    ):
        return None
    if precision_of(first.output(0)) != "f32" or precision_of(second.output(0)) != "f32":
        return None
    axes = [constant_above(each.input_value(1)) for each in (first, second)]
    if any(each is None for each in axes):
        return None
    dropped = {int(axis) % len(shape) for axis in axes[0].flat}
    left = [axis for axis in range(len(shape)) if keeps or axis not in dropped]
    return sorted(dropped | {left[int(axis)] for axis in axes[1].flat})


def pool_alone(node: Node) -> Node | None:
    """The reference kernel of an AvgPool, which computes few integers, takes the interval of a FakeQuantize wrongly: wrong
    numbers, no error. It takes none with i8: an error.
    """
    if prod(size or 1 for size in shape_of(node.output(0)) or ()) >= _VECTOR:
        return None
    kinds = {target.get_node().get_type_name() for target in node.output(0).get_target_inputs()}
    return block_fusion(node) if "FakeQuantize" in kinds else None


def widen_pool_apart(node: Node) -> Node | None:
    """What makes several channels of the one of a pool writes them in another layout than the plugin reads, where a
    quantization for a MatMul reads the pool, too: wrong numbers, no error, with the plugin's own LPT, too. Not after a Clamp.
    """
    value, shape = node.output(0), shape_of(node.output(0))
    if shape is None or shape[1] != 1:
        return None
    targets = value.get_target_inputs()
    if not any(precision_of(target.get_node().output(0)) in INT8 for target in targets if _is(target, "FakeQuantize")):
        return None
    widened = [target for target in targets if _is(target, *_WIDENS) and _channels(target) != 1]
    if not widened:
        return None
    apart = opset1.clamp(value, -FLOAT_MAX, FLOAT_MAX)
    apart.set_friendly_name(made_for(node.get_friendly_name(), Made.ALONE))
    for target in widened:
        target.replace_source_output(apart.output(0))
    return node


def _is(target: Any, *kinds: str) -> bool:
    return target.get_node().get_type_name() in kinds


def _channels(target: Any) -> int | None:
    """How many the reader gives; None where that is not known."""
    return (shape_of(target.get_node().output(0)) or (None, None))[1]


def tile_channels_apart(node: Node) -> Node | None:
    """A Tile of one channel and of open sizes, along the channels and an axis after them. The plugin makes a Tile of each axis,
    of which the second reads another layout than the first writes: wrong numbers, no error, without any LPT, too.
    """
    shape, repeats = shape_of(node.input_value(0)), constant_above(node.input_value(1))
    if shape is None or None not in shape or len(shape) < 3 or shape[1] != 1 or repeats is None:
        return None
    if repeats.shape != (len(shape),) or repeats[1] == 1 or (repeats[2:] == 1).all():
        return None
    along_channels = np.ones_like(repeats)
    along_channels[1] = repeats[1]
    others = opset1.tile(node.input_value(0), constant(repeats // along_channels, "i64"))
    result = opset1.tile(others, constant(along_channels, "i64"))
    others.set_friendly_name(made_for(node.get_friendly_name(), Made.AGAIN))
    result.set_friendly_name(node.get_friendly_name())
    block_fusion(others)
    replace_output(node.output(0), result.output(0))
    return result


def reduce_alone(node: Node) -> Node | None:
    """A reduction takes per-channel constants wrongly as post-operations where an axis before the channels, or theirs, is
    dropped, and at rank 3, and a FakeQuantize to integers where it looks for the greatest or least: wrong numbers, no
    error, in float too.
    """
    return block_fusion(node) if _takes_wrongly(node) else None


def reduce_joined_apart(node: Node) -> Node | None:
    """The greatest or least along the axis of a Concat of two tensors. Before 2026.1 the plugin takes the greater or lesser of
    the two instead, which is right for one element of each only, in a float model, too.
    """
    joined, axes = node.input_value(0), constant_above(node.input_value(1))
    if RELEASE >= (2026, 1) or joined.get_node().get_type_name() != "Concat" or axes is None or axes.size != 1:
        return None
    shapes = [shape_of(value) for value in joined.get_node().input_values()]
    if len(shapes) != 2 or any(not shape for shape in shapes):
        return None
    rank = len(shapes[0])
    axis = joined.get_node().get_attributes()["axis"] % rank
    if int(axes.flat[0]) % rank != axis or all(shape[axis] == 1 for shape in shapes):
        return None
    apart = kept_apart(joined)
    apart.set_friendly_name(made_for(node.get_friendly_name(), Made.ALONE))
    node.input(0).replace_source_output(apart.output(0))
    return node


def pool_to_one_alone(pool: Node) -> Node | None:
    """The plugin makes a ReduceMax of an AdaptiveMaxPool to one element, which takes a FakeQuantize to integers wrongly
    (`reduce_alone`). What has gone through the common optimizations has none.
    """
    sizes = constant_above(pool.input_value(1))
    if sizes is None or (sizes != 1).any() or pool.output(1).get_target_inputs():
        return None
    stores = any(
        reader.get_type_name() == "FakeQuantize" and precision_of(reader.output(0)) in INT8
        for reader in readers_of(pool)
    )
    return block_fusion(pool) if stores else None


def scale_in_f64(node: Node) -> Node | None:
    """Compute the one scale of a reduction of integers in f64 before a float layer, which keeps it from the layer's weights
    (`scales.compute_scale_in_f64`). The plugin has a reduction that no other operation is fused into write f32 where
    floats are bf16, and a Reorder follows; with the scale as post-operation it writes bf16.
    """
    targets = list(node.output(0).get_target_inputs())
    scale = targets[0].get_node() if len(targets) == 1 else None
    if scale is None or scale.get_type_name() != "Multiply" or precision_of(scale.output(0)) != "f32":
        return None
    factor, readers = constant_above(scale.input_value(1)), scale.output(0).get_target_inputs()
    read_by_layers = all(reader.get_node().get_type_name() in WEIGHTED for reader in readers)
    if precision_of(node.input_value(0)) not in INT8 or factor is None or factor.size > 1 or not read_by_layers:
        return None
    wide = opset1.multiply(opset1.convert(node.output(0), "f64"), constant(factor, "f64"))
    back = opset1.convert(wide, "f32")
    back.set_friendly_name(scale.get_friendly_name())
    wide.set_friendly_name(made_for(scale.get_friendly_name(), Made.F64))
    replace_output(scale.output(0), back.output(0))
    return node


def _takes_wrongly(reduction: Node) -> bool:
    axes, shape, link = reduction.input_value(1).get_node(), shape_of(reduction.input_value(0)), reduction
    if not isinstance(axes, Constant):
        return False
    rank = len(shape or ())  # of an open one nothing is known of the channels
    dropped = (
        set() if reduction.get_attributes()["keep_dims"] else {int(axis) % max(rank, 1) for axis in axes.data.flat}
    )
    takes_channels, is_moved = rank > 3 and not dropped & {0, 1}, False
    is_extreme = reduction.get_type_name() in ("ReduceMax", "ReduceMin")
    readers = readers_of(reduction)
    if len(readers) > 1 and not takes_channels and all(map(_computes_by_channel, readers)):
        return True  # of shifts with equal scales after them the plugin makes one scale, and shifts after it
    while (target := merged_target(link)) is not None:
        link = target.get_node()
        if link.get_type_name() in MOVES_UP and target.get_index() == 0:
            is_moved = True  # of what follows, a FakeQuantize with one interval is moved before it
            continue
        if link.get_type_name() not in (*_AFTER_REDUCTION, "FakeQuantize"):
            return False
        others = [value for port, value in enumerate(link.input_values()) if port != target.get_index()]
        constants = [constant_above(value) for value in others]
        by_channel = not all(values is None or is_scalar_like(values) for values in constants)
        if by_channel and not takes_channels:
            return not is_moved
        if link.get_type_name() == "FakeQuantize":
            is_stored = precision_of(link.output(0)) not in REAL or is_for_recurrent_layer(link)
            return is_extreme and is_stored and not (by_channel and is_moved)
        if any(values is None for values in constants):
            return False
    return False


def _computes_by_channel(link: Node) -> bool:
    constants = [constant_above(value) for value in link.input_values()]
    by_channel = any(values is not None and not is_scalar_like(values) for values in constants)
    return link.get_type_name() in ARITHMETIC and by_channel
