"""ovlpt beside the stock plugin: ``python -m tools.benchmark [NAME …] --models DIR --json FILE``.

Over the networks of `tools.zoo.benchmark`, built by ``python -m tools.zoo benchmark -o DIR``, this shows for stock and
ovlpt: the layers with weights in int8, the borders between int8 and float, and the SQNR against the float model, as
its difference to that of the FakeQuantize simulation (`tools.benchmark.measure.Numbers` says what each is, and what
"ovlpt in f32" is); the paired ratio of times, ovlpt / stock, with its interval, of one inference, of asynchronous ones
with the hint THROUGHPUT, and of several samples at once; and which share the int8 layers of ovlpt reach of the
multiply-accumulates per second of the fastest int8 MatMul of this machine. A line for each goal follows; exit status 1
when one is missed, 2 when a network is not there, 3 when ``--minutes`` were over before all was measured.

On a CPU without VNNI int8 kernels saturate. Numbers that show what the software does are those of networks quantized
for such a CPU (``python -m tools.zoo benchmark --overflow-fix -o DIR``); what was measured on which is said below the
table, and both can lie in one FILE, ``--only latency`` of one folder and ``--only numbers`` of the other.

Each measurement runs in a process of its own, and its result goes to FILE at once: a run that was stopped, or was given
``--minutes``, goes on where it was. Measure times on a machine that does nothing else: with ``--workers`` or
``--scheduler`` one at a time on each machine, and after all numbers. ``--isa`` limits all processes to an instruction set.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ovlpt.commands.arguments import add_workers
from ovlpt.commands.printing import STDOUT, console
from ovlpt.commands.workers import workers
from ovlpt.device import instruction_sets, subprocess_call
from ovlpt.fleet.engine import Died, Executors, Progress, answers
from ovlpt.fleet.machine import measuring
from ovlpt.fleet.tasks import Task
from ovlpt.trace import OvlptError
from tools.benchmark.figures import HEAD, PARTS, Figures, cells, markdown, remarks
from tools.benchmark.goals import Row, goals, remark
from tools.benchmark.measure import INPUTS, measure_numbers
from tools.benchmark.speed import Fixed, measure_batch, measure_latency, measure_share, measure_throughput
from tools.zoo.benchmark import BENCHMARK

OVER = 3  # exit status


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    obstacles = {contender.name: contender.obstacle for contender in BENCHMARK}
    names = options.names or list(obstacles)
    if unknown := [name for name in names if name not in obstacles]:
        return _refuse(f"not in the list: {', '.join(unknown)}; there are {', '.join(obstacles)}")
    if options.minutes is not None and not options.minutes > 0:
        return _refuse(f"{options.minutes} minutes leave nothing to measure; give a number above 0")
    figures = Figures(options.json, options.precision)
    parts = options.only or list(PARTS)
    work = [(name, part) for part in PARTS if part in parts for name in names if not figures.has(name, part)]
    for name, _ in work:
        if not (path := options.models / f"{name}.xml").exists():
            return _refuse(f"no file {path}; python -m tools.zoo {name} -o {options.models} builds it")
    budget = Budget(options.minutes)
    try:
        with workers(options, console(STDOUT), "measuring", "measurements") as (executor, progress):
            for part in dict.fromkeys(part for _, part in work):
                tasks = [_task(options, name, each) for name, each in work if each == part]
                _measure(figures, part, budget.of(tasks), len(tasks), executor, progress)
    except OvlptError as error:
        return _refuse(str(error))
    rows = [figures.row(name, obstacles[name]) for name in names]
    judged = goals(rows, whole=set(names) == set(obstacles))
    if options.markdown:
        print(markdown(rows))
    else:
        _show(rows)
    print("", *remarks(figures, rows), *judged, sep="\n")
    if left := sum(not figures.has(*each) for each in work):
        print(f"{left} measurements are left; the same command goes on with them", file=sys.stderr)
        return OVER
    return int(not all(goal.met for goal in judged))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks of the list (default: all)")
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="where python -m tools.zoo put them")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure nothing else")
    parser.add_argument("--seconds", type=float, default=5.0, help="of times, for each side (default 5)")
    parser.add_argument("--inputs", type=int, default=INPUTS, metavar="N", help=f"of numbers (default {INPUTS})")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no measurement that would end later")
    parser.add_argument(
        "--precision", choices=("f32", "bf16", "f16"), default="f32", help="of what is not int8 (default f32)"
    )
    parser.add_argument("--isa", choices=instruction_sets.INSTRUCTION_SETS, help="limit the CPU to this")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep all figures; what is in it is not measured again"
    )
    add_workers(parser, resumable=False)
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/benchmarks.md")
    options = parser.parse_args(arguments)
    if options.isa:
        if options.workers is not None or options.scheduler is not None:
            parser.error("--isa limits processes of this machine; leave --workers and --scheduler out")
        os.environ.update(instruction_sets.environment(options.isa))
    return options


class Budget:
    """Minutes for all measurements: none is begun that would end later, by the longest of its part so far."""

    def __init__(self, minutes: float | None):
        self._end = None if minutes is None else time.monotonic() + 60 * minutes

    def of(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The tasks of one part that are begun."""
        longest, begin = 0.0, None
        for task in tasks:
            now = time.monotonic()
            longest = max(longest, now - begin) if begin is not None else longest
            if self._end is not None and now + longest > self._end:
                return
            begin = now
            yield task


def _task(options: argparse.Namespace, name: str, part: str) -> Task:
    """A measurement, for a worker that can read the models."""
    path = (options.models / f"{name}.xml").absolute()
    amount = options.inputs if part == "numbers" else options.seconds
    return Task(name, f"{name}: {part}", measured, (part, path, amount, options.precision))


def measured(part: str, path: Path, amount: float, precision: str) -> dict[str, Any] | None:
    """One part of one network, in a worker; None where its graph does not allow it. Raises `OvlptError` that names the
    network.
    """
    try:
        if part == "numbers":
            return asdict(subprocess_call.call(measure_numbers, path, amount, precision)[0])
        with measuring():
            measure = {
                "latency": measure_latency,
                "throughput": measure_throughput,
                "batch": measure_batch,
                "share": measure_share,
            }[part]
            return asdict(subprocess_call.call(measure, path, amount, precision)[0])
    except Fixed as error:
        print(f"{path.stem}: {error}", file=sys.stderr)
        return None
    except OvlptError as error:
        raise OvlptError(f"{path.stem}: {error}") from error


def _measure(
    figures: Figures,
    part: str,
    tasks: Iterable[Task],
    count: int,
    executor: Executors | None,
    progress: Progress,
) -> None:
    """Add the figures of the tasks. Raises `OvlptError` where one cannot be measured."""
    for task, answer in answers(tasks, executor, None, progress, count):
        if isinstance(answer, Died):
            raise answer
        print(task.label, file=sys.stderr)
        figures.add(task.key, part, answer)


def _show(rows: Sequence[Row]) -> None:
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*cells(row))
    console = Console(width=220)
    console.print(table)
    for row in rows:
        if row.numbers and (text := remark(row.numbers)):
            console.print(f"{row.name}: the SQNR of ovlpt is below the simulation's; {text}")


def _refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
