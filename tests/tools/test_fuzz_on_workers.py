"""Random graphs judged by workers are judged as by one process, and one that ends its worker is found."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from tools.fuzz import __main__ as command
from tools.fuzz import shard
from tools.fuzz.numbers import STOCK, Failure

WRONG = {
    3: [Failure("transform", "numbers", "y0")],
    7: [Failure(STOCK, "throws"), Failure("compile", "throws").as_stock()],
    11: [Failure("drop-in", "numbers", "y1").as_stock()],
}


def judged(check, graph, only=None) -> list[Failure]:
    return WRONG.get(graph.seed, [])


class Mortal(ThreadPoolExecutor):
    """A pool that is gone with the graphs 5 to 9."""

    def __init__(self):
        super().__init__(2)

    def submit(self, function, /, task, arguments):
        if arguments[1] != 5:
            return super().submit(function, task, arguments)
        future = Future()
        future.set_exception(BrokenExecutor("a worker was killed"))
        return future


@pytest.mark.parametrize("executor", [None, lambda: ThreadPoolExecutor(2), Mortal], ids=["here", "threads", "mortal"])
def test_what_fails_is_told_whoever_judges(executor, monkeypatch, capsys):
    @contextmanager
    def workers(*_):
        yield executor, None

    class Sheltered:
        def __init__(self, check):
            self.check = check

        def __call__(self, graph, only=None):
            return judged(self.check, graph, only)

    monkeypatch.setattr(command, "workers", workers)
    monkeypatch.setattr(shard, "checked", judged)
    monkeypatch.setattr(shard, "_sheltered", Sheltered)
    assert command.main(["numbers", "--graphs", "12", "--no-shrink"]) == 1
    printed = capsys.readouterr().out
    assert "12 graphs, 1 fail" in printed
    assert "seed 3\ntransform: numbers y0" in printed
    assert "2 meet a fault of OpenVINO's own" in printed
    assert "compared with the simulation are transform 12, compile 11, drop-in 11" in printed
    assert "wrong, as in the plugin without any LPT: seeds 11\n" in printed
    assert "1 stock plugin: throws, so that compile is not compared" in printed


def test_what_ends_a_worker_is_not_judged_again(monkeypatch, tmp_path, capsys):
    """By the run that goes on with the journal."""
    counted = []

    @contextmanager
    def workers(*_):
        yield Mortal, None

    def judge(settings, first, last, sheltered=True):
        counted.append(first)
        failures = [asdict(Failure(STOCK, "the simulation ends the process"))] if first == 5 else []
        return [{"seed": seed, "failures": failures, "text": "", "quantized": True} for seed in range(first, last)]

    monkeypatch.setattr(command, "workers", workers)
    monkeypatch.setattr(command, "judge", judge)
    monkeypatch.setattr(shard, "judge", judge)
    for _ in range(2):
        assert command.main(["numbers", "--graphs", "12", "--resume", str(tmp_path / "journal")]) == 0
        assert "5 meet a fault of OpenVINO's own" in capsys.readouterr().out
    assert counted.count(5) == 1  # others were under way when the pool ended, and are judged again by the next one
