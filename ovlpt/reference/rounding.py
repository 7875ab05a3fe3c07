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

    The product is exact in float64. The sum is rounded to odd (where it is inexact, the neighbour with an odd last bit
    is taken), which makes the second rounding, to float32, the only one that counts.
    Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57 (2008).
    """
    a, b, c = (np.asarray(value, np.float32) for value in (a, b, c))
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    rest = total - product
    error = (product - (total - rest)) + (addend - rest)
    even = np.asarray(total).view(np.int64) & 1 == 0
    return np.where((error != 0) & np.isfinite(error) & even, np.nextafter(total, np.copysign(np.inf, error)), total).astype(np.float32)
