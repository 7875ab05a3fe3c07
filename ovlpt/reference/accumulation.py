"""Exact integer accumulators of convolutions and inner products, through BLAS.

A float32 matrix product of integers is exact while the sum of absolute products stays below 2^24, whatever
the order of the additions; a float64 one below 2^53. The bound is computed from the actual weights, and the
sum over K is cut into float32 pieces that keep it, or done in float64 where more than two pieces would be
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ovlpt.trace import InputError

EXACT_FLOAT = 1 << 24


def matrix_accumulator(weights: np.ndarray, columns: np.ndarray, largest: int) -> np.ndarray:
    """``weights @ columns`` of integers, exact, as int64.

    ``weights``: [..., O, K] integers; ``columns``: [..., K, P] integers of any numeric type, at most
    ``largest`` in absolute value.
    """
    pieces = _pieces(weights, largest)
    if len(pieces) > 2:
        return (weights.astype(np.float64) @ columns.astype(np.float64)).astype(np.int64)
    weights, columns = weights.astype(np.float32), columns.astype(np.float32, copy=False)
    products = [(weights[..., piece] @ columns[..., piece, :]).astype(np.int64) for piece in pieces]
    return products[0] if len(products) == 1 else products[0] + products[1]


def convolution_accumulator(
    x: np.ndarray,
    w: np.ndarray,
    *,
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    groups: int = 1,
) -> np.ndarray:
    """The cross-correlation of integers, exact: [N, O, ...] int64.

    ``x``: [N, I, ...] with the zero point already subtracted, so that padding is zero; ``w``: [O, I / groups,
    ...] (OIHW), zero point subtracted. ``strides``, ``dilations`` (default 1) and ``pads_begin``,
    ``pads_end`` (default 0) have one number per spatial dimension; ``pads_end`` defaults to ``pads_begin``.
    Any number of spatial dimensions.

    Raises `InputError` where channels, groups or ranks do not fit, or the kernel is larger than the padded
    input.
    """
    rank = x.ndim - 2
    if w.ndim != x.ndim or rank < 1:
        raise InputError(f"A weight of rank {w.ndim} meets an input of rank {x.ndim}: both need N or O, C and space.")
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise InputError(
            f"{groups} groups do not fit input channels {x.shape[1]} and weights {w.shape[:2]}: check groups."
        )
    largest, kernel, outputs = int(np.abs(x).max(initial=0)), w.shape[2:], w.shape[0] // groups
    arguments = (kernel, strides, pads_begin, pads_end, dilations)
    if outputs == w.shape[1] == 1 and prod(kernel) * largest * int(np.abs(w).max(initial=0)) < 1 << 31:
        return _depthwise(sliding_windows(x.astype(np.int32), *arguments), w[:, 0].astype(np.int32))
    windows = sliding_windows(x.astype(np.float32 if largest <= EXACT_FLOAT else np.float64), *arguments)
    batch, _, *space = windows.shape[: 2 + rank]
    # the im2col matrix: K = (I / groups, kernel...) rows, one column per output position
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    columns = windows.transpose(order).reshape(batch, groups, -1, prod(space))
    accumulator = matrix_accumulator(w.reshape(groups, outputs, -1), columns, largest)
    return accumulator.reshape(batch, w.shape[0], *space)


def transposed_accumulator(x: np.ndarray, w: np.ndarray, **window: Any) -> np.ndarray:
    """The transposed convolution of integers, exact: [N, O, ...] int64. Arguments and errors as in `spread_out`."""
    x, w, window = spread_out(x, w, **window)
    return convolution_accumulator(x, w, **window)


def spread_out(
    x: np.ndarray,
    w: np.ndarray,
    *,
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    groups: int = 1,
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """A transposed convolution as a convolution: data with zeros between, mirrored kernel OIHW, the other arguments.

    ``x``: [N, I, ...], ``w``: [I, O / groups, ...] (IOHW, as in Caffe, ONNX and OpenVINO), zero points
    subtracted. The pads are taken off the output, ``output_padding`` adds positions at its end.

    Raises `InputError` where channels or groups do not fit.
    """
    if w.ndim != x.ndim or x.shape[1] != w.shape[0] or x.shape[1] % groups:
        raise InputError(
            f"{groups} groups do not fit input channels {x.shape[1]} and weights {w.shape[:2]}: check groups."
        )
    rank = x.ndim - 2
    ones, zeros = (1,) * rank, (0,) * rank
    strides, dilations, begin = tuple(strides) or ones, tuple(dilations) or ones, tuple(pads_begin) or zeros
    end, extra = tuple(pads_end) or begin, tuple(output_padding) or zeros
    spread = np.zeros((*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], strides, strict=True))), x.dtype)
    spread[_every(*strides)] = x
    mirrored = np.flip(w, tuple(range(2, w.ndim))).reshape(groups, -1, *w.shape[1:])
    mirrored = mirrored.swapaxes(1, 2).reshape(-1, w.shape[0] // groups, *w.shape[2:])
    reach = [d * (k - 1) for d, k in zip(dilations, w.shape[2:], strict=True)]
    window = {
        "pads_begin": [r - p for r, p in zip(reach, begin, strict=True)],
        "pads_end": [r - p + e for r, p, e in zip(reach, end, extra, strict=True)],
        "dilations": dilations,
        "groups": groups,
    }
    return spread, mirrored, window


def sliding_windows(
    x: np.ndarray,
    kernel: Sequence[int],
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    *,
    fill: int | float = 0,
) -> np.ndarray:
    """A view [N, C, output..., kernel...] of [N, C, ...], padded with ``fill``; a negative pad cuts off.

    Raises `InputError` where a list does not have one number per spatial dimension or the kernel does not
    fit.
    """
    rank = x.ndim - 2
    ones, zeros = (1,) * rank, (0,) * rank
    kernel, strides, dilations = tuple(kernel), tuple(strides) or ones, tuple(dilations) or ones
    begin = tuple(pads_begin) or zeros
    end = tuple(pads_end) or begin
    if any(len(values) != rank for values in (kernel, strides, dilations, begin, end)):
        raise InputError(
            f"Kernel, strides, pads or dilations do not have {rank} numbers: give one per spatial dimension."
        )
    for axis, (before, after) in enumerate(zip(begin, end, strict=True), start=2):
        cut = [slice(None)] * x.ndim
        cut[axis] = slice(max(-before, 0), x.shape[axis] - max(-after, 0))
        x = x[tuple(cut)]
    widths = [(0, 0), (0, 0), *((max(b, 0), max(e, 0)) for b, e in zip(begin, end, strict=True))]
    if any(map(any, widths)):
        x = np.pad(x, widths, constant_values=fill)
    extent = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    if any(e > n for e, n in zip(extent, x.shape[2:], strict=True)):
        raise InputError(f"A kernel that spans {extent} does not fit the padded input {x.shape[2:]}: check pads.")
    windows = sliding_window_view(x, extent, axis=tuple(range(2, x.ndim)))
    return windows[_every(*strides, *dilations)]


def _every(*steps: int) -> tuple[Any, ...]:
    """The index of every ``step``-th element of each of the last axes."""
    return (..., *(slice(None, None, step) for step in steps))


def _depthwise(windows: np.ndarray, w: np.ndarray) -> np.ndarray:
    column = (-1, *(1,) * (w.ndim - 1))
    return sum(windows[(..., *tap)] * w[(..., *tap)].reshape(column) for tap in np.ndindex(w.shape[1:])).astype(
        np.int64
    )


def _pieces(weights: np.ndarray, largest: int) -> list[slice]:
    """Slices of K in each of which no sum of absolute products reaches 2^24; three where two do not do."""
    bound = np.cumsum(np.abs(weights).astype(np.int64), axis=-1).reshape(-1, weights.shape[-1]) * largest
    pieces: list[slice] = []
    start = 0
    while start < weights.shape[-1] and len(pieces) < 3:
        before = bound[:, start - 1, None] if start else 0
        stop = start + int(((bound[:, start:] - before).max(axis=0) < EXACT_FLOAT).sum())
        if stop == start:
            return [slice(None)] * 3
        pieces.append(slice(start, stop))
        start = stop
    return pieces if start else [slice(None)]
