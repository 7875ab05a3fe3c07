"""From tasks to answers, over workers that come and go."""

from __future__ import annotations

import math
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from typing import Any

from ovlpt.device.execution_types import last_line
from ovlpt.fleet import machine
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.tasks import Answer, Task, perform
from ovlpt.trace import OvlptError

Executors = Executor | Callable[[], Executor]  # or what makes one, to replace one whose workers are lost
Progress = Callable[[int, int | None], object]  # finished tasks, all tasks as far as known

_SUSPECT = 2  # times that workers were lost with a task under way; it is then tried alone
_HOPELESS = 4  # times after which it was its own doing, when it was alone
_RENEWALS = 10  # new executors in a row without a finished task between them, after which one has to show that it works
_UNKNOWN = 8  # workers of an executor that does not say how many it has


class Died(OvlptError):
    """A task ended its worker process, each time."""


class Workers:
    """An executor for several calls of `answers`, another one once its workers are lost.

    ``machine``: of the first worker that answered, whose numbers those of the others are to be comparable with.
    """

    def __init__(self, executor: Executors):
        self._make: Callable[[], Executor] | None = None
        if callable(executor):
            self._make, executor = executor, executor()
        self.executor: Executor = executor
        self.machine: Mapping[str, str] | None = None

    def renew(self, error: Exception) -> None:
        """Another executor. Raises `OvlptError` where nobody said how one is made."""
        if self._make is None:
            raise OvlptError(
                "a worker process has ended, and its executor with it; give a function that makes executors instead, which "
                "replaces it"
            ) from error
        self.close()
        self.executor = self._make()

    def close(self) -> None:
        """End the executor, unless it was given."""
        if self._make is not None:
            self.executor.shutdown(wait=False)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answers(
    tasks: Iterable[Task],
    executor: Executors | Workers | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
    total: int | None = None,
    alike: Collection[str] = machine.ALIKE,
) -> Iterator[tuple[Task, Any]]:
    """Each task with its answer, in the order in which they are finished; `Died` where a worker cannot survive it.

    Without ``executor`` the tasks are carried out here, one after the other. ``tasks`` are taken as workers get free,
    so they may be many and hold data. What ``journal`` has is not computed again. ``progress`` is told after each task;
    ``total``: how many there are. ``alike``: what all workers have to have the same of (`machine.machine`).

    Raises what a task raises, and `InputError` where a worker's numbers are not comparable with the others'.
    """
    source = _Counted(tasks, journal)
    for finished, (task, answer) in enumerate(_carried_out(source, executor, journal, alike), 1):
        if progress is not None:
            progress(finished, total)
        yield task, answer


def _carried_out(
    tasks: _Counted, executor: Executors | Workers | None, journal: Journal | None, alike: Collection[str]
) -> Iterator[tuple[Task, Any]]:
    if executor is None:
        yield from _here(tasks, journal, alike)
    elif isinstance(executor, Workers):
        yield from _Run(executor, tasks, journal, alike).answers()
    else:
        with Workers(executor) as workers:
            yield from _Run(workers, tasks, journal, alike).answers()


class _Counted:
    """The tasks, each once."""

    def __init__(self, tasks: Iterable[Task], journal: Journal | None):
        self._tasks = iter(tasks)
        self._seen: set[str] = set()
        self.known = {} if journal is None else journal.finished

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Task:
        task = next(self._tasks)
        if task.key in self._seen:
            raise ValueError(f"two tasks have the key {task.key}")
        self._seen.add(task.key)
        return task


def _here(tasks: _Counted, journal: Journal | None, alike: Collection[str]) -> Iterator[tuple[Task, Any]]:
    if journal is not None and journal.machine is not None:
        machine.check_same(machine.name(), machine.machine(), journal.machine, alike)
    for task in tasks:
        if task.key in tasks.known:
            yield task, tasks.known[task.key]
            continue
        value = task.function(*task.arguments)
        if journal is not None:
            journal.add(task.key, value, machine.machine())
        yield task, value


class _Run:
    """Tasks on an executor.

    A lost worker may take its whole pool with it: what was under way is then submitted again, to a new pool, and an
    answer of the old one no longer counts. As nobody says which task ended the worker, those that have been under way
    too often then are tried at the end, one by one.
    """

    def __init__(self, workers: Workers, tasks: _Counted, journal: Journal | None, alike: Collection[str]):
        self._workers, self._tasks, self._journal, self._alike = workers, tasks, journal, alike
        if journal is not None and journal.machine is not None:
            workers.machine = journal.machine
        self._again: deque[Task] = deque()
        self._suspects: deque[Task] = deque()
        self._losses: Counter[str] = Counter()
        self._under_way: dict[Future, Task] = {}
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._renewals = 0
        self._width = _Width()
        self._ready: deque[tuple[Task, Any]] = deque()

    def answers(self) -> Iterator[tuple[Task, Any]]:
        try:
            while True:
                self._fill()
                if self._ready:
                    yield self._ready.popleft()
                    continue
                if not self._under_way:
                    return
                future = self._done.get()
                task = self._under_way.pop(future, None)
                if task is not None:  # else of an executor that was given up
                    self._take(task, future)
        finally:
            for future in self._under_way:
                future.cancel()

    def _fill(self) -> None:
        """Submit tasks until the workers have enough to do."""
        most = self._width.value(self._workers.executor)
        while not self._ready and len(self._under_way) < most and (task := self._next()) is not None:
            if task.key in self._tasks.known:
                self._ready.append((task, self._tasks.known[task.key]))
            else:
                self._submit(task)

    def _next(self) -> Task | None:
        if self._again:
            return self._again.popleft()
        if (task := next(self._tasks, None)) is not None:
            return task
        return self._suspects.popleft() if self._suspects and not self._under_way else None

    def _submit(self, task: Task) -> None:
        try:
            future = self._workers.executor.submit(perform, task.function, task.arguments)
        except (BrokenExecutor, OSError, RuntimeError) as error:
            self._again.appendleft(task)
            self._lost(error)
            return
        self._under_way[future] = task
        future.add_done_callback(self._done.put)

    def _take(self, task: Task, future: Future) -> None:
        """What became of a task."""
        try:
            answer: Answer = future.result()
        except (BrokenExecutor, CancelledError) as error:
            self._under_way[future] = task
            self._lost(error)
        except OvlptError:
            raise
        except Exception as error:
            if type(error).__name__ == "KilledWorker":  # of Dask, which has tried it several times
                self._ready.append((task, Died(f"{task.label} ended its worker process")))
                return
            raise OvlptError(f"a worker could not carry out {task.label}: {last_line(error)}") from error
        else:
            self._accept(task, answer)

    def _accept(self, task: Task, answer: Answer) -> None:
        self._workers.machine = self._workers.machine or answer.machine
        machine.check_same(answer.worker, answer.machine, self._workers.machine, self._alike)
        self._renewals = 0
        if answer.missing is not None:
            self._again.appendleft(task.packed(answer.missing))
            return
        if self._journal is not None:
            self._journal.add(task.key, answer.value, answer.machine)
        self._ready.append((task, answer.value))

    def _lost(self, error: Exception) -> None:
        """The executor is gone: all that was under way is to be done again, by another."""
        lost, self._under_way = self._under_way, {}
        for future, task in lost.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                self._accept(task, future.result())
                continue
            self._losses[task.key] += isinstance(error, BrokenExecutor)
            if self._losses[task.key] < _SUSPECT:
                self._again.append(task)
            elif self._losses[task.key] < _HOPELESS or len(lost) > 1:
                self._suspects.append(task)
            else:
                self._ready.append((task, Died(f"{task.label} ended its worker process")))
        self._renewals += 1
        self._workers.renew(error)
        if self._renewals > _RENEWALS:
            self._check_workers()

    def _check_workers(self) -> None:
        """Tell many tasks that end their workers from workers that no task can use."""
        try:
            self._workers.executor.submit(perform, int, ()).result()
        except Exception as error:
            raise OvlptError(f"the workers ended before any task was finished: {last_line(error)}") from error
        self._renewals = 0


class _Width:
    """How many tasks to have under way: two for each worker, so that none waits for the next."""

    def __init__(self) -> None:
        self._asked, self._count = -math.inf, 0

    def value(self, executor: Executor) -> int:
        now = time.monotonic()
        if now - self._asked > 1:  # a cluster may grow, and to ask it takes a message
            self._asked, self._count = now, workers_of(executor)
        return 2 * self._count


def workers_of(executor: Executor) -> int:
    """How many tasks an executor carries out at once, as far as it says so."""
    if (client := getattr(executor, "_client", None)) is not None:  # of Dask
        with suppress(OSError, TimeoutError):
            return max(sum(client.nthreads().values()), 1)
    # the standard library's pools and loky's, mpi4py's
    counts = (getattr(executor, name, None) for name in ("_max_workers", "num_workers"))
    return next((count for count in counts if isinstance(count, int)), _UNKNOWN)
