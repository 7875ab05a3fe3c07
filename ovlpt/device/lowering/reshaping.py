"""A layer, and what may become part of it, with other axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Set
from itertools import pairwise
from typing import Any

import numpy as np

from ovlpt.graph.constants import constant, constant_above, precision_of, values_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.shapes import Shape, reshaped, shape_of
from ovlpt.layer_transformation import move_tensor_names, replace_output
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations.families import ACTIVATIONS, AFFINE, CONVOLUTIONS
from ovlpt.prerequisites.interpolate_layout import transposed_alone

ELEMENTWISE = AFFINE | {"Clamp", "Convert", "FakeQuantize", "Gelu", "HSwish", "Relu", "Sigmoid", "Swish", "Tanh"}
# What a GPU fuses into a layer
ON_A_GPU = ELEMENTWISE | ACTIVATIONS | {
    "Abs", "Divide", "Exp", "Floor", "Maximum", "Minimum", "Negative", "Sqrt", "SquaredDifference",
}  # fmt: skip


def chain_after(node: Node, kinds: Set[str], takes: Callable[[Output], bool]) -> list[Node]:
    """The node and the single-consumer operations of these kinds after it; ``takes``: their other inputs."""
    chain = [node]
    while len(targets := list(chain[-1].output(0).get_target_inputs())) == 1:
        follower = targets[0].get_node()
        others = [value for port, value in enumerate(follower.input_values()) if port != targets[0].get_index()]
        if follower.get_type_name() not in kinds or not all(map(takes, others)):
            break
        chain.append(follower)
    return chain


def transpose_alone(node: Node) -> Node | None:
    """As before LPT: plugins run common optimizations again, where a quantization stood between the three until now."""
    return transposed_alone(node)


def is_constant(value: Output) -> bool:
    return isinstance(value.get_node(), Constant)


def between_reshapes(chain: list[Node], new: Node, changed: Callable[[Shape], Shape], made: Made) -> Node:
    """``new``, a layer on reshaped data, in the place of the first of ``chain``, and the others with such shapes, before a
    Reshape back.
    """
    original = chain[-1].output(0)
    targets, shape = original.get_target_inputs(), shape_of(original)
    replace_output(chain[0].output(0), new.output(0))
    for before, link in pairwise([new, *chain[1:]]):
        for port, value in enumerate(link.input_values()):
            sizes = shape_of(value)
            if value.get_node() is before or (other := changed(sizes)) == sizes:
                continue
            if is_constant(value):
                beside = constant(values_of(value.get_node()).reshape(other), precision_of(value))
            else:
                beside = reshaped(value, other)
            link.input(port).replace_source_output(beside.output(0))
        link.validate_and_infer_types()
    end = new.output(0) if len(chain) == 1 else original
    end_in(reshaped(end, shape), end, targets, made)
    return new


def lay_channels_last(node: Node) -> Node | None:
    """A Transpose of the channels of a convolution to the end, before sums, with its spatial axes as one.

    The plugin keeps the order in memory that the convolution has, with the channels last, as that of the axes now: a
    sum with the result of a MatMul takes it over, and so does each sum after that one, with a Reorder before and after each.
    Sums of such Transposes alone have this order anyway.
    """
    shape = shape_of(node.input_value(0))
    if shape is None or len(shape) < 4 or None in shape[1:]:
        return None
    if not _turns_convolution(node) or not _begins_sums(node):
        return None
    channels, *sizes = shape[1:]
    flat = reshaped(node.input_value(0), (shape[0], channels, math.prod(sizes)))
    swapped = opset1.transpose(flat, constant(np.array([0, 2, 1]), "i64"))
    result = reshaped(swapped.output(0), (shape[0], *sizes, channels))
    result.set_friendly_name(node.get_friendly_name())
    swapped.set_friendly_name(made_for(node.get_friendly_name(), Made.RANK_3))
    replace_output(node.output(0), result.output(0))
    return result


def _turns_convolution(node: Node) -> bool:
    """Whether it is a Transpose of the channels of a convolution, or of elementwise operations after one, to the end."""
    if node.get_type_name() != "Transpose" or (order := constant_above(node.input_value(1))) is None:
        return False
    source = node.input_value(0)
    while source.get_node().get_type_name() in ELEMENTWISE:
        source = source.get_node().input_value(0)
    is_last = [int(axis) for axis in order.flat] == [0, *range(2, order.size), 1]
    return is_last and source.get_node().get_type_name() in CONVOLUTIONS


def _begins_sums(node: Node) -> bool:
    """Whether a sum of the result and another tensor is in its turn added to another, and not all summands have its order."""
    first = _sums_with_another(node)
    return any(map(_sums_with_another, first)) and _add_another_order(first)


def _add_another_order(sums: Iterable[Node]) -> bool:
    """Whether these sums, or those that read them, add what no Transpose of a convolution's channels is."""
    waiting, seen = list(sums), set[int]()
    while waiting:
        node = waiting.pop()
        if node.get_instance_id() in seen:
            continue
        seen.add(node.get_instance_id())
        if node.get_type_name() in ELEMENTWISE:
            others = [value.get_node() for value in node.input_values() if not is_constant(value)]
            waiting += others if len(others) == 1 else [*others, *_sums_with_another(node)]
        elif not _turns_convolution(node):
            return True
    return False


def _sums_with_another(node: Node) -> list[Node]:
    """The sums with another tensor that read the result, as it is or after operations with constants."""
    found = []
    for target in node.output(0).get_target_inputs():
        reader = target.get_node()
        others = [value for port, value in enumerate(reader.input_values()) if port != target.get_index()]
        if reader.get_type_name() in ELEMENTWISE and all(map(is_constant, others)):
            found += _sums_with_another(reader)
        elif reader.get_type_name() == "Add":
            found.append(reader)
    return found


def end_in(last: Node, value: Output, targets: Iterable[Any], made: Made) -> None:
    """Let ``targets`` read ``last`` in place of ``value``, from which it is made, and which gives it its names."""
    before = value.get_node()
    last.set_friendly_name(before.get_friendly_name())
    before.set_friendly_name(made_for(before.get_friendly_name(), made))
    for target in targets:
        target.replace_source_output(last.output(0))
    move_tensor_names(value, last.output(0))
