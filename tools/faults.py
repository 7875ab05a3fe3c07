"""``python -m tools.faults [MODEL FLOAT]``: what can go wrong with the workers of `ovlpt.compare`, done to real processes.

A line for each fault, on generated images of the bundled network, or of MODEL and its float original: what was done, and
whether all figures equal, to the last digit, those of a run without workers, and whether each shard lies in the journal
once; or the sentence that the run ended with, where it is to be refused. Exit status 1 where one is not as it should be.
``--other-python``: of an environment with another OpenVINO.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ovlpt import data
from ovlpt.fleet.engine import Executors
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.workers import Cluster, processes
from ovlpt.inspect.compare import Comparison, compare
from ovlpt.trace import OvlptError
from tools.throughput import differences, write_images

FILES = 40
KILLED_AT = (5, 20)  # shards


class Subject:
    """A pair of models and its images; ``alone``: the figures of a run without workers."""

    def __init__(self, model: Path, original: Path, images: int, folder: Path, shape: Sequence[int] | None):
        self.model, self.original, self.folder = model, original, folder
        self.images = folder / "images"
        write_images(model, self.images, images, FILES, shape)
        self.alone = self.compared(None)

    def compared(self, executor: Executors | None, images: Path | None = None, **more: Any) -> Comparison:
        given = {"float_model": self.original, "layer_samples": 1, "threads": 1, "seconds": 0, **more}
        found = compare(self.model, images or self.images, executor=executor, **given)
        return replace(found, latency={})

    def survives(self, executor: Executors, fault: Callable[[], object], at: tuple[int, ...] = KILLED_AT) -> str:
        """What is wrong after a ``fault`` at these shards; "" for nothing."""
        journal = self.folder / f"{time.monotonic_ns()}.journal"

        def progress(done: int, total: int | None) -> None:
            if done in at:
                fault()

        found = self.compared(executor, resume=journal, progress=progress)
        return judged(found, self.alone) or ("" if once(journal, FILES) else "journal DIFFERS")


def judged(found: Comparison, alone: Comparison) -> str:
    """Which figures are not those of a run without workers; "" for none."""
    different = differences(found, alone)
    return "\n".join(["figures DIFFER", *different]) if different else ""


def once(journal: Path, shards: int) -> bool:
    """Whether the journal has each shard once."""
    keys = [line.get("task") for line in map(json.loads, journal.read_text().splitlines()) if "task" in line]
    return len(keys) == len(set(keys)) == shards


class Pools:
    """Makes pools of two processes of a kind, and kills one of those of the last."""

    def __init__(self, make: Callable[[], Executor]):
        self._make = make
        self._last: Any = None

    def __call__(self) -> Executor:
        self._last = self._make()
        return self._last

    def kill_one(self) -> None:
        os.kill(next(iter(self._last._processes)), signal.SIGKILL)


def a_killed_process(subject: Subject) -> str:
    pools = Pools(processes(2))
    return subject.survives(pools, pools.kill_one)


def a_killed_process_of_loky(subject: Subject) -> str:
    import loky

    pools = Pools(lambda: loky.ProcessPoolExecutor(2))
    return subject.survives(pools, pools.kill_one)


def _dask(python: str, name: str, *arguments: str) -> subprocess.Popen:
    """A program of Dask, whose output is dropped."""
    call = [python, "-c", "from dask.cli import run_cli; run_cli()", name, *arguments, "--no-dashboard"]
    return subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Dask:
    """A scheduler and workers of one thread: processes of their own, with sockets between them. ``pythons``: of workers."""

    def __init__(self, pythons: Sequence[str] = (sys.executable, sys.executable)) -> None:
        self._pythons = pythons
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self._start()

    def _start(self) -> None:
        self._programs = [_dask(sys.executable, "scheduler", "--host", "127.0.0.1", "--port", str(self._port))]
        self._programs += [_dask(each, "worker", self.address, "--nthreads", "1") for each in self._pythons]

    def restart(self) -> None:
        """The scheduler is killed, and its workers end with it."""
        self.kill()
        self._start()

    def kill(self) -> None:
        for each in reversed(self._programs):
            each.kill() if each is self._programs[0] else each.terminate()  # a nanny ends its worker
            each.wait()

    def __enter__(self) -> Dask:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def connected(cluster: Cluster) -> Any:
    """The client of Dask."""
    executor: Any = cluster()
    return executor._client


def a_killed_worker_of_dask(subject: Subject) -> str:
    with Dask() as dask, Cluster(dask.address, timeout=60) as cluster:
        client = connected(cluster)
        client.wait_for_workers(2)
        return subject.survives(cluster, lambda: os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL))


def a_restarted_scheduler(subject: Subject) -> str:
    with Dask() as dask, Cluster(dask.address, timeout=60) as cluster:
        return subject.survives(cluster, dask.restart, at=KILLED_AT[:1])


def a_killed_run(subject: Subject) -> str:
    """It goes on from its journal."""
    journal = subject.folder / "killed.journal"
    call = [sys.executable, "-m", "ovlpt", "compare", str(subject.model), "-f", str(subject.original), "--samples", "1"]
    call += ["-i", str(subject.images), "--workers", "2", "--resume", str(journal)]
    run = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while not journal.exists() or journal.read_bytes().count(b"\n") < KILLED_AT[0]:
        if run.poll() is not None:
            return f"the run ended with status {run.returncode}"
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    had = journal.read_bytes().count(b"\n") - 2
    found = subject.compared(processes(2), resume=journal)
    if not 0 < had < FILES:
        return f"the run had finished {had} shards"
    return judged(found, subject.alone) or ("" if once(journal, FILES) else "journal DIFFERS")


def a_corrupt_shard(subject: Subject) -> str:
    images = subject.folder / "corrupt"
    images.mkdir()
    for file in subject.images.iterdir():
        (images / file.name).symlink_to(file)
    (images / "007.npy").unlink()
    (images / "007.npy").write_bytes(b"\x93NUMPY")
    found, alone = (subject.compared(executor, images) for executor in (processes(2), None))
    return judged(found, alone) or ("" if "007.npy is left out" in str(found.skipped) else "no shard was left out")


class InTurn(Executor):
    """Two pools of one process each."""

    _max_workers = 2

    def __init__(self, *pools: Executor):
        self._pools = list(pools)

    def submit(self, function, /, *arguments, **named) -> Future:
        self._pools.reverse()
        return self._pools[0].submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for each in self._pools:
            each.shutdown(wait, cancel_futures=cancel_futures)


def limit() -> None:
    """This process to AVX2."""
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"


def an_older_cpu(subject: Subject) -> str:
    limited = ProcessPoolExecutor(1, get_context("spawn"), initializer=limit)
    return refused(subject, lambda: InTurn(processes(1)(), limited), "are not comparable")


def another_openvino(subject: Subject, python: str) -> str:
    with Dask([sys.executable, python]) as dask, Cluster(dask.address, timeout=60) as cluster:
        connected(cluster).wait_for_workers(2)
        return refused(subject, cluster, "has the OpenVINO")


def a_journal_in_use(subject: Subject) -> str:
    path = subject.folder / "used.journal"
    with Journal(path, {}):
        return refused(subject, None, "another run writes the journal", resume=path)


def a_journal_of_another_model(subject: Subject) -> str:
    path = subject.folder / "other.journal"
    Journal(path, {"command": "compare", "model": "another"}).close()
    return refused(subject, None, "is of another run", resume=path)


def refused(subject: Subject, executor: Executors | None, sentence: str, **more: Any) -> str:
    """What is wrong where the run is to end with this ``sentence``."""
    try:
        subject.compared(executor, **more)
    except OvlptError as error:
        print(f"    {error}")
        return "" if sentence in str(error) else "another sentence was expected"
    return "it was not refused"


SURVIVED = (
    a_killed_process, a_killed_process_of_loky, a_killed_worker_of_dask, a_restarted_scheduler, a_killed_run, a_corrupt_shard,
)  # fmt: skip
REFUSED = (an_older_cpu, a_journal_in_use, a_journal_of_another_model)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL FLOAT", help="instead of the bundled network")
    parser.add_argument("--images", type=int, default=5000, metavar="N", help="default 5000")
    parser.add_argument(
        "--shape", type=int, nargs="+", metavar="SIZE", help="of a sample, for a model with dynamic sizes"
    )
    parser.add_argument(
        "--other-python", metavar="PYTHON", help="of an environment with another OpenVINO, and the extra cluster"
    )
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="some of them")
    options = parser.parse_args(arguments)
    if len(options.models) not in (0, 2):
        parser.error("give MODEL and FLOAT, or none for the bundled network")
    faults = {each.__name__: each for each in (*SURVIVED, *REFUSED)}
    if options.other_python:
        faults["another_openvino"] = partial(another_openvino, python=options.other_python)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        model, original = options.models or (data.digits(), data.digits_float())
        subject = Subject(model, original, options.images, Path(folder), options.shape)
        print(f"{model.name}, {options.images} images in {FILES} files", flush=True)
        for name in options.only or faults:
            begin = time.perf_counter()
            wrong = faults[name](subject)
            bad += bool(wrong)
            print(f"{name}: {wrong or 'as it should be'} ({time.perf_counter() - begin:.0f} s)", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
