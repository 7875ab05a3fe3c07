"""Moves: the constant after an operation from the constant before it."""

from __future__ import annotations

import numpy as np

from ovlpt.operations.facts import Move, NodeFacts
from ovlpt.operations.values import (
    axes_of,
    blocks_of,
    is_scalar_like,
    mapped_axes,
    pad_value,
    to_scalar_if_possible,
    with_rank,
)


def keep(values: np.ndarray, _: NodeFacts) -> np.ndarray:
    return values


def as_one(values: np.ndarray, _: NodeFacts) -> np.ndarray:
    """Equal numbers for each channel, of which the result has others."""
    return values if values.size == 1 else values.reshape(-1)[0].reshape(())


def reduce(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values.reshape(())
    if facts.attributes.get("keep_dims"):
        return values
    return np.squeeze(with_rank(values, facts.rank), tuple(axes_of(facts)))


def sum_of_zero_points(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    return reduce(values * np.float32(np.prod([facts.shape[axis] for axis in axes_of(facts)])), facts)


def squeeze(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    """OpenVINO leaves an axis whose size is known and not 1."""
    if values.size == 1:
        return values.reshape(())
    dropped = tuple(axis for axis in axes_of(facts) if facts.shape[axis] in (None, 1))
    return np.squeeze(with_rank(values, facts.rank), dropped)


def unsqueeze(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    return np.expand_dims(with_rank(values, facts.rank), tuple(int(axis) for axis in np.ravel(facts.constants[1])))


def shuffle(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    axis, groups = facts.attributes["axis"] % facts.rank, facts.attributes["group"]
    aligned = with_rank(values, facts.rank)
    if values.size == 1:
        return values
    if aligned.shape[axis] == 1:
        return aligned
    order = np.arange(aligned.shape[axis]).reshape(groups, -1).T.reshape(-1)
    return np.take(aligned, order, axis)


def broadcast(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    if is_scalar_like(values):
        return values
    shape = [1] * len(facts.output_shape)
    for axis, size in zip(mapped_axes(facts), with_rank(values, facts.rank).shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)


def gather(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    if is_scalar_like(values):
        return values.reshape(-1)[0].reshape(())
    axis, aligned = axes_of(facts, 2)[0], with_rank(values, facts.rank)
    if aligned.shape[axis] == 1:
        new_axes = len(facts.output_shape) - facts.rank + 1
        return np.take(aligned, np.zeros((1,) * new_axes, np.int64), axis)
    return to_scalar_if_possible(np.take(aligned, facts.constants[1], axis))


def slice_(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    begin, end, step = (np.ravel(facts.constants[port]).tolist() for port in (1, 2, 3))
    axes = axes_of(facts, 4) if len(facts.constants) > 4 else range(len(begin))
    aligned, entries = with_rank(values, facts.rank), [slice(None)] * facts.rank
    for axis, *bounds in zip(axes, begin, end, step, strict=True):
        if aligned.shape[axis] > 1:
            entries[axis] = slice(*bounds)
    return aligned[tuple(entries)]


def strided_slice(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    """Sliced like the data, but for axes along which the constant does not vary."""
    if values.size == 1:
        return values.reshape(())
    aligned, attributes = with_rank(values, facts.rank), facts.attributes
    begin, end = (np.ravel(facts.constants[port]).tolist() for port in (1, 2))
    strides = np.ravel(facts.constants[3]).tolist() if len(facts.constants) > 3 else [1] * len(begin)

    def masked(name: str, entry: int) -> bool:
        mask = attributes[name]
        return entry < len(mask) and bool(mask[entry])

    entries: list = []
    axis = 0
    for entry, stride in enumerate(strides):
        if masked("ellipsis_mask", entry):
            later = range(entry + 1, len(strides))
            entries.append(Ellipsis)
            axis = facts.rank - sum(not masked("new_axis_mask", other) for other in later)
        elif masked("new_axis_mask", entry):
            entries.append(None)
        else:
            whole = aligned.shape[axis] == 1
            if masked("shrink_axis_mask", entry):
                entries.append(0 if whole else begin[entry])
            elif whole:
                entries.append(slice(None))
            else:
                first = None if masked("begin_mask", entry) else begin[entry]
                last = None if masked("end_mask", entry) else end[entry]
                entries.append(slice(first, last, stride))
            axis += 1
    return to_scalar_if_possible(aligned[tuple(entries)])


def pad_with(fill: float) -> Move:
    """Padded cells hold ``value`` itself: it is stored as it is, with zero point 0 and scale 1."""

    def move(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
        mode, begin, end = facts.attributes["pad_mode"], facts.constants[1], facts.constants[2]
        adds = (begin > 0).any() or (end > 0).any()
        differs = mode == "constant" and values.size == 1 and adds and (fill == 0 or pad_value(facts) != 0)
        if values.size == 1 and not differs:
            return values
        aligned = with_rank(values, facts.rank)
        varies = np.array(aligned.shape) > 1
        if differs:
            axis = int(np.flatnonzero((begin != 0) | (end != 0))[0])
            aligned, varies[axis] = np.repeat(aligned, facts.shape[axis] or 1, axis), True
        widths = np.stack([begin, end], 1) * varies[:, np.newaxis]
        filled = {"constant_values": fill} if mode == "constant" else {}
        padded = np.pad(aligned, np.maximum(widths, 0), mode, **filled)
        crops = np.minimum(widths, 0)
        return padded[
            tuple(slice(-first, size + last) for (first, last), size in zip(crops, padded.shape, strict=True))
        ]

    return move


def transpose(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    if values.size == 1 or (not facts.is_low and values.ndim <= 1):
        return values
    if facts.constants[1] is None:
        return to_scalar_if_possible(values)
    return np.transpose(
        with_rank(values, facts.rank), np.ravel(facts.constants[1]) if facts.constants[1].size else None
    )


def tile(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    """Copied along the axes on which it varies."""
    if values.size == 1:
        return values
    rank = max(facts.rank, facts.constants[1].size)
    aligned, copies = with_rank(values, rank), with_rank(np.ravel(facts.constants[1]), 1)
    copies = np.concatenate([np.ones(rank - copies.size, int), copies])
    return np.tile(aligned, np.where(np.array(aligned.shape) > 1, copies, 1))


def roll(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    axes = axes_of(facts, 2)
    return np.roll(with_rank(values, facts.rank), np.broadcast_to(np.ravel(facts.constants[1]), len(axes)), axes)


def reshape(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    """Spread over the blocks of axes in which it varies, and one again along axes on which it then does not."""
    if is_scalar_like(values):
        return values.reshape(-1)[0].reshape(())
    blocks = None if not facts.is_low else blocks_of(facts.shape, facts.output_shape)
    if blocks is None:
        channels = facts.output_shape[1]
        repeated = np.repeat(values.reshape(-1), channels // values.size)
        return repeated.reshape(1, channels, *(1 for _ in facts.output_shape[2:]))
    aligned = with_rank(values, facts.rank)
    spread, shape = [1] * facts.rank, [1] * len(facts.output_shape)
    for axes, others in blocks:
        if any(aligned.shape[axis] > 1 for axis in axes):
            for axis in axes:
                spread[axis] = facts.shape[axis] or aligned.shape[axis]
            for axis in others:
                shape[axis] = facts.output_shape[axis] or aligned.shape[axes[0]]
    moved = np.broadcast_to(aligned, spread).reshape(shape)
    for axis in range(moved.ndim):
        first = moved.take([0], axis)
        moved = first if (moved == first).all() else moved
    return moved
