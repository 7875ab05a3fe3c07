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


def reduce(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values.reshape(())
    if site.attributes.get("keep_dims"):
        return values
    return np.squeeze(with_rank(values, site.rank), tuple(axes_of(site)))


def sum_of_zero_points(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    return reduce(values * np.float32(np.prod([site.shape[axis] for axis in axes_of(site)])), site)


def squeeze(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    return values.reshape(()) if values.size == 1 else np.squeeze(with_rank(values, site.rank), tuple(axes_of(site)))


def unsqueeze(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    return np.expand_dims(with_rank(values, site.rank), tuple(int(axis) for axis in np.ravel(site.constants[1])))


def shuffle(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    axis, groups = site.attributes["axis"] % site.rank, site.attributes["group"]
    aligned = with_rank(values, site.rank)
    if values.size == 1 or aligned.shape[axis] == 1:
        return values
    order = np.arange(aligned.shape[axis]).reshape(groups, -1).T.reshape(-1)
    return np.take(aligned, order, axis)


def broadcast(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if is_scalar_like(values):
        return values
    shape = [1] * len(site.output_shape)
    for axis, size in zip(mapped_axes(site), with_rank(values, site.rank).shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)


def gather(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if is_scalar_like(values):
        return values.reshape(-1)[0].reshape(())
    axis, aligned = axes_of(site, 2)[0], with_rank(values, site.rank)
    if aligned.shape[axis] == 1:
        new_axes = len(site.output_shape) - site.rank + 1
        return np.take(aligned, np.zeros((1,) * new_axes, np.int64), axis)
    return to_scalar_if_possible(np.take(aligned, site.constants[1], axis))


def slice_(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    begin, end, step = (np.ravel(site.constants[port]).tolist() for port in (1, 2, 3))
    axes = axes_of(site, 4) if len(site.constants) > 4 else range(len(begin))
    aligned, entries = with_rank(values, site.rank), [slice(None)] * site.rank
    for axis, *bounds in zip(axes, begin, end, step, strict=True):
        if aligned.shape[axis] > 1:
            entries[axis] = slice(*bounds)
    return aligned[tuple(entries)]


def strided_slice(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    """Sliced like the data, but for axes along which the constant does not vary."""
    if values.size == 1:
        return values.reshape(())
    aligned, attributes = with_rank(values, site.rank), site.attributes
    begin, end = (np.ravel(site.constants[port]).tolist() for port in (1, 2))
    strides = np.ravel(site.constants[3]).tolist() if len(site.constants) > 3 else [1] * len(begin)

    def masked(name: str, entry: int) -> bool:
        mask = attributes[name]
        return entry < len(mask) and bool(mask[entry])

    entries: list = []
    axis = 0
    for entry, stride in enumerate(strides):
        if masked("ellipsis_mask", entry):
            later = range(entry + 1, len(strides))
            entries.append(Ellipsis)
            axis = site.rank - sum(not masked("new_axis_mask", other) for other in later)
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

    def move(values: np.ndarray, site: NodeFacts) -> np.ndarray:
        mode, begin, end = site.attributes["pad_mode"], site.constants[1], site.constants[2]
        adds = (begin > 0).any() or (end > 0).any()
        if mode == "constant" and values.size == 1 and adds and (fill == 0 or pad_value(site) != 0):
            axis = int(np.flatnonzero((begin != 0) | (end != 0))[0])
            shape = [1] * site.rank
            shape[axis] = site.shape[axis] or 1
            values = np.broadcast_to(values.reshape(-1)[0], shape)
        if values.size == 1:
            return values
        aligned = with_rank(values, site.rank)
        widths = np.stack([begin, end], 1) * (np.array(aligned.shape) > 1)[:, np.newaxis]
        filled = {"constant_values": fill} if mode == "constant" else {}
        padded = np.pad(aligned, np.maximum(widths, 0), mode, **filled)
        crops = np.minimum(widths, 0)
        return padded[
            tuple(slice(-first, size + last) for (first, last), size in zip(crops, padded.shape, strict=True))
        ]

    return move


def transpose(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1 or (site.as_native and values.ndim <= 1):
        return values
    if site.constants[1] is None:
        return to_scalar_if_possible(values)
    return np.transpose(with_rank(values, site.rank), np.ravel(site.constants[1]) if site.constants[1].size else None)


def tile(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    """Copied along the axes on which it varies."""
    if values.size == 1:
        return values
    rank = max(site.rank, site.constants[1].size)
    aligned, copies = with_rank(values, rank), with_rank(np.ravel(site.constants[1]), 1)
    copies = np.concatenate([np.ones(rank - copies.size, int), copies])
    return np.tile(aligned, np.where(np.array(aligned.shape) > 1, copies, 1))


def roll(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    axes = axes_of(site, 2)
    return np.roll(with_rank(values, site.rank), np.broadcast_to(np.ravel(site.constants[1]), len(axes)), axes)


def reshape(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    """Spread over the blocks of axes in which it varies, and one again along axes on which it then does not."""
    if is_scalar_like(values):
        return values.reshape(-1)[0].reshape(())
    blocks = None if site.as_native else blocks_of(site.shape, site.output_shape)
    if blocks is None:
        channels = site.output_shape[1]
        repeated = np.repeat(values.reshape(-1), channels // values.size)
        return repeated.reshape(1, channels, *(1 for _ in site.output_shape[2:]))
    aligned = with_rank(values, site.rank)
    spread, shape = [1] * site.rank, [1] * len(site.output_shape)
    for axes, others in blocks:
        if any(aligned.shape[axis] > 1 for axis in axes):
            for axis in axes:
                spread[axis] = site.shape[axis] or aligned.shape[axis]
            for axis in others:
                shape[axis] = site.output_shape[axis] or aligned.shape[axes[0]]
    moved = np.broadcast_to(aligned, spread).reshape(shape)
    for axis in range(moved.ndim):
        first = moved.take([0], axis)
        moved = first if (moved == first).all() else moved
    return moved
