"""A check in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from tools.fuzz import answers, execution, gpu, native, numbers
from tools.fuzz.graphs import Graph
from tools.fuzz.numbers import Failure

CHECKS = {
    "numbers": numbers.failures, "native": native.failures, "execution": execution.failures, "gpu": gpu.failures,
    "answers": answers.failures,
}  # fmt: skip


class Sheltered:
    """A graph may end the process; that is a finding, too."""

    def __init__(self, check: str):
        self.check, self.pool = check, self._new_pool()

    @staticmethod
    def _new_pool() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, get_context("spawn"))

    def _renew(self) -> None:
        self.pool.shutdown()  # else its thread is woken when the interpreter ends, through a pipe that is closed
        self.pool = self._new_pool()

    def __call__(self, graph: Graph, only: str | None = None) -> list[Failure]:
        try:
            return self.pool.submit(checked, self.check, graph, only).result()
        except BrokenProcessPool:
            self._renew()
        if self.check == "numbers" and self._ends(numbers.measure, graph):  # the simulation ends some processes, too
            return [Failure(numbers.STOCK, "the simulation ends the process", hides=numbers.EVERY)]
        return [Failure(self._crashing(graph), "the process ends")]

    def _crashing(self, graph: Graph) -> str:
        """The way that ends a process alone, the plugin without any LPT before others, and stock and what the native library
        itself makes before `native_only`. The layer that writes to wrong memory need not be the one that crashes, so each
        way has a process to itself, and several runs.
        """
        if self.check != "numbers":
            return numbers.STOCK if self._ends(checked, self.check, graph, numbers.STOCK) else self.check
        ours = (way for way in (*numbers.WAYS, numbers.ONE_PIXEL) if way != numbers.NATIVE_ONLY)
        ways = (numbers.NO_LPT, *ours, numbers.STOCK, numbers.NATIVE_LIBRARY, numbers.NATIVE_ONLY)
        way = next((way for way in ways if self._ends(numbers.execute, graph, way)), self.check)
        return numbers.STOCK if way in (numbers.NO_LPT, numbers.NATIVE_LIBRARY) else way

    def _ends(self, function: Callable[..., object], *arguments: object) -> bool:
        """Whether a call ends a process of its own."""
        try:
            self.pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            return True
        except RuntimeError:  # it fails otherwise
            return False
        finally:
            self._renew()
        return False


def checked(check: str, graph: Graph, only: str | None = None) -> list[Failure]:
    """What is wrong with a graph, found in this process."""
    return list(CHECKS[check](graph, only))
