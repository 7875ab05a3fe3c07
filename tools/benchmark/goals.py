"""What the comparison is to show, and whether it does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from tools.benchmark.measure import EXACT, OVLPT, SIMULATION, STOCK, Numbers
from tools.benchmark.speed import Latency, Share
from tools.benchmark.sqnr import Estimate, paired

FASTER, FASTER_COUNT = 0.90, 5  # so many networks with this ratio of time or a smaller one
SLOWER = 1.03  # no interval begins above
MEAN, MEAN_WITHOUT_OBSTACLE = 0.93, 1.00  # geometric means of the ratios
BELOW_SIMULATION = 0.5  # dB, and twice standard error


@dataclass
class Row:
    """One network; None for what has not been measured."""

    name: str
    obstacle: str
    latency: Latency | None = None
    numbers: Numbers | None = None
    throughput: Latency | None = None
    batch: Latency | None = None
    share: Share | None = None


@dataclass(frozen=True)
class Goal:
    text: str
    met: bool

    def __str__(self) -> str:
        return f"{'met' if self.met else 'MISSED'}: {self.text}"


def goals(rows: Sequence[Row], whole: bool = True) -> list[Goal]:
    """Those that can be judged by what was measured. ``whole``: the rows are all networks; goals that speak of the
    networks together are judged only when every one was measured.
    """
    found: list[Goal] = []
    timed = [row for row in rows if row.latency]
    if whole and rows and len(timed) == len(rows):
        found += _together(timed)
    if timed:
        slowest = max(timed, key=lambda row: row.latency.low)
        low = slowest.latency.low
        text = f"no interval of a ratio begins above {SLOWER}: the last at {low:.3f} ({slowest.name})"
        found.append(Goal(text, low <= SLOWER))
    numbered = [row for row in rows if row.numbers]
    if numbered:
        found += [_exactness(numbered, side) for side in (OVLPT, EXACT)]
    return found


def _together(rows: Sequence[Row]) -> Iterable[Goal]:
    faster = sum(row.latency.ratio <= FASTER for row in rows)
    yield Goal(
        f"{faster} of {len(rows)} networks with a ratio of {FASTER} or less; {FASTER_COUNT} wanted",
        faster >= FASTER_COUNT,
    )
    without = [row for row in rows if row.obstacle == "none"]
    for which, members, most in (("all", rows, MEAN), ("those without an obstacle", without, MEAN_WITHOUT_OBSTACLE)):
        if members:
            mean = geometric_mean(row.latency.ratio for row in members)
            yield Goal(
                f"geometric mean of the ratios over {which}: {mean:.3f}; at most {most:.2f} wanted", mean <= most
            )


def _exactness(rows: Sequence[Row], side: str) -> Goal:
    failing = [row.name for row in rows if is_below(difference(row.numbers, side))]
    good = f"{len(rows) - len(failing)} of {len(rows)}"
    text = f"SQNR of {side} at most {BELOW_SIMULATION} dB and twice standard error below the simulation's: {good}"
    return Goal(text + (f", not {', '.join(failing)}" if failing else ""), not failing)


def difference(numbers: Numbers, side: str) -> Estimate:
    """SQNR of a side minus that of the simulation, dB."""
    return paired(numbers.sqnr[side], numbers.sqnr[SIMULATION])


def is_below(difference: Estimate) -> bool:
    """Whether the difference to the simulation misses the goal."""
    return difference.mean < -(BELOW_SIMULATION + 2 * difference.error)


def remark(numbers: Numbers) -> str:
    """What a failing SQNR has to be read with: whether stock's fails as well, whether the numbers were lost only in the
    kernels, and how many layers can overflow 16 bits.
    """
    if not is_below(difference(numbers, OVLPT)):
        return ""
    stock = "stock's as well" if is_below(difference(numbers, STOCK)) else "stock's is not"
    exact = "is too" if is_below(difference(numbers, EXACT)) else "is not"
    text = f"{stock}; in f32 arithmetic it {exact}"
    risks = numbers.at_risk
    if any(risks.values()):
        text += f"; int8 layers that can overflow 16 bits here: stock {risks[STOCK]}, ovlpt {risks[OVLPT]}"
    return text
