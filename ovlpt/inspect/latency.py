"""Latencies that can be compared: the candidates run in turn, so that a drifting machine treats them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median


def interleaved_latencies(
    candidates: Mapping[str, Callable[[], object]], seconds: float = 2.0, most: int = 200, least: int = 5
) -> dict[str, list[float]]:
    """Milliseconds of each run of each candidate, in rounds whose order alternates.

    Runs for about ``seconds``, at least ``least`` and at most ``most`` rounds, after three rounds that do not count.
    """
    for _ in range(3):
        for run in candidates.values():
            run()
    latencies: dict[str, list[float]] = {name: [] for name in candidates}
    order, end = list(candidates), time.perf_counter() + seconds
    for turn in range(most):
        if turn >= least and time.perf_counter() > end:
            break
        for name in order if turn % 2 == 0 else reversed(order):
            start = time.perf_counter()
            candidates[name]()
            latencies[name].append((time.perf_counter() - start) * 1e3)
    return latencies


def median_ratio(mine: list[float], other: list[float]) -> float:
    """Median of the paired ratios mine / other."""
    return median(a / b for a, b in zip(mine, other, strict=True))
