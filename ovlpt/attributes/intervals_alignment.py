from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ovlpt.attributes.attribute import Attribute
from ovlpt.precisions import aligned_levels


@dataclass(frozen=True, slots=True)
class Interval:
    """Real values that FakeQuantize operations of one group produce."""

    combined_low: float
    combined_high: float
    min_low: float
    min_high: float
    min_levels: int  # levels that the narrowest member keeps; 0: its levels differ from the others'
    preferable: tuple[str, ...] = ()


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
            if self.levels != other.levels or self.levels == 0:
                self.levels = min_levels = 0
            else:
                levels = self.levels
                min_levels = aligned_levels(0, levels - 1, low, high, narrower.min_low, narrower.min_high).levels
            preferable = (*mine.preferable, *(item for item in its.preferable if item not in mine.preferable))
            self.value = Interval(low, high, narrower.min_low, narrower.min_high, min_levels, preferable)
