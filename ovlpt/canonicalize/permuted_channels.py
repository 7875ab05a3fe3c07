from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above
from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1, opset8
from ovlpt.operations.families import ACTIVATIONS, ARITHMETIC, CONVOLUTIONS
from ovlpt.trace import Reason

_PARTS = 3  # the only number of which OpenVINO takes a Concat for a permutation
# What a permutation is moved through
_PASSED = (
    ARITHMETIC
    | ACTIVATIONS
    | {"Abs", "Ceiling", "Clamp", "Convert", "Erf", "Exp", "FakeQuantize", "Floor", "HardSigmoid", "Log", "Maximum", "Minimum"}
    | {"Negative", "PRelu", "Pad", "Power", "Relu", "Sign", "Sqrt", "SquaredDifference", "Transpose"}
)  # fmt: skip


class PermutedChannels(LayerTransformation):
    """A Gather that permutes the channels of a convolution's data, as two Gathers each of which is its own inverse; a Split into
    three parts that a Concat permutes, as a VariadicSplit.

    OpenVINO moves a permutation of channels into the weights of the convolution and does not invert it, which is right for
    those that are their own inverse, as from RGB to BGR. Any permutation is two of them, one after the other. It takes the
    three parts for channels: compiling throws where they have several each. A VariadicSplit it does not take so.
    """

    quiet = True
    why = Reason("permuted_channels", "its order of channels would be moved into weights without being inverted")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Gather", "opset1.Split", "opset7.Gather", "opset8.Gather"]

    def concerns(self, node: Node) -> bool:
        if node.get_type_name() == "Split":
            return (joined := _permuted_whole(node)) is not None and _meets_convolution(joined)
        order = _order(node)
        return order is not None and bool((order[order] != np.arange(order.size)).any()) and _meets_convolution(node)

    def transform(self, node: Node) -> None:
        if node.get_type_name() == "Split":
            data, axis = node.input_values()
            sizes = [shape_of(value)[int(constant_above(axis))] for value in node.outputs()]
            parts = opset1.variadic_split(data, axis, constant(np.array(sizes), "i64"))
            parts.set_friendly_name(node.get_friendly_name())
            for old, new in zip(node.outputs(), parts.outputs(), strict=True):
                replace_output(old, new)
            return
        first, second = _own_inverses(_order(node))
        axis = node.input_value(2)
        once = opset8.gather(node.input_value(0), constant(first, "i64"), axis)
        once.set_friendly_name(made_for(node.get_friendly_name(), Made.PERMUTED))
        twice = opset8.gather(once, constant(second, "i64"), axis)
        twice.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), twice.output(0))


def _order(gather: Node) -> np.ndarray | None:
    """The places that a Gather reads along an axis, if it reads each once, and not those of the batch."""
    places, axis = (constant_above(value) for value in gather.input_values()[1:])
    shape = shape_of(gather.input_value(0))
    if places is None or axis is None or axis.size != 1 or places.ndim != 1 or not shape:
        return None
    size = shape[along := int(axis.flat[0]) % len(shape)]
    if not along or size is None or size != places.size or gather.get_attributes().get("batch_dims", 0):
        return None
    order = places.astype(np.int64) % size
    return order if np.unique(order).size == size else None


def _permuted_whole(split: Node) -> Node | None:
    """The Concat of the three parts, each once and not in their order, along the axis of which they are parts of known sizes."""
    parts, axis = split.outputs(), constant_above(split.input_value(1))
    joined = [
        target for value in parts for target in consumers_of(value) if target.get_node().get_type_name() == "Concat"
    ]
    shape = shape_of(parts[0])
    if len(parts) != _PARTS or len(joined) != _PARTS or axis is None or not shape or shape[int(axis)] is None:
        return None
    node, order = joined[0].get_node(), [target.get_index() for target in joined]
    is_one = all(target.get_node().get_instance_id() == node.get_instance_id() for target in joined)
    along = node.get_attributes()["axis"] % len(shape) == int(axis) % len(shape)
    return node if is_one and along and node.get_input_size() == _PARTS and order != sorted(order) else None


def _meets_convolution(permuted: Node) -> bool:
    """Whether a convolution reads it, or what is computed of it element by element."""
    pending, seen = [permuted], set[int]()
    while pending:
        node = pending.pop()
        for target in consumers_of(node.output(0)):
            reader = target.get_node()
            kind, identity = reader.get_type_name(), reader.get_instance_id()
            if kind in CONVOLUTIONS and target.get_index() == 0:
                return True
            if kind in _PASSED and identity not in seen:
                seen.add(identity)
                pending.append(reader)
    return False


def _own_inverses(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two permutations, each its own inverse: ``x[order] == x[first][second]``. Each mirrors every cycle of the order."""
    first, second = np.arange(order.size), np.arange(order.size)
    pending = set(range(order.size))
    while pending:
        cycle = [pending.pop()]
        while (place := int(order[cycle[-1]])) in pending:
            pending.remove(place)
            cycle.append(place)
        places = np.array(cycle)
        first[places], second[places] = np.roll(places[::-1], 2), np.roll(places[::-1], 1)
    return first, second
