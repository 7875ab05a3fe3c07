"""Latencies that can be compared: the candidates run in turn, so that a drifting machine treats them alike."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

_logger = logging.getLogger("ovlpt")


def interleaved_latencies(
    candidates: Mapping[str, Callable[[], object]],
    seconds: float = 2.0,
    most: int | None = 200,
    least: int = 5,
    progress: Callable[[float], object] = lambda part: None,
) -> dict[str, list[float]]:
    """Milliseconds of each run of each candidate, in rounds whose order alternates.

    Runs for about ``seconds``, at least ``least`` and at most ``most`` rounds (None: any number), after three rounds that do not count.
    ``progress`` is called after each round with the part that is done, 0 to 1.
    """
    _logger.info("measures %s", ", ".join(candidates))
    for _ in range(3):
        for run in candidates.values():
            run()
    latencies: dict[str, list[float]] = {name: [] for name in candidates}
    order, begin = list(candidates), time.perf_counter()
    turn, passed = 0, 0.0
    while turn != most and (turn < least or passed < seconds):
        for name in order if turn % 2 == 0 else reversed(order):
            start = time.perf_counter()
            candidates[name]()
            latencies[name].append((time.perf_counter() - start) * 1e3)
        turn, passed = turn + 1, time.perf_counter() - begin
        part = min(turn / max(least, 1), passed / seconds if seconds else 1.0)
        progress(min(1.0, max(part, turn / most if most else 0.0)))
    return latencies


def median_ratio(mine: list[float], other: list[float]) -> float:
    """Median of the paired ratios mine / other."""
    return float(np.median(np.divide(mine, other)))


def verdict(ratio: float, interval: tuple[float, float], mine: str, other: str) -> str:
    """Who is faster by a ratio mine / other and its interval."""
    if interval[0] <= 1 <= interval[1]:
        return "no significant difference"
    return f"{mine} is faster" if ratio < 1 else f"{other} is faster"


def bootstrap_interval(blocks: Sequence[np.ndarray], samples: int = 2000) -> tuple[float, float]:
    """Interval of 95 % of the median of paired ratios that were measured in ``blocks``.

    Blocks are drawn, then pairs within each: runs within a block resemble each other more than runs of two blocks. What is
    drawn from a few blocks varies less than other blocks would, so that of 4 an interval would hold the truth in 81 to 89 of
    100 cases: it is widened as Student's distribution is wider than the normal one, by factors, as ratios are positive.
    """
    generator = np.random.default_rng(0)
    count, middle = len(blocks), float(np.median(np.concatenate(blocks)))
    medians = [
        np.median(np.concatenate([generator.choice(blocks[block], len(blocks[block])) for block in drawn]))
        for drawn in generator.integers(0, count, (samples, count))
    ]
    wider = _wider(count)
    low, high = (middle * (float(end) / middle) ** wider for end in np.percentile(medians, (2.5, 97.5)))
    return low, high


def _wider(count: int) -> float:
    """Student's quantile for ``count`` blocks by the normal one (expansion of Cornish and Fisher), and by the root of the
    part of the variance that a draw from them has.
    """
    if count < 2:
        return 1.0
    free, normal = count - 1, 1.96
    student = normal + (normal**3 + normal) / (4 * free)
    student += (5 * normal**5 + 16 * normal**3 + 3 * normal) / (96 * free**2)
    return float(student / normal * np.sqrt(count / free))
