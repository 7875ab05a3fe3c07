"""ScaledDotProductAttention: its masks, and which ones a CPU runs whole."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above
from ovlpt.openvino_api import RELEASE, Node, Output, opset1

# `ScaledDotProductAttention` is decomposed there with what a boolean mask shows hidden, and the reverse.
MISREADS_BOOLEANS = RELEASE < (2025, 3)


def of_mask(condition: Output, then: float, otherwise: float, precision: str) -> Output:
    """What is added to the scores where a boolean mask is true, and where it is not."""
    known = constant_above(condition)
    if known is not None:  # a Select of constants would look like data to whoever asks what is added
        return constant(np.where(known, np.float32(then), np.float32(otherwise)), precision).output(0)
    chosen = (constant(np.float32(value), precision) for value in (then, otherwise))
    return opset1.select(condition, *chosen).output(0)


def reads_cache(attention: Node) -> bool:
    """Whether the plugin fuses an attention with the variables of its keys and values; any other it decomposes.

    Both are a Concat of what a Gather by beams reads of the variable, and of what is new. Where its kernel fails, or
    reads past the end of a mask that is the same for all keys, the attention is to be decomposed as well.
    """
    if attention.get_input_partial_shape(0).rank != 4 or _is_even(attention):
        return False
    return all(_is_cached(attention.input_value(port)) for port in (1, 2))


def _is_even(attention: Node) -> bool:
    """Whether the mask has one number for all keys."""
    if attention.get_input_size() < 4:
        return False
    shape = attention.get_input_partial_shape(3)
    return shape.rank.is_static and (not len(shape) or shape[len(shape) - 1] == 1)


_PASSED = frozenset(("Broadcast", "Convert", "Multiply", "Reshape", "Transpose", "Unsqueeze"))


def _is_cached(value: Output) -> bool:
    node = value.get_node()
    # before 2025 quantized keys and queries leave it whole
    passed = _PASSED | {"FakeQuantize"} if RELEASE < (2025, 0) else _PASSED
    while node.get_type_name() in passed:
        node = node.input_value(0).get_node()
    if node.get_type_name() != "Concat":
        return False
    past = [_without_convert(source.get_node()) for source in node.input_values()]
    gathered = [_without_convert(each.input_value(0).get_node()) for each in past if each.get_type_name() == "Gather"]
    if RELEASE < (2025, 0):  # which asks for variables only
        gathered += past
    return any(each.get_type_name() == "ReadValue" for each in gathered)


def _without_convert(node: Node) -> Node:
    return node.input_value(0).get_node() if node.get_type_name() == "Convert" else node
