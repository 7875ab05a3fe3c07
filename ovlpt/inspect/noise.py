"""Signal and noise energy, and their ratio in dB."""

from __future__ import annotations

import math

import numpy as np

from ovlpt.fleet.sums import ExactSum, Plain


class Noise:
    """Σ r² and Σ (r - v)² over samples: of each array in float64, over the arrays without rounding, in any order."""

    def __init__(self) -> None:
        self._signal, self._noise = ExactSum(), ExactSum()

    def add(self, reference: np.ndarray, value: np.ndarray) -> None:
        """Add the elements of two arrays of one shape."""
        reference = reference.astype(np.float64)
        self._signal.add(float((reference**2).sum()))
        self._noise.add(float(((reference - value) ** 2).sum()))

    def merge(self, other: Noise) -> None:
        """Add what another has summed."""
        self._signal.merge(other._signal)
        self._noise.merge(other._noise)

    @property
    def sqnr(self) -> float:
        """In dB; infinite where nothing differs."""
        signal, noise = float(self._signal), float(self._noise)
        if noise == 0:
            return math.inf
        return 10 * math.log10(signal / noise) if signal else -math.inf

    def to_plain(self) -> list[Plain]:
        """As JSON has it."""
        return [self._signal.to_plain(), self._noise.to_plain()]

    @classmethod
    def from_plain(cls, plain: list[Plain]) -> Noise:
        """From what `to_plain` gave."""
        made = cls()
        made._signal, made._noise = map(ExactSum.from_plain, plain)
        return made
