"""How far a network's outputs are from those of the float model, in dB, and differences of that over many inputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

EXACT = 2.0**-48  # noise by signal: (2^-24)², the rounding of float32. Less is not told apart


def sqnr(reference: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> float:
    """dB of one input: the mean over the outputs of 10 log10(Σ r² / Σ (r - v)²).

    An output's figure lies within ± 144.5 dB (`EXACT`), where nothing differs as where the reference is all zeros, so
    that means exist. An output that is not finite has the lowest.
    """
    return fmean(_decibels(*pair) for pair in zip(reference, values, strict=True))


def _decibels(reference: np.ndarray, value: np.ndarray) -> float:
    reference = reference.astype(np.float64)
    signal, noise = float((reference**2).sum()), float(((reference - value) ** 2).sum())
    if not np.isfinite(noise):
        noise = np.inf
    if noise <= EXACT * signal:
        return -10 * float(np.log10(EXACT))
    return 10 * float(np.log10(max(signal / noise, EXACT)))


class Estimate(NamedTuple):
    """A mean, and its standard error."""

    mean: float
    error: float


def estimate(values: Sequence[float]) -> Estimate:
    return Estimate(fmean(values), stdev(values) / sqrt(len(values)))


def paired(mine: Sequence[float], others: Sequence[float]) -> Estimate:
    """Of the differences, input by input."""
    return estimate([a - b for a, b in zip(mine, others, strict=True)])


class Movement:
    """How much outputs change from input to input: |y - mean y| / |y| over all inputs, of the stillest output.

    A network that answered every input alike would come near to 1 / movement² as its signal by noise: what is measured
    on a still one says little.
    """

    def __init__(self) -> None:
        self._count = 0
        self._sums: list[np.ndarray] = []
        self._energies: list[float] = []

    def add(self, outputs: Sequence[np.ndarray]) -> None:
        outputs = [output.astype(np.float64) for output in outputs]
        if not self._count:
            self._sums, self._energies = [np.zeros_like(output) for output in outputs], [0.0] * len(outputs)
        self._count += 1
        for at, output in enumerate(outputs):
            self._sums[at] += output
            self._energies[at] += float((output**2).sum())

    @property
    def stillest(self) -> float:
        shares = [
            1 - float((total**2).sum()) / self._count / energy if energy else 0.0
            for total, energy in zip(self._sums, self._energies, strict=True)
        ]
        return sqrt(max(min(shares), 0.0))
