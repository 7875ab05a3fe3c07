"""``python -m tools.throughput [MODEL FLOAT]``: what a second worker of one thread brings to `ovlpt.compare`.

On generated images of the bundled network, or of MODEL and its float original: images a second with one and with two workers
of a Dask cluster on this machine, with real sockets, both once they have compiled their networks; the gap between two shards
of a worker; and whether all figures equal, to the last digit, those of a run without workers. The exit status is 1 where they
do not, or where two workers have less than 1.7 times the throughput of one.

Measure on a machine that does nothing else. The CPU time of an image says whether the work itself grows with a second
worker, whatever else the machine does; so does "of a core", the part of the time in which the workers had one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ovlpt import data
from ovlpt.inspect.compare import Comparison, compare
from ovlpt.openvino_api import Core

WANTED = 1.7  # times the throughput of one worker
FILES = 50


class Watched(Executor):
    """A Dask executor, and how long its workers computed for each task."""

    def __init__(self, executor: Any):  # of Dask
        self._executor, self._client = executor, executor._client
        self.seconds: list[float] = []

    def submit(self, function, /, *arguments, **named) -> Future:
        future = self._executor.submit(function, *arguments, **named)
        future.add_done_callback(lambda done: self.seconds.append(done.result().seconds))
        return future


@dataclass(frozen=True)
class Run:
    """``seconds`` that passed, for ``images`` in ``shards`` on ``workers``. ``computing``: seconds of the tasks; ``used``:
    CPU seconds of the workers; ``driver``: those of this process.
    """

    workers: int
    images: int
    shards: int
    seconds: float
    computing: float
    used: float
    driver: float

    @property
    def throughput(self) -> float:
        """Images a second."""
        return self.images / self.seconds

    @property
    def gap(self) -> float:
        """Milliseconds in which a worker waits for its next shard."""
        return 1e3 * (self.workers * self.seconds - self.computing) / self.shards

    def __str__(self) -> str:
        return (
            f"{self.workers} worker{'s' * (self.workers > 1)}: {self.throughput:.1f} images a second; {self.gap:.1f} ms "
            f"between two of {self.shards} shards; CPU time of an image {1e3 * self.used / self.images:.3f} ms, of the "
            f"driver {1e3 * self.driver / self.images:.3f} ms; {self.used / self.computing:.0%} of a core"
        )


class Bench:
    """One pair of models, and its images as files."""

    def __init__(self, model: Path, original: Path, images: int, folder: Path, shape: Sequence[int] | None = None):
        self.model, self.original, self.images, self.folder = model, original, images, folder
        write_images(model, folder, images, min(FILES, images), shape)

    def compared(self, executor: Executor | None, inputs: object = None) -> Comparison:
        """All images, layers of one."""
        given = {"float_model": self.original, "layer_samples": 1, "threads": 1, "seconds": 0}
        found = compare(self.model, self.folder if inputs is None else inputs, executor=executor, **given)
        return replace(found, latency={})

    def run(self, client, workers: Sequence[str]) -> tuple[Run, Comparison]:
        """On the workers at these addresses, each of which has compiled its networks."""
        executor = Watched(client.get_executor(workers=list(workers)))
        before, driver, begin = _used(client, workers), time.process_time(), time.perf_counter()
        found = self.compared(executor)
        seconds, driver = time.perf_counter() - begin, time.process_time() - driver
        shards, computing = len(executor.seconds), sum(executor.seconds)
        used = _used(client, workers) - before
        return Run(len(workers), found.samples, shards, seconds, computing, used, driver), found

    def warm_up(self, client, worker: str) -> float:
        """Seconds in which a worker compiles all networks, and computes a file."""
        begin = time.perf_counter()
        self.compared(client.get_executor(workers=[worker]), [self.folder / "000.npy"])
        return time.perf_counter() - begin


def write_images(model: Path, folder: Path, images: int, files: int, shape: Sequence[int] | None = None) -> None:
    """Generated samples for the one input of a model, in as many files, of this ``shape``; by default dynamic sizes are 1."""
    folder.mkdir(exist_ok=True)
    sizes = Core().read_model(model).input(0).get_partial_shape()
    shape = shape or [size.get_length() if size.is_static else 1 for size in sizes]
    generator = np.random.default_rng(0)
    for number, part in enumerate(np.array_split(np.arange(images), files)):
        batch = generator.standard_normal((len(part), *shape), np.float32)
        np.save(folder / f"{number:03}.npy", np.abs(batch))


def differences(found: Comparison, alone: Comparison) -> list[str]:
    """The figures that are not those of a run without workers, each with both values."""
    return [] if found == alone else [*differing(asdict(found), asdict(alone))]


def differing(found: object, expected: object, where: str = "") -> Iterator[str]:
    """What is not the same in two nested values, with both."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        for key, value in expected.items():
            yield from differing(found[key], value, f"{where} {key}".strip())
    elif isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)) and len(found) == len(expected):
        for number, pair in enumerate(zip(found, expected, strict=True)):
            yield from differing(*pair, f"{where} {number}")
    elif found != expected:
        yield f"{where}: {found}, alone {expected}"


def _used(client, workers: Sequence[str]) -> float:
    """CPU seconds of the workers' processes."""
    return sum(client.run(time.process_time, workers=list(workers)).values())


def measure(bench: Bench, client, pairs: int) -> bool:
    """Print the figures of one pair of models; whether they are as wanted."""
    workers = sorted(client.nthreads())[:2]
    print(f"{bench.model.name}, {bench.images} images, load {os.getloadavg()[0]:.1f}", flush=True)
    begin = time.perf_counter()
    alone = bench.compared(None)
    print(f"without workers: {time.perf_counter() - begin:.1f} s with compiling", flush=True)
    print(*(f"a worker is ready after {bench.warm_up(client, each):.1f} s" for each in workers), sep="\n", flush=True)
    ratios, different = [], []
    for pair in range(pairs):
        runs = {}
        for some in (workers[:1], workers) if pair % 2 == 0 else (workers, workers[1:]):
            runs[len(some)], found = bench.run(client, some)
            different += differences(found, alone)
            print(runs[len(some)], flush=True)
        ratios.append(runs[2].throughput / runs[1].throughput)
    told = "DIFFER from those of a run without workers:" if different else "equal those of a run without workers"
    print(f"two workers have {median(ratios):.2f} times the throughput of one; all figures {told}", flush=True)
    print(*different, "", sep="\n", flush=True)
    return not different and median(ratios) >= WANTED


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.throughput", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL FLOAT", help="instead of the bundled network")
    parser.add_argument(
        "--shape",
        type=int,
        nargs="+",
        metavar="SIZE",
        help="of a sample; default: the model's, with 1 for dynamic sizes",
    )
    parser.add_argument("--images", type=int, default=5000, metavar="N", help="default 5000")
    parser.add_argument(
        "--pairs", type=int, default=3, metavar="N", help="runs with one worker and with two; default 3"
    )
    parser.add_argument("--scheduler", metavar="tcp://HOST:PORT", help="a cluster of two workers of one thread")
    options = parser.parse_args(arguments)
    if len(options.models) not in (0, 2):
        parser.error("give MODEL and FLOAT, or none for the bundled network")
    import distributed

    model, original = options.models or (data.digits(), data.digits_float())
    cluster = options.scheduler or distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with tempfile.TemporaryDirectory() as folder, distributed.Client(cluster, set_as_default=False) as client:
        bench = Bench(model, original, options.images, Path(folder), options.shape)
        good = measure(bench, client, options.pairs)
    if options.scheduler is None:
        cluster.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
