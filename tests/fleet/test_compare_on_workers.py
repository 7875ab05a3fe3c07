"""`compare` on workers: the figures of one process, to the last digit."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ovlpt import cli
from ovlpt.fleet.engine import Died
from ovlpt.fleet.parcel import Parcel
from ovlpt.inspect import compare as module
from ovlpt.inspect import shards
from ovlpt.inspect.compare import Comparison, compare
from ovlpt.trace import InputError
from tests.inspect.test_compare import network
from tests.test_cli import save

RNG = np.random.default_rng(11)
COUNT, SHARDS = 7, 9  # samples of a shard; the last but one cannot be read


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models, and shards of samples with labels."""
    folder = tmp_path_factory.mktemp("fleet")
    save(network(True), folder / "quantized.xml")
    save(network(False), folder / "float.xml")
    (folder / "shards").mkdir()
    for number in range(SHARDS):
        samples = np.abs(RNG.standard_normal((COUNT, 1, 4, 16))).astype(np.float32)
        np.savez(folder / "shards" / f"{number}.npz", x=samples, labels=RNG.integers(0, 8, COUNT * 4))
    (folder / "shards" / "7.npz").write_bytes(b"not an archive")
    return folder


@pytest.fixture(autouse=True)
def file_by_file(monkeypatch):
    monkeypatch.setattr("ovlpt.inspect.shards._FILES", 1)


def arguments(folder) -> dict[str, object]:
    return {"model": folder / "quantized.xml", "float_model": folder / "float.xml", "threads": 1, "seconds": 0}


@pytest.fixture(scope="module")
def alone(folder) -> Comparison:
    return compare(inputs=folder / "shards", **arguments(folder))


def same(found: Comparison, alone: Comparison) -> bool:
    return replace(found, latency={}) == replace(alone, latency={})


def test_a_shard_that_cannot_be_read_is_named_and_the_others_count(alone, folder):
    assert alone.samples == COUNT * (SHARDS - 1)
    (sentence,) = alone.skipped
    assert sentence.startswith(f"{folder / 'shards' / '7.npz'} is left out: ")
    assert alone.layer_samples == 16


def test_the_division_of_the_data_changes_nothing(alone, folder):
    files = [file for file in sorted((folder / "shards").iterdir()) if file.stem != "7"]
    arrays = [dict(np.load(file)) for file in files]
    whole = {name: np.concatenate([each[name] for each in arrays]) for name in ("x", "labels")}
    one = compare(inputs=[whole["x"]], labels=whole["labels"], **arguments(folder))
    many = compare(inputs=iter(arrays), **arguments(folder))
    found = compare(inputs=files[::-1], **{**arguments(folder), "layer_samples": 999})
    assert same(one, replace(alone, skipped=()))
    assert same(many, replace(alone, skipped=()))
    assert found.sqnr == alone.sqnr
    assert found.accuracy == alone.accuracy


@pytest.mark.parametrize(("files", "tasks"), [(9, 9), (64, 64), (65, 33), (1000, 63), (256 * 100, 100)])
def test_small_files_are_enough_tasks_that_workers_end_together(folder, monkeypatch, files, tasks):
    monkeypatch.setattr("ovlpt.inspect.shards._FILES", 256)
    parcel = Parcel.of(folder / "float.xml", by_content=False)
    groups = shards._grouped([shards.DataFile(parcel)] * files)
    assert len(groups) == tasks
    assert sum(map(len, groups)) == files


@pytest.mark.parametrize(("count", "tasks"), [(1, 1), (64, 64), (65, 33), (10_000, 79)])
def test_arrays_are_enough_tasks_and_none_is_large(count, tasks):
    found = shards.divided([[np.zeros((1, 4), np.float32)]] * count, None, None)
    assert found.count == tasks


class Pools:
    """Makes pools of one process, and kills it."""

    def __init__(self):
        self.made = []

    def __call__(self) -> ProcessPoolExecutor:
        self.made.append(ProcessPoolExecutor(1, multiprocessing.get_context("spawn")))
        return self.made[-1]

    @property
    def started(self) -> bool:
        return bool(self.made and self.made[-1]._processes)

    def kill_one(self) -> None:
        next(iter(self.made[-1]._processes.values())).kill()


def test_a_killed_worker_and_a_resumed_run_give_the_figures_of_one_process(alone, folder, tmp_path):
    pools, told = Pools(), []

    def progress(done: int, total: int | None) -> None:
        told.append((done, total))
        if done == 3:
            pools.kill_one()

    journal = tmp_path / "journal"
    found = compare(inputs=folder / "shards", executor=pools, resume=journal, progress=progress, **arguments(folder))
    assert same(found, alone)
    assert told == [(number, SHARDS) for number in range(1, SHARDS + 1)]
    keys = [json.loads(line).get("task") for line in journal.read_text().splitlines()]
    assert len(set(keys)) == len(keys) - 1 == SHARDS + 1  # a line for the run, one for the machine

    again = compare(inputs=folder / "shards", executor=Never, resume=journal, **arguments(folder))
    assert same(again, alone)


class Never(ThreadPoolExecutor):
    def submit(self, *_: object):
        raise AssertionError("a finished shard is computed again")


def test_a_journal_of_other_settings_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match="stop"):
        compare(inputs=_stops(folder), resume=tmp_path / "journal", **arguments(folder))
    with pytest.raises(InputError, match="samples of layers differ"):
        compare(inputs=folder / "shards", resume=tmp_path / "journal", layer_samples=3, **arguments(folder))


def _stops(folder):
    yield folder / "shards" / "0.npz"
    raise InputError("stop")


def test_loky_is_an_executor_like_any_other(alone, folder):
    loky = pytest.importorskip("loky", reason="needs the extra cluster")
    executor = loky.get_reusable_executor(1)
    assert same(compare(inputs=folder / "shards", executor=executor, **arguments(folder)), alone)
    executor.shutdown()


def test_a_dask_cluster_by_its_address(alone, folder, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        call = ["compare", str(folder / "quantized.xml"), "-f", str(folder / "float.xml"), "-i", str(folder / "shards")]
        call += ["--scheduler", cluster.scheduler_address, "--json", str(tmp_path / "found.json")]
        assert cli.main(call) == 0
    found = json.loads((tmp_path / "found.json").read_text())["result"]
    expected = json.loads(json.dumps(alone.to_json()))
    assert all(found[key] == expected[key] for key in expected if key != "latency_ms")
    assert found["latency_ms"] == {}


def test_threads_of_one_process_take_turns_with_its_networks(alone, folder):
    assert same(compare(inputs=folder / "shards", executor=ThreadPoolExecutor(3), **arguments(folder)), alone)


def test_a_shard_that_no_worker_survives_is_left_out(alone, folder, monkeypatch):
    real = module.answers

    def one_dies(tasks, *rest):
        for number, (task, plain) in enumerate(real(tasks, *rest)):
            yield task, Died("it ended its worker process") if number == 3 else plain

    monkeypatch.setattr(module, "answers", one_dies)
    found = compare(inputs=folder / "shards", **arguments(folder))
    assert found.samples == alone.samples - COUNT
    assert len(found.skipped) == 2


@pytest.mark.parametrize(
    ("inputs", "more", "sentence"),
    [
        ("nothing/*.npz", {}, "no file matches"),
        ([["text"]], {}, "shard 1 of the data"),
        (iter(()), {}, "the data holds no sample"),
        ("shards", {"labels": [1]}, 'give each an array "labels"'),
        ("shards", {"threads": 0}, "0 threads compute nothing"),
        ("shards", {"virtual": "xelp", "executor": ThreadPoolExecutor}, "a virtual GPU exists in one process"),
    ],
)
def test_unusable_data_is_one_sentence(folder, monkeypatch, inputs, more, sentence):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=sentence):
        compare(inputs=inputs, **{**arguments(folder), **more})


def test_memory_stays_flat(folder):
    """Data of 160 MB in a process that may take 16 MB more than it has once the first shard is done."""
    program = f"""
        import resource
        import numpy as np
        from pathlib import Path
        from ovlpt.inspect.compare import compare

        def shards():
            for number in range(80):
                if number == 2:
                    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                    resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), -1))
                yield [np.full((1, 1 << 13, 4, 16), number / 80, np.float32)]

        found = compare({str(folder / "wide.xml")!r}, shards(), layer_samples=1, seconds=0, threads=1)
        print(found.samples)
    """
    wide = network(True)
    wide.reshape([1 << 13, 4, 16])
    save(wide, folder / "wide.xml")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, cwd=str(folder)
    )
    assert done.stdout.split() == ["80"], done.stderr[-500:]


_CALLS = []  # of this worker


def within_limits(function, arguments):
    """A task in a worker, which may take 16 MB more than it has once two are done."""
    _CALLS.append(function)
    if len(_CALLS) == 3:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), -1))
    return function(*arguments)


class Limited(ProcessPoolExecutor):
    def submit(self, function, /, *arguments):
        return super().submit(within_limits, function, arguments)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and needs limits of a process")
def test_the_memory_of_each_worker_stays_flat(folder):
    """Data of 160 MB for two workers, ten times what each may take."""
    wide = network(True)
    wide.reshape([1 << 13, 4, 16])
    model = save(wide, folder / "wide_files.xml")
    (folder / "wide").mkdir()
    for number in range(80):
        np.save(folder / "wide" / f"{number:02}.npy", np.full((1, 1 << 13, 4, 16), number / 80, np.float32))
    with Limited(2, multiprocessing.get_context("spawn")) as executor:
        found = compare(model, folder / "wide", layer_samples=1, seconds=0, executor=executor)
    assert found.skipped == ()
    assert found.samples == 80
