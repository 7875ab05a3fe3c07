"""The figures of a comparison, kept in a file, and the table that they make."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import openvino

from ovlpt.fleet.machine import machine
from tools.benchmark.goals import Row, difference
from tools.benchmark.measure import EXACT, OVLPT, SIMULATION, STOCK, Numbers
from tools.benchmark.speed import BATCH, Latency, Share
from tools.benchmark.sqnr import Estimate, estimate

PARTS = {"numbers": Numbers, "latency": Latency, "throughput": Latency, "batch": Latency, "share": Share}
TIMED = ("latency", "throughput", "batch")
HEAD = (
    "network", "obstacle", "int8 layers", "borders", "latency ratio", "THROUGHPUT", f"batch {BATCH}", "share of the limit",
    "SQNR, dB", STOCK, OVLPT, EXACT,
)  # fmt: skip


class Figures:
    """What was measured, kept in ``file``: of one machine, OpenVINO, and ``precision`` of floats."""

    def __init__(self, file: Path | None, precision: str = "f32"):
        self.file = file
        self.setting = {"openvino": openvino.__version__, "device": machine()["CPU"], "precision": precision}
        self.networks: dict[str, dict[str, dict[str, Any] | None]] = {}
        if file is not None and file.exists():
            stored = {"precision": "f32", **json.loads(file.read_text())}
            self.networks = stored.pop("networks")
            if stored != self.setting:
                raise SystemExit(f"{file} is of {stored}, this run of {self.setting}; give another file")

    def has(self, name: str, part: str) -> bool:
        return part in self.networks.get(name, {})

    def add(self, name: str, part: str, figures: dict[str, Any] | None) -> None:
        """None: the network does not allow this part."""
        self.networks.setdefault(name, {})[part] = figures
        if self.file is not None:
            written = self.file.with_suffix(".part")
            written.write_text(json.dumps({**self.setting, "networks": self.networks}, indent=1) + "\n")
            written.replace(self.file)

    def row(self, name: str, obstacle: str) -> Row:
        stored = self.networks.get(name, {})
        return Row(
            name, obstacle, **{part: kind(**found) for part, kind in PARTS.items() if (found := stored.get(part))}
        )


def cells(row: Row) -> list[str]:
    """A row of the table, under `HEAD`: stock's figure before ovlpt's. SQNR is the simulation's, and what each side has
    more.
    """
    line = [row.name, row.obstacle, *[""] * (len(HEAD) - 2)]
    if numbers := row.numbers:
        line[2] = (
            f"{numbers.int8[STOCK]} of {numbers.weighted[STOCK]} / {numbers.int8[OVLPT]} of {numbers.weighted[OVLPT]}"
        )
        line[3] = f"{sum(numbers.borders[STOCK].values())} / {sum(numbers.borders[OVLPT].values())}"
        line[8] = f"{estimate(numbers.sqnr[SIMULATION]).mean:.1f}"
        line[9:] = [_signed(difference(numbers, side)) for side in (STOCK, OVLPT, EXACT)]
    for place, part in enumerate(TIMED, 4):
        if latency := getattr(row, part):
            line[place] = f"{latency.ratio:.3f} ({latency.low:.3f}–{latency.high:.3f})"
    if share := row.share:
        line[7] = f"{share.share:.0%} in {share.time:.0%} of the time"
    return line


def _signed(found: Estimate) -> str:
    return f"{found.mean:+.2f} ± {found.error:.2f}"


def remarks(figures: Figures, rows: list[Row]) -> list[str]:
    """What the table is of, how the networks of each part were quantized, and the mean of each column of ratios."""
    lines = ["; ".join(f"{what} {value}" for what, value in figures.setting.items())]
    for part in PARTS:
        measured = [(row.name, found.weights) for row in rows if (found := getattr(row, part))]
        for weights in dict.fromkeys(weights for _, weights in measured):
            names = [name for name, each in measured if each == weights]
            of = "all networks" if len(names) == len(rows) else ", ".join(names)
            lines.append(f"{part} of {of}: weights {weights}")
    for part in TIMED:
        if ratios := [latency.ratio for row in rows if (latency := getattr(row, part))]:
            lines.append(f"geometric mean of {part} over {len(ratios)} networks: {geometric_mean(ratios):.3f}")
    if limits := [row.share.limit for row in rows if row.share]:
        lines.append(
            f"the limit: {max(limits) / 1e9:.0f} (lowest {min(limits) / 1e9:.0f}) 10^9 multiply-accumulates a second"
        )
    return lines


def markdown(rows: list[Row]) -> str:
    """The table of docs/benchmarks.md, without columns of what was not measured."""
    columns = [column for column in zip(HEAD, *map(cells, rows), strict=True) if any(column[1:])]
    head, *lines = zip(*columns, strict=True)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))
