"""ovlpt beside the stock plugin: ``python -m tools.benchmark [NAME …] --models DIR --json FILE``.

Over the networks of `tools.zoo.benchmark`, built by ``python -m tools.zoo benchmark -o DIR``, this shows for stock and
ovlpt: the layers with weights in int8, the borders between int8 and float, and the SQNR against the float model, as
its difference to that of the FakeQuantize simulation (`tools.benchmark.measure.Numbers` says what each is, and what
"ovlpt in f32" is); and the paired ratio of latencies, ovlpt / stock, with its interval. A line for each goal follows;
exit status 1 when one is missed, 2 when a network is not there.

On a CPU without VNNI int8 kernels saturate. Numbers that show what the software does are those of networks quantized
for such a CPU (``python -m tools.zoo benchmark --overflow-fix -o DIR``); what was measured on which is said below the
table, and both can lie in one FILE, ``--only latency`` of one folder and ``--only numbers`` of the other.

Each measurement runs in a process of its own, and its result goes to FILE at once: a run that was stopped goes on where
it was. Measure latencies on a machine that does nothing else: with ``--workers`` or ``--scheduler`` one at a time on each
machine, and after all numbers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import openvino
from rich.console import Console
from rich.table import Table

from ovlpt.commands.arguments import add_workers
from ovlpt.commands.printing import STDOUT, console
from ovlpt.commands.workers import workers
from ovlpt.device import subprocess_call
from ovlpt.fleet.engine import Died, Executors, Progress, answers
from ovlpt.fleet.machine import measuring
from ovlpt.fleet.tasks import Task
from ovlpt.openvino_api import Core
from ovlpt.trace import OvlptError
from tools.benchmark.goals import Row, difference, goals, remark
from tools.benchmark.measure import EXACT, OVLPT, SIMULATION, STOCK, Latency, Numbers, measure_latency, measure_numbers
from tools.benchmark.sqnr import Estimate, estimate
from tools.zoo.benchmark import BENCHMARK

PARTS = {"numbers": Numbers, "latency": Latency}
HEAD = ("network", "obstacle", "int8 layers", "borders", "latency ratio", "SQNR, dB", STOCK, OVLPT, EXACT)


class Figures:
    """What was measured, kept in a file."""

    def __init__(self, file: Path | None):
        self.file = file
        self.machine = {
            "openvino": openvino.__version__,
            "device": Core().get_property("CPU", "FULL_DEVICE_NAME").strip(),
        }
        self.networks: dict[str, dict[str, dict]] = {}
        if file is not None and file.exists():
            stored = json.loads(file.read_text())
            self.networks = stored.pop("networks")
            if stored != self.machine:
                raise SystemExit(f"{file} is of {stored}, this machine is {self.machine}; give another file")

    def has(self, name: str, part: str) -> bool:
        return part in self.networks.get(name, {})

    def add(self, name: str, part: str, figures: Latency | Numbers) -> None:
        self.networks.setdefault(name, {})[part] = asdict(figures)
        if self.file is not None:
            written = self.file.with_suffix(".part")
            written.write_text(json.dumps({**self.machine, "networks": self.networks}, indent=1) + "\n")
            written.replace(self.file)

    def row(self, name: str, obstacle: str) -> Row:
        stored = self.networks.get(name, {})
        return Row(name, obstacle, **{part: kind(**stored[part]) for part, kind in PARTS.items() if part in stored})


def cells(row: Row) -> list[str]:
    """A row of the table, under `HEAD`: stock's figure before ovlpt's. SQNR is the simulation's, and what each side has
    more.
    """
    line = [row.name, row.obstacle, *[""] * 7]
    if numbers := row.numbers:
        line[2] = (
            f"{numbers.int8[STOCK]} of {numbers.weighted[STOCK]} / {numbers.int8[OVLPT]} of {numbers.weighted[OVLPT]}"
        )
        line[3] = f"{sum(numbers.borders[STOCK].values())} / {sum(numbers.borders[OVLPT].values())}"
        line[5] = f"{estimate(numbers.sqnr[SIMULATION]).mean:.1f}"
        line[6:] = [_signed(difference(numbers, side)) for side in (STOCK, OVLPT, EXACT)]
    if latency := row.latency:
        line[4] = f"{latency.ratio:.3f} ({latency.low:.3f}–{latency.high:.3f})"
    return line


def _signed(found: Estimate) -> str:
    return f"{found.mean:+.2f} ± {found.error:.2f}"


def quantization(rows: list[Row]) -> list[str]:
    """For each part, how the networks that it measured were quantized."""
    lines = []
    for part in PARTS:
        measured = [(row.name, figures.weights) for row in rows if (figures := getattr(row, part))]
        for weights in dict.fromkeys(weights for _, weights in measured):
            names = [name for name, each in measured if each == weights]
            of = "all networks" if len(names) == len(rows) else ", ".join(names)
            lines.append(f"{part} of {of}: weights {weights}")
    return lines


def markdown(rows: list[Row]) -> str:
    """The table of docs/benchmarks.md."""
    lines = [HEAD, ["---"] * len(HEAD), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks of the list (default: all)")
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="where python -m tools.zoo put them")
    parser.add_argument("--only", choices=PARTS, help="measure nothing else")
    parser.add_argument("--seconds", type=float, default=5.0, help="of latencies, for each side (default 5)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep all figures; what is in it is not measured again"
    )
    add_workers(parser, resumable=False)
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/benchmarks.md")
    options = parser.parse_args(arguments)
    obstacles = {contender.name: contender.obstacle for contender in BENCHMARK}
    names = options.names or list(obstacles)
    if unknown := [name for name in names if name not in obstacles]:
        return _refuse(f"not in the list: {', '.join(unknown)}; there are {', '.join(obstacles)}")
    figures = Figures(options.json)
    work = [
        (name, part) for part in PARTS for name in names if options.only in (None, part) and not figures.has(name, part)
    ]
    for name, _ in work:
        if not (path := options.models / f"{name}.xml").exists():
            return _refuse(f"no file {path}; python -m tools.zoo {name} -o {options.models} builds it")
    try:
        with workers(options, console(STDOUT), "measuring", "measurements") as (executor, progress):
            for part in PARTS:
                tasks = [_task(options, name, each) for name, each in work if each == part]
                _measure(figures, part, tasks, executor, progress)
    except OvlptError as error:
        return _refuse(str(error))
    rows = [figures.row(name, obstacles[name]) for name in names]
    judged = goals(rows, whole=set(names) == set(obstacles))
    if options.markdown:
        print(markdown(rows))
    else:
        _show(rows)
    print("", *quantization(rows), *judged, sep="\n")
    return int(not all(goal.met for goal in judged))


def _task(options: argparse.Namespace, name: str, part: str) -> Task:
    """A measurement, for a worker that can read the models."""
    path = (options.models / f"{name}.xml").absolute()
    return Task(name, f"{name}: {part}", measured, (part, path, options.seconds))


def measured(part: str, path: Path, seconds: float) -> dict[str, Any]:
    """One part of one network, in a worker. Raises `OvlptError` that names the network."""
    try:
        if part == "numbers":
            found, _ = subprocess_call.call(measure_numbers, path)
        else:
            with measuring():
                found, _ = subprocess_call.call(measure_latency, path, seconds)
    except OvlptError as error:
        raise OvlptError(f"{path.stem}: {error}") from error
    return asdict(found)


def _measure(
    figures: Figures, part: str, tasks: Sequence[Task], executor: Executors | None, progress: Progress
) -> None:
    """Add the figures of all tasks. Raises `OvlptError` where one cannot be measured."""
    found: Iterator[tuple[Task, Any]] = answers(tasks, executor, None, progress, len(tasks))
    for task, answer in found:
        if isinstance(answer, Died):
            raise answer
        print(task.label, file=sys.stderr)
        figures.add(task.key, part, PARTS[part](**answer))


def _show(rows: list[Row]) -> None:
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*cells(row))
    console = Console(width=170)
    console.print(table)
    for row in rows:
        if row.numbers and (text := remark(row.numbers)):
            console.print(f"{row.name}: the SQNR of ovlpt is below the simulation's; {text}")


def _refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
