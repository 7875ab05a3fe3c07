"""Networks that workers compare with the native pass are told as by one process."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

from ovlpt import data
from tools.parity import __main__ as command
from tools.parity.comparisons import compared, of_pass


def test_workers_compare_the_pass(monkeypatch, capsys):
    monkeypatch.setattr("ovlpt.commands.workers.processes", lambda count: lambda: ThreadPoolExecutor(count))
    assert command.main([str(data.digits()), "--only", "pass", "--workers", "1"]) == 0
    assert "100.00%" in capsys.readouterr().out


def test_another_process_finds_the_task_by_its_name():
    assert compared.__module__ == of_pass.__module__ == "tools.parity.comparisons"
    assert pickle.loads(pickle.dumps(compared)) is compared
