"""Rounding: the three ways to break a tie, and the fused multiply-add."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def round_half_even(x: ArrayLike) -> np.ndarray:
    """The nearest integer, ties to even (C ``rint``, ``nearbyint``), in the type of ``x``."""
    return np.rint(x)


def round_half_away(x: ArrayLike) -> np.ndarray:
    """The nearest integer, ties away from zero (C++ ``std::round``), in the type of ``x``.

    ``x - trunc(x)`` is exact, so no value just below a tie is lifted over it, as ``floor(x + 0.5)`` would.
    """
    x = np.asarray(x)
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(np.ones_like(x), x), np.zeros_like(x))


def round_half_up(x: ArrayLike) -> np.ndarray:
    """The nearest integer, ties toward positive infinity, in the type of ``x``."""
    x = np.asarray(x)
    below = np.floor(x)
    return below + (x - below >= 0.5).astype(x.dtype)


def multiply_add(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> np.ndarray:
    """``a * b + c`` of float32 numbers, rounded once to float32: what an FMA instruction returns.

    The product is exact in float64. Rounding the float64 sum again, to float32, goes wrong only where it lies
    halfway between two float32 numbers (or below them) and is not exact; there it is first rounded to odd,
    that is, moved to the neighbour with an odd last bit.
    Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57
    (2008).
    """
    a, b, c = (np.asarray(value, np.float32) for value in (a, b, c))
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = np.asarray(product + addend)
    result = total.astype(np.float32)
    doubtful = (total.view(np.int64) & 0x1FFFFFFF == 1 << 28) | (np.abs(total) < np.finfo(np.float32).tiny)
    if doubtful.any():
        product, addend = (np.broadcast_to(value, total.shape)[doubtful] for value in (product, addend))
        total = total[doubtful]
        rest = total - product
        error = (product - (total - rest)) + (addend - rest)
        inexact = (error != 0) & (total.view(np.int64) & 1 == 0)
        result[doubtful] = np.where(inexact, np.nextafter(total, np.copysign(np.inf, error)), total)
    return result
