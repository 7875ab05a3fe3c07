"""What 16-bit sums lose: u8 × i8 products on x86 CPUs without VNNI (``vpmaddubsw``).

Such a CPU multiplies eight-bit integers in pairs and keeps each pair's sum in 16 bits, saturated; only these sums
are added in 32 bits. With data of 0 … 255 a pair of weights of one sign loses something from 129 on, their sum
counted in absolute value: 255 · 129 > 32767.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovlpt.reference.accumulation import sliding_windows

LOWEST, HIGHEST = -(1 << 15), (1 << 15) - 1
LARGEST = 255


def risky_pairs(weights: np.ndarray) -> np.ndarray:
    """Which pairs of neighbours can saturate for some u8 data: bool [..., K / 2] for integers [..., K], K even."""
    pairs = weights.astype(np.int32).reshape(*weights.shape[:-1], -1, 2)
    most, least = (LARGEST * part.sum(axis=-1) for part in (np.maximum(pairs, 0), np.minimum(pairs, 0)))
    return (most > HIGHEST) | (least < LOWEST)


def saturation_loss(weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """What to add to the exact ``weights @ columns`` for the saturated result: int64 [O, P].

    ``weights``: [O, K] integers of -128 … 127; ``columns``: [K, P] integers of 0 … 255. Neighbours along K are
    pairs; an odd K is filled up with a zero.
    """
    if weights.shape[-1] % 2:
        weights, columns = np.pad(weights, ((0, 0), (0, 1))), np.pad(columns, ((0, 1), (0, 0)))
    weights, columns = weights.astype(np.int32), columns.astype(np.int32, copy=False)
    loss = np.zeros((len(weights), columns.shape[-1]), np.int64)
    risky = risky_pairs(weights)
    for pair in np.flatnonzero(risky.any(axis=0)):
        outputs = np.flatnonzero(risky[:, pair])
        first, second = weights[outputs, 2 * pair, None], weights[outputs, 2 * pair + 1, None]
        exact = first * columns[2 * pair] + second * columns[2 * pair + 1]
        loss[outputs] += np.clip(exact, LOWEST, HIGHEST) - exact
    return loss


def convolution_saturation_loss(
    x: np.ndarray,
    w: np.ndarray,
    zero_point: np.ndarray | int = 0,
    *,
    strides: Sequence[int] = (),
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    groups: int = 1,
    transposed: bool = False,
) -> np.ndarray:
    """What to add to the exact accumulator of a convolution for the saturated one: int64 [N, O, ...].

    Arguments as in `convolution_accumulator`, but ``x`` holds the stored integers 0 … 255, and ``zero_point``, a
    number or [1, I, 1...], is what the padding holds. Pairs are neighbouring input channels of one kernel position;
    in a grouped convolution, unless it is a ``transposed`` one spread out, an odd last channel goes with the first one
    of the next position. A depthwise convolution multiplies in 32 bits and loses nothing.
    """
    batch, outputs, inputs = len(x), w.shape[0] // groups, w.shape[1]
    rank, zero_point = x.ndim - 2, np.asarray(zero_point, np.int32)
    windows = sliding_windows(x.astype(np.int32) - zero_point, w.shape[2:], strides, pads_begin, pads_end, dilations)
    space = windows.shape[2 : 2 + rank]
    if groups > 1 and outputs == inputs == 1:
        return np.zeros((batch, len(w), *space), np.int64)
    windows = windows + zero_point[(..., *(None,) * rank)]
    # K in the kernels' order: the kernel's positions, then channels
    kernel = tuple(range(2 + rank, 2 + 2 * rank))
    taps = windows.reshape(batch, groups, inputs, *windows.shape[2:]).transpose(
        0, 1, *(axis + 1 for axis in kernel), 2, *range(3, 3 + rank)
    )
    weights: np.ndarray = np.moveaxis(w, 1, -1).reshape(groups, outputs, -1, inputs)
    columns: np.ndarray = taps.reshape(batch, groups, -1, inputs, int(np.prod(space)))
    if (groups == 1 or transposed) and inputs % 2:
        weights = np.pad(weights, [(0, 0)] * 3 + [(0, 1)])
        columns = np.pad(columns, [(0, 0)] * 3 + [(0, 1), (0, 0)])
    weights = weights.reshape(groups, outputs, -1)
    columns = columns.reshape(batch, groups, weights.shape[-1], -1)
    loss = [[saturation_loss(weights[group], image[group]) for group in range(groups)] for image in columns]
    return np.asarray(loss).reshape(batch, len(w), *space)
