from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True)
class Interval:
    """Real values that FakeQuantize operations of one group produce."""

    combined_low: float
    combined_high: float
    min_low: float
    min_high: float
    min_levels: int  # levels that the narrowest member keeps; 0: its levels differ from the others'
    preferable: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()  # of the members, where they may differ in levels

    @property
    def is_mixed(self) -> bool:
        """Whether members have different numbers of levels and share the values of one 8-bit type all the same."""
        return len({grid.levels for grid in self.grids}) > 1 and all(grid.levels <= _VALUES for grid in self.grids)

    @property
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

    def merge(self, others: Iterable[IntervalsAlignment]) -> None:
        for other in others:
            mine, its = self.value, other.value
            narrower = its if its.min_high - its.min_low < mine.min_high - mine.min_low else mine
            low, high = min(mine.combined_low, its.combined_low), max(mine.combined_high, its.combined_high)
            preferable = (*mine.preferable, *(item for item in its.preferable if item not in mine.preferable))
            grids = (*mine.grids, *(grid for grid in its.grids if grid not in mine.grids))
            merged = Interval(low, high, narrower.min_low, narrower.min_high, 0, preferable, grids)
            if merged.is_mixed:
                limits = low, high, narrower.min_low, narrower.min_high
                min_levels = aligned_levels(0, _VALUES - 1, *limits).levels
            elif self.levels != other.levels or self.levels == 0:
                self.levels = min_levels = 0
            else:
                levels = self.levels
                min_levels = aligned_levels(0, levels - 1, low, high, narrower.min_low, narrower.min_high).levels
            self.value = replace(merged, min_levels=min_levels)
