"""A check in a process of its own."""

from __future__ import annotations

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
        return [Failure(self._crashing(graph), "the process ends")]

    def _crashing(self, graph: Graph) -> str:
        """The way that ends a process alone, the stock plugin before others. The layer that writes to wrong memory need
        not be the one that crashes, so each way has a process to itself, and several runs.
        """
        tries: list[tuple] = [(checked, self.check, graph, numbers.STOCK)]
        if self.check == "numbers":  # the simulation ends some processes, too
            ways = (numbers.STOCK, *numbers.WAYS, numbers.ONE_PIXEL)
            tries = [(numbers.truth, graph), *((numbers.execute, graph, way) for way in ways)]
        for call in tries:
            try:
                self.pool.submit(*call).result()
            except BrokenProcessPool:
                return numbers.STOCK if call[0] is numbers.truth else call[-1]
            except RuntimeError:  # the simulation fails
                continue
            finally:
                self._renew()
        return self.check


def checked(check: str, graph: Graph, only: str | None = None) -> list[Failure]:
    """What is wrong with a graph, found in this process."""
    return list(CHECKS[check](graph, only))
