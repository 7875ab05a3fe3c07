"""``python -m tools.fuzz numbers|native|execution|gpu|answers``: random quantized graphs, checked here or by many workers."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext

from ovlpt.commands.arguments import add_workers
from ovlpt.commands.printing import STDOUT, console
from ovlpt.commands.workers import workers
from ovlpt.device import virtual_gpu
from ovlpt.fleet.engine import Died, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.machine import machine
from tools.fuzz.numbers import EVERY, IN_BF16, NATIVE_ONLY, STOCK, WAYS, Failure
from tools.fuzz.shard import GRAPHS, Judged, Settings, judge, tasks
from tools.fuzz.sheltered import CHECKS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=tuple(CHECKS))
    parser.add_argument("--graphs", type=int, default=100, help="how many (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the others follow (default 0)")
    parser.add_argument(
        "--added", action="store_true", help="with the operations that the native library has no rule for"
    )
    parser.add_argument(
        "--forms",
        action="store_true",
        help="with what quantizers other than NNCF write, states, more forms of storage and more parts of networks",
    )
    parser.add_argument(
        "--exported",
        action="store_true",
        help="with more operations and attributes that front ends give of exported files",
    )
    parser.add_argument(
        "--rarer",
        action="store_true",
        help="with what quantized layers seldom stand beside: masks, scales by head, bodies, updates, one row or column",
    )
    parser.add_argument("--no-shrink", action="store_true", help="print failing graphs as they are")
    add_workers(parser)
    options = parser.parse_args(arguments)
    if options.check == "gpu":
        os.environ.update(virtual_gpu.environment(execute=True))  # of the processes that are to check
    found, start = [], time.perf_counter()
    for judged in _judged(options):
        found.append(judged)
        if judged.ours:
            print(f"seed {judged.seed}", *judged.ours, judged.text, "", sep="\n", flush=True)
    failed = sum(bool(judged.ours) for judged in found)
    seconds = time.perf_counter() - start
    print(f"{options.graphs} graphs, {failed} fail, {seconds / max(options.graphs, 1):.2f} s each")
    for line in _summary(options.check, found):
        print(line)
    return 1 if failed else 0


def _summary(check: str, found: list[Judged]) -> Iterator[str]:
    """How many graphs are compared in which way, and each cause of a failure."""
    if check == "numbers":
        quantized = [judged for judged in found if judged.quantized]
        hidden = [{failure.hides for failure in judged.failures} for judged in quantized]
        compared = {way: sum(not {way, EVERY} & hides for hides in hidden) for way in WAYS}
        counts = ", ".join(f"{way} {count}" for way, count in compared.items())
        yield f"{len(quantized)} are quantized; compared with the simulation are {counts}"
        wrong = [str(judged.seed) for judged in quantized if any(map(_is_wrong_without_lpt, judged.failures))]
        if wrong:  # a user has these numbers, whoever computes them
            yield f"wrong, as in the plugin without any LPT: seeds {', '.join(wrong)}"
    stock = sum(judged.stock for judged in found)
    yield f"{stock} meet a fault of OpenVINO's own, counted below as {STOCK}"
    causes: Counter[str] = Counter()
    for judged in found:
        causes.update({_line(failure) for failure in judged.failures})
    for cause, count in sorted(causes.items(), key=lambda each: (-each[1], each[0])):
        yield f"{count:6} {cause}"


def _is_wrong_without_lpt(failure: Failure) -> bool:
    ours = failure.hides in (*WAYS, IN_BF16) and failure.hides != NATIVE_ONLY
    return failure.way == STOCK and failure.cause == "numbers" and ours


def _line(failure: Failure) -> str:
    hides = f", so that {failure.hides} is not compared" if failure.hides else ""
    return f"{failure.way}: {failure.cause}{hides}"


def _judged(options: argparse.Namespace) -> Iterator[Judged]:
    """Each graph as it is judged, by whoever has time."""
    settings = Settings(
        options.check, options.added, not options.no_shrink, options.forms, options.exported, options.rarer
    )
    run = {"command": "fuzz", "settings": repr(settings)}
    out = console(STDOUT)
    with (
        workers(options, out, "fuzzing", "tasks") as (executor, progress),
        nullcontext() if options.resume is None else Journal(options.resume, run) as journal,
    ):
        given = tasks(settings, options.seed, options.graphs, sheltered=executor is None)
        for task, answer in answers(given, executor, journal, progress, math.ceil(options.graphs / GRAPHS)):
            if isinstance(answer, Died):
                answer = judge(*task.arguments[:3])  # which graph it is, and in which way
                if journal is not None:
                    journal.add(task.key, answer, machine())
            yield from map(Judged.from_plain, answer)


if __name__ == "__main__":
    sys.exit(main())
