"""Tasks on workers that fail, and on workers that must not take part."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from ovlpt.fleet import machine, parcel, tasks
from ovlpt.fleet.engine import Died, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.parcel import Parcel
from ovlpt.fleet.tasks import Task, perform
from ovlpt.fleet.workers import Cluster, processes
from ovlpt.trace import InputError, OvlptError


def square(number: int) -> int:
    return number * number


def squares(count: int) -> list[Task]:
    return [Task(f"key {number}", f"task {number}", square, (number,)) for number in range(count)]


def values(found) -> list[object]:
    return sorted(value for _, value in found)


@pytest.mark.parametrize("executor", [None, lambda: ThreadPoolExecutor(3)])
def test_every_task_has_its_answer_and_the_progress_is_told(executor):
    told = []
    found = answers(squares(10), executor, progress=lambda *part: told.append(part), total=10)
    assert values(found) == [number * number for number in range(10)]
    assert told == [(number, 10) for number in range(1, 11)]


def test_tasks_are_taken_as_workers_get_free():
    taken = []

    def lazily():
        for task in squares(50):
            taken.append(task)
            yield task

    found = answers(lazily(), lambda: ThreadPoolExecutor(2))
    for number, _ in enumerate(found):
        assert len(taken) <= number + 1 + 4


class Pool(ThreadPoolExecutor):
    """Breaks when its fourth task is submitted, as a pool of processes with a killed one does."""

    def __init__(self):
        super().__init__(2)
        self.count = 0

    def submit(self, function, /, *arguments):
        self.count += 1
        if self.count < 4:
            return super().submit(function, *arguments)
        future = Future()
        future.set_exception(BrokenExecutor("a worker was killed"))
        return future


def test_what_is_lost_with_a_pool_is_done_by_another(tmp_path):
    with Journal(tmp_path / "journal", {}) as journal:
        found = list(answers(squares(30), Pool, journal))
    assert values(found) == [number * number for number in range(30)]
    lines = (tmp_path / "journal").read_text().splitlines()
    assert len(lines) == 32
    assert len(set(lines)) == 32


def test_a_pool_that_nobody_can_replace_is_one_sentence():
    with pytest.raises(OvlptError, match="give a function that makes executors"):
        list(answers(squares(9), Pool()))


def ends_its_process(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Fragile(ThreadPoolExecutor):
    """A pool that is gone with a task of `ends_its_process`."""

    def __init__(self):
        super().__init__(1)

    def submit(self, function, /, *arguments):
        if arguments[0] is not ends_its_process:
            return super().submit(function, *arguments)
        future = Future()
        future.set_exception(BrokenExecutor("a worker was killed"))
        return future


def test_a_task_that_no_worker_survives_is_told_apart_from_the_others():
    work = squares(6)
    work[2] = replace(work[2], function=ends_its_process)
    found = dict(answers(work, Fragile))
    assert [task.label for task, value in found.items() if isinstance(value, Died)] == ["task 2"]
    assert sorted(value for value in found.values() if not isinstance(value, Died)) == [0, 1, 9, 16, 25]


def test_a_journal_spares_what_it_has(tmp_path):
    with Journal(tmp_path / "journal", {}) as journal:
        list(answers(squares(4), None, journal))
    calls = []
    work = [replace(task, function=lambda number: calls.append(number) or square(number)) for task in squares(6)]
    with Journal(tmp_path / "journal", {}) as journal:
        assert values(answers(work, None, journal)) == [0, 1, 4, 9, 16, 25]
    assert calls == [4, 5]


def test_two_tasks_of_one_key_would_be_counted_once_and_are_refused():
    with pytest.raises(ValueError, match="two tasks have the key"):
        list(answers([*squares(2), *squares(1)]))


@pytest.mark.parametrize("what", ["OpenVINO", "CPU"])
def test_a_worker_with_other_numbers_is_refused_by_name(what, tmp_path, monkeypatch):
    with Journal(tmp_path / "journal", {}) as journal:
        list(answers(squares(1), None, journal))
    here = machine.machine()
    monkeypatch.setattr(tasks, "machine", lambda: {**here, what: "another"})
    monkeypatch.setattr(tasks, "name", lambda: "node7 (process 1)")
    with (
        Journal(tmp_path / "journal", {}) as journal,
        pytest.raises(InputError, match=rf"worker node7 \(process 1\) has the {what} another, and the others"),
    ):
        list(answers(squares(2), lambda: ThreadPoolExecutor(1), journal))


def length(given: Parcel) -> int:
    return sum(len(path.read_bytes()) for path in given.here())


def test_files_travel_to_a_worker_that_asks_for_them(tmp_path, monkeypatch):
    files = [tmp_path / "model.xml", tmp_path / "model.bin"]
    for file in files:
        file.write_bytes(b"12345")
    given = Parcel.of(*files)
    assert perform(length, (given,)).value == 10  # a worker that finds them
    elsewhere = Parcel(given.digest, tuple(f"/elsewhere/{file.name}" for file in files), True)
    assert perform(length, (elsewhere,)).missing
    sent = []
    monkeypatch.setattr(Parcel, "packed", lambda self: sent.append(1) or replace(self, content=(b"12345", b"12345")))
    work = [Task(str(number), "", length, (elsewhere,)) for number in range(8)]
    assert values(answers(work, lambda: ThreadPoolExecutor(1))) == [10] * 8
    assert 1 <= len(sent) <= 2  # the second task was on its way when the first one asked
    parcel._UNPACKED.pop(given.digest)


def test_files_that_change_during_a_run_are_refused(tmp_path):
    (tmp_path / "data").write_bytes(b"1")
    given = Parcel.of(tmp_path / "data")
    (tmp_path / "data").write_bytes(b"2")
    with pytest.raises(InputError, match="has changed"):
        given.packed()


def dies_once(folder: str, number: int) -> int:
    """A real worker is killed by the tasks 3 and 11, once each."""
    with open(Path(folder, "started"), "a") as file:
        file.write(f"{number}\n")
    if number in (3, 11) and not Path(folder, f"killed {number}").exists():
        Path(folder, f"killed {number}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.skipif(os.name == "nt", reason="Windows has no kill -9")
def test_a_worker_killed_twice(tmp_path):
    work = [Task(str(number), "", dies_once, (str(tmp_path), number)) for number in range(16)]
    with Journal(tmp_path / "journal", {}) as journal:
        assert values(answers(work, processes(1), journal)) == list(range(16))
        assert len(journal.finished) == 16
    assert len(list(tmp_path.glob("killed*"))) == 2


def exits(_: int) -> None:
    os._exit(1)


def aborts(_: int) -> None:
    os.abort()


@pytest.mark.parametrize("deadly", [exits, aborts])
@pytest.mark.parametrize("ends", [{0}, {7}, set(range(6))], ids=["first", "last", "most"])
def test_tasks_that_end_their_workers_do_not_end_the_run(deadly, ends):
    work = [replace(task, function=deadly) if number in ends else task for number, task in enumerate(squares(8))]
    found = {task.arguments[0]: value for task, value in answers(work, processes(1))}
    assert {number for number, value in found.items() if isinstance(value, Died)} == ends
    assert all(found[number] == number * number for number in set(range(8)) - ends)


class Hopeless(ThreadPoolExecutor):
    """Whose workers do not even start."""

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_exception(BrokenExecutor("no worker starts"))
        return future


def test_workers_that_no_task_can_use_end_the_run():
    with pytest.raises(OvlptError, match="the workers ended before any task was finished"):
        list(answers(squares(30), lambda: Hopeless(2)))


def test_unusable_workers_are_one_sentence():
    with pytest.raises(InputError, match="0 workers compute nothing"):
        processes(0)
    pytest.importorskip("distributed", reason="a scheduler needs the extra cluster")
    with pytest.raises(InputError, match=r"no Dask scheduler answers at \"tcp://127\.0\.0\.1:9\""):
        Cluster("tcp://127.0.0.1:9", timeout=1)


def test_what_cannot_connect_is_closed_at_once():
    """The garbage collector may close it within another client's start, and neither ends."""
    distributed = pytest.importorskip("distributed", reason="a scheduler needs the extra cluster")
    for address in ("", "nowhere", "tcp://127.0.0.1:x"):
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            Cluster(address, timeout=1)
    left = [each for each in gc.get_objects() if type(each) is distributed.Client]
    assert {each.status for each in left} <= {"closed"}


INTERRUPTED = """
import signal, sys, time
from ovlpt.fleet.workers import processes
first = processes(2)().submit(time.sleep, 60)
print("under way", flush=True)
try:
    first.result()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("delay", [0.1, 3])
def test_workers_say_nothing_of_an_interrupt(delay):
    """Neither while they start nor at work: a terminal sends it to all of them."""
    program = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as running:
        assert running.stdout.readline() == b"under way\n"
        time.sleep(delay)
        os.killpg(running.pid, signal.SIGINT)
        assert running.communicate(timeout=50)[1] == b""
    assert running.returncode == 130
