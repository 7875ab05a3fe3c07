"""Where the time goes, as bars by type of layer, and as a scatter of time against multiply-accumulates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from ovlpt.inspect.report.layers import Kind, Layer

PLOT_WIDTH, PLOT_HEIGHT = 640, 300  # of a scatter, without its labels
MOST_BARS = 12


@dataclass(frozen=True, slots=True)
class Bar:
    """All layers of one type. ``parts``: milliseconds of each kind of them."""

    type: str
    number: int
    milliseconds: float
    parts: tuple[tuple[Kind, float], ...]


@dataclass(frozen=True, slots=True)
class Point:
    layer: Layer
    x: float
    y: float

    @property
    def giga_per_second(self) -> float:
        """Speed: 10^9 multiply-accumulates a second."""
        return self.layer.multiply_accumulates / self.layer.milliseconds / 1e6


@dataclass(frozen=True, slots=True)
class Line:
    """From one border of the plot to another, for layers of one speed."""

    giga_per_second: float
    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def upper_end(self) -> tuple[float, float]:
        """Where the line leaves the plot, whose upper border is at 0: there, or on the right."""
        if self.y2 >= 0:
            return self.x2, self.y2
        return self.x1 + (self.x2 - self.x1) * self.y1 / (self.y1 - self.y2), 0.0


@dataclass(frozen=True, slots=True)
class Scatter:
    """Multiply-accumulates to the right, milliseconds upwards, both logarithmic. Ticks: value and place."""

    points: tuple[Point, ...]
    across: tuple[tuple[float, float], ...]
    upwards: tuple[tuple[float, float], ...]
    lines: tuple[Line, ...]


def bars(layers: Iterable[Layer]) -> list[Bar]:
    """The types that take most time, the slowest first; the last bar is of all other types."""
    types: dict[str, list[Layer]] = {}
    for layer in layers:
        types.setdefault(layer.type, []).append(layer)
    found = sorted((_bar(name, members) for name, members in types.items()), key=lambda bar: -bar.milliseconds)
    if len(found) <= MOST_BARS:
        return found
    others = [layer for bar in found[MOST_BARS - 1 :] for layer in types[bar.type]]
    return [*found[: MOST_BARS - 1], _bar(f"{len(found) - MOST_BARS + 1} other types", others)]


def _bar(name: str, layers: Sequence[Layer]) -> Bar:
    times = [(kind, sum(layer.milliseconds for layer in layers if layer.kind is kind)) for kind in Kind]
    return Bar(name, len(layers), sum(time for _, time in times), tuple(part for part in times if part[1]))


def scatter(layers: Iterable[Layer]) -> Scatter | None:
    """Of the layers with multiply-accumulates and a time; None for fewer than two."""
    shown = [layer for layer in layers if layer.multiply_accumulates and layer.milliseconds]
    if len(shown) < 2:
        return None
    x_axis = _Axis.of([layer.multiply_accumulates for layer in shown], PLOT_WIDTH)
    y_axis = _Axis.of([layer.milliseconds for layer in shown], PLOT_HEIGHT)
    points = (
        Point(each, x_axis.place(each.multiply_accumulates), PLOT_HEIGHT - y_axis.place(each.milliseconds))
        for each in shown
    )
    lines = []
    for rate in (0.1, 1.0, 10.0, 100.0, 1000.0):  # 1e9 products a second are 1e6 a millisecond
        ends = [(x, PLOT_HEIGHT - y_axis.at(x_axis.power(x) - 6 - log10(rate))) for x in (0.0, float(PLOT_WIDTH))]
        if min(y for _, y in ends) < PLOT_HEIGHT and max(y for _, y in ends) > 0:
            lines.append(Line(rate, *ends[0], *ends[1]))
    return Scatter(
        tuple(points),
        x_axis.ticks(),
        tuple((value, PLOT_HEIGHT - place) for value, place in y_axis.ticks()),
        tuple(lines),
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """Whole powers of ten from ``low`` to ``high``, over ``size`` units."""

    low: int
    high: int
    size: float

    @classmethod
    def of(cls, values: Sequence[float], size: float) -> _Axis:
        low, high = floor(log10(min(values))), ceil(log10(max(values)))
        return cls(low, max(high, low + 1), size)

    def place(self, value: float) -> float:
        return self.at(log10(value))

    def at(self, power: float) -> float:
        return (power - self.low) / (self.high - self.low) * self.size

    def power(self, place: float) -> float:
        return self.low + place / self.size * (self.high - self.low)

    def ticks(self) -> tuple[tuple[float, float], ...]:
        return tuple((10.0**power, self.at(power)) for power in range(self.low, self.high + 1))
