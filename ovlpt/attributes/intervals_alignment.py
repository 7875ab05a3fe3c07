from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from ovlpt.attributes.attribute import Attribute
from ovlpt.precisions import aligned_levels

_VALUES = 256
_NEAR = 1e-3  # of a step: what float32 leaves of a whole number of them


@dataclass(frozen=True, slots=True)
class Grid:
    """The values that one FakeQuantize gives."""

    low: float
    high: float
    levels: int

    @property
    def step(self) -> float:
        return (self.high - self.low) / (self.levels - 1)

    def lies_on(self, step: float, origin: float) -> bool:
        """Whether its values lie whole steps from the origin, within as many of them as 8 bits hold."""
        first, last = self.ends(step, origin)
        whole = all(
            abs(value - (origin + end * step)) < _NEAR * step for value, end in ((self.low, first), (self.high, last))
        )
        return whole and (last - first) % (self.levels - 1) == 0 and last - first < _VALUES

    def ends(self, step: float, origin: float) -> tuple[int, int]:
        """Its lowest and highest value in steps from the origin."""
        return round((self.low - origin) / step), round((self.high - origin) / step)


@dataclass(frozen=True)
class Interval:
    """Real values that FakeQuantize operations of one group produce."""

    combined_low: float
    combined_high: float
    min_low: float
    min_high: float
    min_levels: int  # levels that the narrowest member keeps; 0: its levels differ from the others'
    preferable: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()  # of the members, where they may differ in levels

    @cached_property
    def is_mixed(self) -> bool:
        """Whether members have different numbers of levels and share the values of one 8-bit type all the same."""
        return _are_mixed({grid.levels for grid in self.grids})

    @cached_property
    def common_grid(self) -> tuple[float, float] | None:
        """Step and origin of a grid that holds the values of all members, each within 8 bits; None without one."""
        step = min((grid.step for grid in self.grids), default=0)
        origins = (0.0, self.combined_low) if step > 0 else ()
        return next(((step, at) for at in origins if all(grid.lies_on(step, at) for grid in self.grids)), None)


class IntervalsAlignment(Attribute[Interval]):
    """The union of the intervals that meet downstream. On FakeQuantize and precision-preserved nodes."""

    __slots__ = ("levels",)

    def __init__(self, value: Interval, levels: int):
        super().__init__(value)
        self.levels = levels

    def merge(self, others: Iterable[Self]) -> None:
        """Each value of the others is read once: a Concat may have thousands of inputs."""
        others, narrowest = list(others), self.value
        if not others:
            return
        low, high = narrowest.combined_low, narrowest.combined_high
        preferable, grids = dict.fromkeys(narrowest.preferable), dict.fromkeys(narrowest.grids)
        levels = {grid.levels for grid in grids}
        for other in others:
            its = other.value
            if its.min_high - its.min_low < narrowest.min_high - narrowest.min_low:
                narrowest = its
            low, high = min(low, its.combined_low), max(high, its.combined_high)
            preferable.update(dict.fromkeys(its.preferable))
            grids.update(dict.fromkeys(its.grids))
            levels.update(grid.levels for grid in its.grids)
            if self.levels != other.levels and not _are_mixed(levels):
                self.levels = 0
        kept = _VALUES if _are_mixed(levels) else self.levels
        limits = low, high, narrowest.min_low, narrowest.min_high
        min_levels = aligned_levels(0, kept - 1, *limits).levels if kept else 0
        self.value = Interval(*limits, min_levels, tuple(preferable), tuple(grids))


def _are_mixed(levels: set[int]) -> bool:
    return len(levels) > 1 and max(levels) <= _VALUES
