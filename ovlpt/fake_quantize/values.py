"""Numbers of the algebra: one per tensor or one per channel, float32 or exact rationals.

Every formula of this package is written once. On float32 arrays it computes what a kernel computes, rounding
after every operation; on object arrays of `fractions.Fraction` it computes the identity itself, so that a
rule can be shown to be exact in the reals and not merely close.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

_round_fraction = np.frompyfunc(lambda number: Fraction(round(number)), 1, 1)
_to_fraction = np.frompyfunc(lambda number: Fraction(float(number)), 1, 1)


def values(numbers: ArrayLike | Iterable[Fraction]) -> np.ndarray:
    """A vector of length 1 (per tensor) or C (per channel), float32 unless it holds `Fraction` objects."""
    vector = np.asarray(numbers).reshape(-1)
    return vector if vector.dtype == object else vector.astype(np.float32)


class Vector:
    """A field of a frozen dataclass that is given numbers and holds what `values` makes of them.

    Source: the data model's descriptors, as `dataclasses` supports them; without ``default`` the field must be given.
    """

    def __init__(self, default: ArrayLike | None = None) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, holder: object | None, owner: type | None = None) -> np.ndarray:
        if holder is not None:
            return holder.__dict__[self.name]
        if self.default is None:
            raise AttributeError(self.name)
        return self.default  # type: ignore[return-value]  # the field's default, which `__set__` is given

    def __set__(self, holder: object, numbers: ArrayLike) -> None:
        holder.__dict__[self.name] = values(numbers)


def rational(numbers: ArrayLike) -> np.ndarray:
    """The same numbers, exactly, as `Fraction` objects."""
    numbers = np.asarray(numbers)
    return numbers if numbers.dtype == object else np.asarray(_to_fraction(numbers), object)


def round_half_even(numbers: np.ndarray) -> np.ndarray:
    """Nearest integer, ties to even."""
    return np.asarray(_round_fraction(numbers), object) if numbers.dtype == object else np.rint(numbers)


def floats(numbers: ArrayLike) -> np.ndarray:
    """The numbers in float64, for comparisons and text."""
    return np.asarray(numbers).astype(np.float64)


def per_tensor(vector: np.ndarray) -> bool:
    """One number for the whole tensor."""
    return vector.size == 1


def text(vector: np.ndarray) -> str:
    """``0.1`` per tensor, ``[0.1 … 0.4]`` per channel."""
    first, last = (f"{number:g}" for number in floats(vector)[[0, -1]])
    return first if per_tensor(vector) else f"[{first} … {last}]"
