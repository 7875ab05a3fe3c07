"""A sum of floats without rounding, so that it merges in any order."""

from __future__ import annotations

import math

_SMALLEST = 1074  # every finite float64 is an integer multiple of 2 ** -1074
Plain = int | list


class ExactSum:
    """Σ of float64 values: an integer of units of 2^-1074, and apart from it what is not finite.

    Equal sums are equal integers, whatever the order and the grouping; `float` rounds once.
    """

    def __init__(self, value: float = 0.0):
        self._units = 0
        self._special = 0.0  # inf or nan, once one was added
        self.add(value)

    def add(self, value: float) -> None:
        """Add a float64."""
        if math.isfinite(value):
            numerator, denominator = value.as_integer_ratio()  # the denominator is a power of two
            self._units += numerator << (_SMALLEST + 1 - denominator.bit_length())
        else:
            self._special += value

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        self._units += other._units
        self._special += other._special

    def __float__(self) -> float:
        if self._special:
            return self._special
        try:
            return self._units / (1 << _SMALLEST)  # of two integers: rounded once
        except OverflowError:
            return math.inf if self._units > 0 else -math.inf

    def to_plain(self) -> Plain:
        """As JSON has it: an integer, or with what is not finite a list of both."""
        return [self._units, str(self._special)] if self._special else self._units

    @classmethod
    def from_plain(cls, plain: Plain) -> ExactSum:
        """From what `to_plain` gave."""
        made = cls()
        made._units, special = plain if isinstance(plain, list) else (plain, 0.0)
        made._special = float(special)
        return made
