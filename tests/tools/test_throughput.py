"""The comparison of one worker with two, and the faults that are done to them: on a small network, in one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.inspect.test_compare import network
from tests.test_cli import save
from tools import faults, throughput


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("throughput")
    return [save(network(quantized), folder / f"{quantized}.xml") for quantized in (True, False)]


def test_one_worker_is_measured_beside_two_and_the_figures_are_compared(pair, monkeypatch, capsys):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    monkeypatch.setattr(throughput, "WANTED", 0.0)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
    ) as cluster:
        given = [*pair, "--images", "12", "--pairs", "1", "--scheduler", cluster.scheduler_address]
        assert throughput.main(given) == 0
        monkeypatch.setattr(throughput, "WANTED", 1e9)
        assert throughput.main(given) == 1
    said = capsys.readouterr().out
    assert said.count("1 worker: ") == said.count("2 workers: ") == 2
    assert said.count("all figures equal those of a run without workers") == 2


def test_what_a_worker_waits_is_told_from_what_it_computes():
    run = throughput.Run(2, images=100, shards=10, seconds=5.0, computing=9.0, used=8.1, driver=0.5)
    assert run.throughput == 20
    assert run.gap == pytest.approx(100)
    assert "90% of a core" in str(run)


def test_figures_that_differ_are_named():
    expected = {"samples": 3, "layers": [{"name": "conv", "sqnr": {"float precision": "inf"}}]}
    found = {"samples": 3, "layers": [{"name": "conv", "sqnr": {"float precision": 41.5}}]}
    assert [*throughput.differing(found, expected)] == ["layers 0 sqnr float precision: 41.5, alone inf"]
    assert not [*throughput.differing(expected, expected)]


def test_faults_are_judged(pair, monkeypatch, capsys):
    monkeypatch.setattr(faults, "processes", lambda count: lambda: ThreadPoolExecutor(count))
    named = ["a_corrupt_shard", "a_journal_in_use", "a_journal_of_another_model"]
    assert faults.main([*pair, "--images", "40", "--only", *named]) == 0
    said = capsys.readouterr().out
    assert [line.split(" (")[0] for line in said.splitlines() if line.startswith("a_")] == [
        f"{name}: as it should be" for name in named
    ]
    monkeypatch.setattr(faults, "once", lambda *_: False)
    monkeypatch.setattr(faults.Pools, "kill_one", lambda _: None)
    assert faults.main([*pair, "--images", "40", "--only", "a_killed_process"]) == 1
    assert "journal DIFFERS" in capsys.readouterr().out
