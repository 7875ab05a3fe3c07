"""Readings of a node's constants and shapes that checks and moves share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ovlpt.operations.facts import NodeFacts, Shape

_OFF_GRID = 1e-4


def is_scalar_like(values: np.ndarray) -> bool:
    """One element, or all elements equal."""
    return values.size == 1 or bool((values == values.flat[0]).all())


def is_whole(value: float) -> bool:
    """A whole number, but for what float32 leaves of one."""
    return abs(value - round(value)) <= _OFF_GRID


def with_rank(values: np.ndarray, rank: int) -> np.ndarray:
    """The constant with leading ones up to ``rank``."""
    return values.reshape((1,) * (rank - values.ndim) + values.shape) if values.ndim < rank else values


def axes_of(facts: NodeFacts, port: int = 1) -> list[int] | None:
    axes = facts.constants[port] if port < len(facts.constants) else None
    return None if axes is None else [int(axis) % facts.rank for axis in np.ravel(axes)]


def mapped_axes(facts: NodeFacts) -> list[int] | None:
    """Where each axis of the data goes. Broadcast-1 has a third input in every mode, and reads it in one only."""
    if facts.constants[1] is None:
        return None
    if facts.attributes["mode"] != "explicit":
        return list(range(len(facts.output_shape) - facts.rank, len(facts.output_shape)))
    return None if facts.constants[2] is None else [int(axis) for axis in np.ravel(facts.constants[2])]


def copies_values(attributes: Mapping[str, Any]) -> bool:
    return attributes["mode"] == "nearest"


def interpolated_axes(facts: NodeFacts) -> list[int] | None:
    """Axes are the last input where it is an integer and not the sizes; all without them; None: not known."""
    if len(facts.constants) > 2:
        if facts.constants[-1] is None:
            return None
        if np.issubdtype(facts.constants[-1].dtype, np.integer):
            return axes_of(facts, -1)
    return list(range(facts.rank))


def normalized(facts: NodeFacts) -> Sequence[int] | None:
    """The axes of an MVN; of its first version attributes say it. None: not known."""
    if len(facts.constants) > 1:
        return axes_of(facts)
    first = 1 if facts.attributes.get("across_channels") else 2
    return facts.attributes.get("reduction_axes") or range(first, facts.rank)


def pad_value(facts: NodeFacts) -> float | None:
    """What it pads with, 0 in other modes; None: not known."""
    if facts.attributes["pad_mode"] != "constant" or len(facts.constants) < 4:
        return 0.0
    return None if facts.constants[3] is None else float(np.ravel(facts.constants[3])[0])


def to_scalar_if_possible(values: np.ndarray) -> np.ndarray:
    """Collapse equal elements to one value of shape ()."""
    return values.reshape(-1)[0].reshape(()) if is_scalar_like(values) else values


def show(shape: Shape) -> str:
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def blocks_of(before: Shape, after: Shape) -> list[tuple[range, range]] | None:
    """Neighbouring axes before and after a Reshape that hold the same elements; None where sizes do not tell.

    One dynamic dimension on each side is the same where all others agree.
    """
    if before.count(None) > 1 or after.count(None) > 1 or 0 in (*before, *after):
        return None
    blocks, ends = [], [0, 0]
    while ends[0] < len(before) and ends[1] < len(after):
        begin, sizes = tuple(ends), [before[ends[0]], after[ends[1]]]
        ends = [ends[0] + 1, ends[1] + 1]
        while sizes[0] != sizes[1]:
            if None in sizes:
                return None
            side = 0 if sizes[0] < sizes[1] else 1
            shape = (before, after)[side]
            if ends[side] == len(shape) or shape[ends[side]] is None:
                return None
            sizes[side] *= shape[ends[side]]
            ends[side] += 1
        blocks.append((range(begin[0], ends[0]), range(begin[1], ends[1])))
    if not blocks or any(size != 1 for size in (*before[ends[0] :], *after[ends[1] :])):
        return None
    last = blocks.pop()
    return [*blocks, (range(last[0].start, len(before)), range(last[1].start, len(after)))]
