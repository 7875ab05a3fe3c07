"""A few graphs and what is wrong with them: the task of one worker."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

from ovlpt.fleet.tasks import Task
from tools.fuzz import native, numbers
from tools.fuzz.exported import EXPORTED
from tools.fuzz.forms import FORMS
from tools.fuzz.graphs import Graph, random_graph
from tools.fuzz.numbers import Failure
from tools.fuzz.operations import ADDED, KINDS
from tools.fuzz.rarer import RARER
from tools.fuzz.sheltered import Sheltered, checked
from tools.fuzz.shrink import shrink

GRAPHS = 5  # of a task


@dataclass(frozen=True)
class Settings:
    """What is checked, on which graphs; ``added``, ``forms``, ``exported``, ``rarer``: with those kinds, too; ``shrinks``:
    failing ones are made small.
    """

    check: str
    added: bool
    shrinks: bool
    forms: bool = False
    exported: bool = False
    rarer: bool = False


@dataclass(frozen=True)
class Judged:
    """A graph with its failures; ``text``: the graph, small, where one is not OpenVINO's own."""

    seed: int
    failures: tuple[Failure, ...]
    text: str
    quantized: bool = True

    @property
    def stock(self) -> bool:
        """Whether it meets a fault of OpenVINO's own."""
        return any(failure.way == numbers.STOCK for failure in self.failures)

    @property
    def ours(self) -> list[Failure]:
        return [failure for failure in self.failures if failure.way != numbers.STOCK]

    @classmethod
    def from_plain(cls, plain: dict) -> Judged:
        return cls(
            plain["seed"], tuple(Failure(**each) for each in plain["failures"]), plain["text"], plain["quantized"]
        )


def tasks(settings: Settings, seed: int, graphs: int, sheltered: bool) -> Iterator[Task]:
    """All graphs from ``seed`` on, some in each task. ``sheltered``: see `judge`."""
    for first in range(seed, seed + graphs, GRAPHS):
        last = min(first + GRAPHS, seed + graphs)
        yield Task(f"{first}-{last}", f"seeds {first} to {last - 1}", judge, (settings, first, last, sheltered))


def judge(settings: Settings, first: int, last: int, sheltered: bool = True) -> list[dict[str, object]]:
    """`Judged` of each seed from ``first`` to before ``last``, as plain values.

    ``sheltered``: in a process of its own, which a graph may end. A worker is one already.
    """
    check = _sheltered(settings.check) if sheltered else functools.partial(checked, settings.check)
    return [asdict(_judged(settings, seed, check)) for seed in range(first, last)]


def _judged(settings: Settings, seed: int, check: Callable[..., list[Failure]]) -> Judged:
    kinds = native.KINDS if settings.check == "native" else KINDS
    kinds = kinds | (ADDED if settings.added else {}) | (FORMS if settings.forms else {})
    kinds = kinds | (EXPORTED if settings.exported else {}) | (RARER if settings.rarer else {})
    graph = random_graph(seed, kinds)
    found = Judged(seed, tuple(check(graph)), "", graph.is_quantized)
    if not found.ours:
        return found
    small = smallest(check, graph, found.ours[0]) if settings.shrinks else graph
    return replace(found, text=str(small))


@functools.cache
def _sheltered(check: str) -> Sheltered:
    """One for all tasks: its process has OpenVINO loaded."""
    return Sheltered(check)


def smallest(check: Callable[..., list[Failure]], graph: Graph, failure: Failure) -> Graph:
    """The smallest graph found that fails in the same way."""

    def fails(candidate: Graph) -> bool:
        return any((found.way, found.cause) == (failure.way, failure.cause) for found in check(candidate, failure.way))

    return shrink(graph, fails)
