"""Measurements on workers: one at a time on a machine, and the machine in the result."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ovlpt import cli
from ovlpt.fleet import machine, tasks
from ovlpt.inspect import fleet_bench
from ovlpt.inspect.fleet_bench import bench_fleet
from tests.networks import convolution, model, parameter, quantized
from tests.test_cli import save


@pytest.fixture
def nets(tmp_path):
    x = parameter([1, 4, 8, 8])
    net = model(convolution(quantized(x, 0, 2.55), 4, kernel=1), x)
    return [save(net, tmp_path / f"{name}.xml") for name in "ab"]


def test_the_workers_of_one_machine_measure_in_turn(nets, monkeypatch):
    pytest.importorskip("fcntl", reason="Windows has no such locks")
    real, under_way, most = fleet_bench.bench, [], []

    def watched(**given):
        under_way.append(threading.get_ident())
        most.append(len(under_way))
        time.sleep(0.1)
        found = real(**given)
        under_way.pop()
        return found

    monkeypatch.setattr(fleet_bench, "bench", watched)
    found = bench_fleet(nets, ThreadPoolExecutor(2), iterations=2, memory=False)
    assert [each.model for each in found] == nets
    assert most == [1, 1]
    assert all(each.device.endswith(f" of {socket.gethostname()}") for each in found)
    assert all(len(side.latencies) >= 2 for each in found for side in each.sides)


def test_another_cpu_may_measure_and_a_journal_spares_what_it_has(nets, tmp_path, monkeypatch):
    first = bench_fleet(nets, None, tmp_path / "journal", iterations=2, memory=False)
    here = machine.machine()
    monkeypatch.setattr(tasks, "machine", lambda: {**here, "CPU": "another"})
    monkeypatch.setattr(fleet_bench, "bench_case", None)
    assert bench_fleet(nets, ThreadPoolExecutor(1), tmp_path / "journal", iterations=2, memory=False) == first


def test_the_command_writes_what_workers_measured(nets, tmp_path, monkeypatch):
    monkeypatch.setattr("ovlpt.commands.workers.processes", lambda count: lambda: ThreadPoolExecutor(count))
    assert cli.main(["bench", *nets, "-niter", "2", "--workers", "2", "--json", str(tmp_path / "out.json")]) == 0
    benches = json.loads((tmp_path / "out.json").read_text())["result"]["benches"]
    assert [each["model"] for each in benches] == nets
