"""The rows as the native library has them, for ``native_only``: versions that it knows, and what it asks otherwise."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ovlpt.operations.checks import (
    all_of,
    along_channels,
    constant_input,
    nearest,
    no_zero_point,
    normalized_axes,
    paddable,
    per_tensor,
    positive_scale,
    reshapable_as_native,
    scalar_like,
    slice_is_constant,
    sliceable,
    sliced,
    static_rank,
    transposable,
)
from ovlpt.operations.facts import Check, Move, NodeFacts
from ovlpt.operations.moves import gather, keep, pad_with, reshape, transpose
from ovlpt.operations.row import Operation
from ovlpt.operations.table import OPERATIONS
from ovlpt.operations.values import axes_of, mapped_axes, normalized, show, with_rank
from ovlpt.trace import Reason


def _check_as_real(check: Check) -> Check:
    """As of real data, whose scale is followed no further than it has to be."""
    return lambda facts: check(facts.but(is_low=False))


def _of_any_rank(check: Check) -> Check:
    """One scale passes data of an open rank, where that of the result is known."""

    def checked(facts: NodeFacts) -> Reason | None:
        is_one = all(values.size == 1 for values in facts.values)
        return None if is_one and facts.shape is None and facts.output_shape is not None else check(facts)

    return checked


def _move_as_real(move: Move) -> Move:
    return lambda values, facts: move(values, facts.but(is_low=False))


def _broadcastable(facts: NodeFacts) -> Reason | None:
    """One scale, or several where the axis of the channels keeps its place and its size."""
    axis, is_explicit = facts.channel_axis, facts.attributes["mode"] == "explicit"
    axes = mapped_axes(facts) if is_explicit else range(facts.rank)
    if per_tensor(facts) is None:
        return None
    if axes is not None and axes[axis] == axis and facts.shape[axis] == facts.output_shape[axis] is not None:
        return None
    text = f"{show(facts.shape)} becomes {show(facts.output_shape)}: the channels do not stay where they are"
    return Reason("channel_moves", text)


def _gather(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
    """What does not vary along the gathered axis stays as it is."""
    axes, aligned = axes_of(facts, 2), with_rank(values, facts.rank)
    return aligned if values.size > 1 and axes and aligned.shape[axes[0]] == 1 else gather(values, facts)


def _normalizable(facts: NodeFacts) -> Reason | None:
    """Equal scales, or several where the axis of the channels is not normalized: nobody asks along which they vary."""
    axes = normalized(facts)
    is_followed = axes is not None and (scalar_like(facts) is None or facts.channel_axis not in axes)
    return None if is_followed else normalized_axes(facts)


def _nearest_by_first_pads(facts: NodeFacts) -> Reason | None:
    """Of the first version, the padding of the first axis stands for all."""
    if "axes" not in facts.attributes:
        return nearest(facts)
    first = {name: facts.attributes[name][:1] for name in ("pads_begin", "pads_end")}
    return nearest(facts.but(attributes={**facts.attributes, **first}))


def _paddable(facts: NodeFacts) -> Reason | None:
    """Nobody asks along which axes the zero point of reflected data varies."""
    return paddable(facts.but(zero_point=None) if facts.attributes["pad_mode"] == "reflect" else facts)


def _pad_many(move: Move) -> Move:
    """What is padded along an axis of one element keeps its one scale."""

    def padded(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
        added = (facts.constants[1] != 0) | (facts.constants[2] != 0)
        is_one = values.size == 1 and added.any() and facts.shape[int(np.flatnonzero(added)[0])] == 1
        return values if is_one else move(values, facts)

    return padded


def _sliceable(facts: NodeFacts) -> Reason | None:
    """Even one scale needs a constant slice, unless it has a zero point beside it."""
    return sliceable(facts) or (slice_is_constant(facts) if facts.zero_point is None else None)


# The checks leave out what would be wrong: padding with zeros that stand for no zero, windows along the scale.
_CHANGES: dict[str, dict[str, Any]] = {
    "AvgPool": {"check": _of_any_rank(along_channels)},
    "Broadcast": {"check": all_of(along_channels, _broadcastable), "move": keep},
    "Gather": {"move": _gather},
    "Interpolate": {"check": all_of(along_channels, constant_input(1, "target size"), _nearest_by_first_pads)},
    "MVN": {"check": all_of(along_channels, no_zero_point, _normalizable)},
    "MaxPool": {"check": all_of(_of_any_rank(along_channels), positive_scale)},
    "PRelu": {"check": all_of(along_channels, constant_input(1, "slope"), no_zero_point, positive_scale)},
    "Pad": {
        "check": all_of(
            static_rank, constant_input(1, "padding before"), constant_input(2, "padding after"), _paddable
        ),
        "move": _pad_many(pad_with(1.0)),
        "move_zero_point": _pad_many(pad_with(0.0)),
    },
    "Relu": {"check": all_of(along_channels, no_zero_point, positive_scale)},
    "Reshape": {"check": _of_any_rank(_check_as_real(reshapable_as_native)), "move": _move_as_real(reshape)},
    "Slice": {"check": _check_as_real(sliced)},
    "SpaceToBatch": {"check": all_of(along_channels, per_tensor)},
    "StridedSlice": {"check": _sliceable},
    "Transpose": {"check": _of_any_rank(_check_as_real(transposable)), "move": _move_as_real(transpose)},
}
_ROWS: Mapping[Operation, dict[str, Any]] = {OPERATIONS[name]: changes for name, changes in _CHANGES.items()}


@functools.cache
def as_native(row: Operation) -> Operation:
    """The row without what the native library has no rule for."""
    known: dict[str, Any] = {} if row.opsets else {"copies": False, "homogeneous": False}
    return replace(row, added=(), preserves_where=None, **known, **_ROWS.get(row, {}))


def operation_of(kind: str, native_only: bool = False) -> Operation | None:
    """The row of a type name; None where the table has none."""
    row = OPERATIONS.get(kind)
    return as_native(row) if row is not None and native_only else row
