"""``python -m tools.scaling``: how many workers one driver keeps busy, in simulation: threads that sleep as a task computes.

The driver's part is real: it submits tasks, takes answers of the bundled network, writes them into a journal, and adds
them up. Efficiency is the sum of the times slept, by the workers and the time that passed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ovlpt import data
from ovlpt.fleet.engine import answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.models import file_parcel
from ovlpt.fleet.tasks import Task
from ovlpt.inspect.setup import Setup
from ovlpt.inspect.shard_errors import measure_with
from ovlpt.inspect.shards import Samples
from ovlpt.inspect.totals import Totals


def answer_of_a_shard() -> str:
    """What a worker sends for a shard of the bundled network, as text."""
    setup = Setup(file_parcel(data.digits()), file_parcel(data.digits_float()), "CPU", None, 1)
    images = data.heldout()[0]
    return json.dumps(measure_with(setup, 0, False, (Samples("", [[images[:1]]], None),)))


def sleep(seconds: float, answer: str) -> object:
    """A task that computes for so long."""
    time.sleep(seconds)
    return json.loads(answer)


def efficiency(workers: int, seconds: float, rounds: int, answer: str) -> float:
    """Of as many workers, with tasks of so many seconds."""
    count = workers * rounds
    work = (Task(str(number), "", sleep, (seconds, answer)) for number in range(count))
    totals = Totals()
    with (
        tempfile.TemporaryDirectory() as folder,
        Journal(Path(folder, "journal"), {}) as journal,
        ThreadPoolExecutor(workers) as pool,
    ):
        begin = time.perf_counter()
        for _, plain in answers(work, pool, journal):
            totals.merge(Totals.from_plain(plain))
        passed = time.perf_counter() - begin
    return count * seconds / workers / passed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.scaling", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.1, 0.5, 2.0], help="of a task")
    parser.add_argument("--rounds", type=int, default=8, help="tasks of each worker (default 8)")
    options = parser.parse_args(arguments)
    answer = answer_of_a_shard()
    print("| seconds a task |", " | ".join(f"{count} workers" for count in options.workers), "|")
    print("| ---" * (len(options.workers) + 1), "|")
    for seconds in options.seconds:
        found = (efficiency(count, seconds, options.rounds, answer) for count in options.workers)
        print(f"| {seconds:g} |", " | ".join(f"{each:.1%}" for each in found), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
