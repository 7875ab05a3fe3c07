"""Einsum as the operations that low precision has rules for, as plugins have it before their own LPT."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ovlpt.graph.constants import constant
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import Node, Output, opset1, opset8

_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # labels of the axes after an ellipsis, unless the equation has them


def decomposed_einsum(node: Node) -> Node | None:
    """Transpose, Reshape, ReduceSum and MatMul for one or two operands.

    A summed axis that turns out to be 1 beside a larger one is not broadcast, and throws: that would take two layers for
    each operand of open sizes. None for more operands, whose order is the plugin's to choose, for a label that one operand has twice (a diagonal),
    and where an ellipsis stands for an unknown number of axes.
    """
    operands = node.input_values()
    shapes = [shape_of(value) for value in operands]
    if len(operands) > 2 or None in shapes:
        return None
    labels, result = _parsed(node.get_attributes()["equation"], [len(shape) for shape in shapes])
    if any(len(set(each)) != len(each) for each in (*labels, result)):
        return None
    parts = [_Part(value, each) for value, each in zip(operands, labels, strict=True)]
    if len(parts) == 1:
        return parts[0].without(set(labels[0]) - set(result)).in_order(result).node
    left, right = (
        part.without(set(part.labels) - set(result) - set(other.labels))
        for part, other in (parts, parts[::-1])
    )  # fmt: skip
    return _product(left, right, result, f"{node.get_friendly_name()}/MatMul").in_order(result).node


def contracted_size(node: Node) -> int:
    """How many products each value of an Einsum of two operands sums; 0 where that is not known."""
    shapes = [shape_of(value) for value in node.input_values()]
    if len(shapes) != 2 or None in shapes:
        return 0
    (left, right), result = _parsed(node.get_attributes()["equation"], [len(shape) for shape in shapes])
    sizes = [size for label, size in zip(left, shapes[0], strict=True) if label in right and label not in result]
    return 0 if None in sizes else math.prod(sizes)


def _parsed(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of the operands and of the result, one letter an axis."""
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    spare = "".join(letter for letter in _SPARE if letter not in equation)
    given = inputs.split(",")
    hidden = [rank - len(each.replace("...", "")) for each, rank in zip(given, ranks, strict=True)]
    most = max((count for each, count in zip(given, hidden, strict=True) if "..." in each), default=0)
    if not arrow:
        letters = sorted({letter for letter in inputs if letter.isalpha() and inputs.count(letter) == 1})
        result = ("..." if "..." in inputs else "") + "".join(letters)
    labels = [
        each.replace("...", spare[most - count : most]) for each, count in zip(given, hidden, strict=True)
    ]  # fmt: skip
    return labels, result.replace("...", spare[:most])


class _Part:
    """A value with a label for each of its axes."""

    def __init__(self, value: Output, labels: str):
        self.value, self.labels = value, labels
        shape = shape_of(value)
        self.known = dict(zip(labels, shape, strict=True)) if shape is not None else dict.fromkeys(labels)

    @property
    def node(self) -> Node:
        return self.value.get_node()

    def without(self, summed: set[str]) -> _Part:
        """Summed over some of its axes."""
        if not summed:
            return self
        axes = constant(np.array([self.labels.index(label) for label in sorted(summed)]), "i64")
        kept = "".join(label for label in self.labels if label not in summed)
        return _Part(opset1.reduce_sum(self.value, axes, False).output(0), kept)

    def in_order(self, labels: str) -> _Part:
        if labels == self.labels:
            return self
        order = constant(np.array([self.labels.index(label) for label in labels]), "i64")
        return _Part(opset1.transpose(self.value, order).output(0), labels)

    def size(self, label: str) -> Node:
        """Of an axis, as a tensor of one element."""
        if self.known[label] is not None:
            return constant(np.array([self.known[label]]), "i64")
        index, axis = constant(np.array([self.labels.index(label)]), "i64"), constant(np.array(0), "i64")
        return opset8.gather(opset8.shape_of(self.value, "i64"), index, axis)

    def with_axes(self, groups: Sequence[str]) -> Output:
        """The value, whose axes stand in this order, with one axis for each group: 1 for an empty one."""
        if all(len(group) == 1 for group in groups):
            return self.value
        return reshaped_to([[(self, label) for label in group] for group in groups], self.value)


def reshaped_to(groups: Sequence[Sequence[tuple[_Part, str]]], value: Output) -> Output:
    """A Reshape to axes each of which is a product of others; -1 for one that is open."""
    known = [[part.known[label] for part, label in group] for group in groups]
    sizes = [None if None in each else int(np.prod(each)) for each in known]
    if sizes.count(None) <= 1:
        target = constant(np.array([-1 if size is None else size for size in sizes]), "i64")
    else:
        pieces = []
        for group in groups:
            piece = constant(np.array([1]), "i64")
            for part, label in group:
                piece = part.size(label) if len(group) == 1 else opset1.multiply(piece, part.size(label))
            pieces.append(piece)
        target = opset1.concat(pieces, 0)
    return opset1.reshape(value, target, False).output(0)


def _product(left: _Part, right: _Part, result: str, name: str) -> _Part:
    """The labels that both have and the result has not are contracted, those that the result has too are a batch.
    ``name``: of the MatMul.
    """
    batch = "".join(label for label in result if label in left.labels and label in right.labels)
    contracted = "".join(label for label in left.labels if label in right.labels and label not in result)
    mine, theirs = (
        "".join(label for label in result if label in part.labels and label not in batch) for part in (left, right)
    )
    if not contracted:
        return _scaled(left, right, batch + mine + theirs)
    if not batch and right.labels in (contracted + theirs, theirs + contracted) and len(right.labels) == 2:
        mine_apart = left.in_order(mine + contracted) if left.labels[-1] != contracted else left
        mine = mine_apart.labels[:-1]
        transposed = right.labels == theirs + contracted
        product = opset1.matmul(mine_apart.value, right.value, False, transposed)
        product.set_friendly_name(name)
        return _Part(product.output(0), mine + theirs)
    left, first = _matrix(left, batch, mine, contracted)
    right, second = _matrix(right, batch, theirs, contracted)
    product = opset1.matmul(left[0], right[0], first, not second)
    product.set_friendly_name(name)
    value = product.output(0)
    if len(mine) != 1 or len(theirs) != 1:
        sources = {label: part for part in (right[1], left[1]) for label in part.labels}
        value = reshaped_to([[(sources[label], label)] for label in batch + mine + theirs], value)
    return _Part(value, batch + mine + theirs)


def _matrix(part: _Part, batch: str, free: str, contracted: str) -> tuple[tuple[Output, _Part], bool]:
    """[batch…, free, contracted], or with the last two the other way round where the axes stand so already."""
    is_turned = part.labels == batch + contracted + free
    part = part if is_turned else part.in_order(batch + free + contracted)
    last = (contracted, free) if is_turned else (free, contracted)
    return (part.with_axes([*batch, *last]), part), is_turned


def _scaled(left: _Part, right: _Part, labels: str) -> _Part:
    """Nothing is contracted: each is broadcast along the axes that only the other has."""
    values = []
    for part in (left, right):
        ordered = part.in_order("".join(label for label in labels if label in part.labels))
        missing = [axis for axis, label in enumerate(labels) if label not in part.labels]
        value = ordered.value
        if missing:
            value = opset1.unsqueeze(value, constant(np.array(missing), "i64")).output(0)
        values.append(value)
    return _Part(opset1.multiply(*values).output(0), labels)
