"""The report on several networks: a folder with an index, and one network before and after a change."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ovlpt import cli, data
from ovlpt.commands import report as command
from ovlpt.inspect.report import fleet, report
from ovlpt.inspect.report.several import Network, comparison_page, index_page, names_of, pages_of, pairs
from tests.conftest import assert_documented
from tests.fleet.test_compare_on_workers import Pools
from tests.inspect.test_report import Balanced, chain, pooled

HOSTILE = "</td><script>alert(1)</script>"


@pytest.fixture(scope="module")
def reports(core):
    return [report(chain(*between), core=core, native_only=True, seconds=0.1) for between in ((), (pooled,))]


@pytest.fixture
def known(monkeypatch, reports):
    """Reports that are made already; a model called "none" cannot be used."""

    def made(model, *_, **__):
        return reports["b" in Path(model).name] if "none" not in str(model) else report(model)

    monkeypatch.setattr(command, "report", made)
    monkeypatch.setattr(fleet, "report", made)


def assert_well_formed(page: str) -> None:
    checked = Balanced()
    checked.feed(page)
    assert checked.open == []
    assert "http" not in page


def test_a_fleet(known, tmp_path, capsys, monkeypatch):
    folder, summary = tmp_path / "reports" / "all", tmp_path / "fleet.json"
    models = ["x/a.xml", "b.xml", "y/A.xml", "none.xml"]
    monkeypatch.chdir(tmp_path)
    for each in map(Path, models[:3]):
        each.parent.mkdir(exist_ok=True)
        each.touch()
    assert cli.main(["report", *models, "-o", str(folder), "--json", str(summary)]) == 2
    assert sorted(each.name for each in folder.iterdir()) == ["A-2.html", "a.html", "b.html", "index.html"]
    index = (folder / "index.html").read_text()
    assert_well_formed(index)
    assert sorted(re.findall(r'<a href="([^"#]+)"', index)) == ["A-2.html", "a.html", "b.html"]
    assert "No such file" in index
    said = capsys.readouterr()
    assert f"written: {folder / 'index.html'}" in said.out
    assert said.err.count("\n") == 1
    content = json.loads(summary.read_text())
    assert_documented(content)
    assert [each["page"] for each in content["result"]["networks"]] == ["a.html", "b.html", "A-2.html", None]


def test_workers_and_a_journal_change_nothing(known, tmp_path, monkeypatch):
    monkeypatch.setattr("ovlpt.commands.workers.processes", lambda count: lambda: ThreadPoolExecutor(count))
    models = [str(tmp_path / name) for name in ("a.xml", "b.xml", "none.xml", "absent.xml")]
    for each in models[:3]:
        Path(each).touch()
    found = {}
    for folder, more in (
        ("alone", []),
        ("workers", ["--workers", "2", "--resume", str(tmp_path / "journal")]),
        ("again", ["--resume", str(tmp_path / "journal")]),
    ):
        call = ["report", *models, "-o", str(tmp_path / folder), "--json", str(tmp_path / "found.json"), *more]
        assert cli.main(call) == 2
        pages = {each.name: each.read_text() for each in (tmp_path / folder).iterdir()}
        found[folder] = pages, json.loads((tmp_path / "found.json").read_text())["result"]
        monkeypatch.setattr(fleet, "report_case", fleet.report_case if folder == "alone" else None)
    assert sorted(found["alone"][0]) == ["a.html", "b.html", "index.html"]
    assert [each["error"] is None for each in found["alone"][1]["networks"]] == [True, True, False, False]
    assert found["workers"] == found["alone"] == found["again"]


def test_a_process_that_is_killed_reports_again(tmp_path):
    model, pools, told = str(data.digits()), Pools(), []
    copy = str(shutil.copy(model, tmp_path / "copy.xml"))
    shutil.copy(Path(model).with_suffix(".bin"), tmp_path / "copy.bin")

    def progress(done: int, _) -> None:
        told.append(done)
        if done == 1:
            pools.kill_one()

    found = sorted(fleet.report_fleet([model, copy], pools, None, progress, device="CPU"))
    assert told == [1, 2]
    assert [(place, network.model, network.error) for place, network, _ in found] == [(0, model, None), (1, copy, None)]
    assert len({network.int8_share for _, network, _ in found}) == 1
    assert all(Path(network.model).name in page for _, network, page in found)


def test_the_workers_of_one_machine_report_in_turn(known, tmp_path, monkeypatch):
    pytest.importorskip("fcntl", reason="Windows has no such locks")
    real, under_way, most = fleet.report, [], []

    def watched(*given, **named):
        under_way.append(1)
        most.append(len(under_way))
        time.sleep(0.1)
        under_way.pop()
        return real(*given, **named)

    monkeypatch.setattr(fleet, "report", watched)
    for name in "ab":
        (tmp_path / f"{name}.xml").touch()
    assert len(list(fleet.report_fleet([str(tmp_path / f"{name}.xml") for name in "ab"], ThreadPoolExecutor(2)))) == 2
    assert most == [1, 1]


def test_the_pages_of_a_fleet_have_names_of_their_own():
    assert pages_of(["index.xml", "a/x.xml", "b/X.onnx", "x-2.xml"]) == [
        "index-2.html",
        "x.html",
        "X-2.html",
        "x-2-2.html",
    ]
    assert Network("m", "a #%.html").link == "a%20%23%25.html"


def test_networks_of_one_name_are_told_apart_by_their_folders():
    named = {
        "a/model.xml": "model.xml",
        "b/x/net.xml": "b/x/net.xml",
        "c/x/net.xml": "c/x/net.xml",
        "y/net.xml": "y/net.xml",
        "net.xml": "net.xml",
        "/w/last.xml": "last.xml",
    }
    assert names_of([*named]) == [*named.values()]
    assert names_of(["m.xml", "m.xml"]) == ["m.xml", "m.xml"]
    page = index_page([Network(f"{folder}/model.xml", error="none") for folder in "ab"])
    assert [name in page for name in ("a/<wbr>model.<wbr>xml", "b/<wbr>model.<wbr>xml")] == [True, True]


def test_before_and_after(known, tmp_path, capsys, monkeypatch):
    opened, out = [], tmp_path / "out.html"
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    assert cli.main(["report", "a.xml", "b.xml", "-o", str(out), "--open", "--json", str(tmp_path / "a.json")]) == 0
    assert opened == [out.as_uri()]
    assert_well_formed(out.read_text())
    assert_documented(json.loads((tmp_path / "a.json").read_text()))
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == ["before", "after", "written"]


def test_layers_are_joined_by_the_operation(reports):
    found = {pair.name: pair for pair in pairs(*reports)}
    assert (found["second"].before.kind, found["second"].after.kind) == ("int8", "float")
    gains = [abs(pair.gain) for pair in pairs(*reports)]
    assert gains == sorted(gains, reverse=True)


def test_names_are_escaped(reports):
    named = dataclasses.replace(
        reports[1], model=HOSTILE, layers=[dataclasses.replace(each, name=HOSTILE) for each in reports[1].layers]
    )
    for page in (
        index_page([Network.of(named, "a.html"), Network(HOSTILE, error=HOSTILE)]),
        comparison_page(named, named),
    ):
        assert "<script>alert" not in page
        assert "alert(1)" in page


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["a.xml", "b.xml", "c.xml"], "3 models need a folder"),
        (["a.xml", "b.xml", "--csv", "a.csv"], "belong to one model"),
        (["a.xml", "b.xml", "-o", "file"], "it is a file; give a folder"),
        (["a.xml", "b.xml", "-o", "none/a.html"], "no such folder"),
        (["a.xml", "b.xml", "-o", "a.html", "--workers", "2"], "--workers, --scheduler and --resume belong to several"),
        (["a.xml", "--resume", "a.journal"], "belong to several models; leave them out"),
        (["a.xml", "b.xml", "-o", "all", "--workers", "2", "--isa", "avx2"], "leave --isa and --virtual out"),
    ],
)
def test_what_several_cannot_have(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert cli.main(["report", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_one_model_says_where_it_wrote(known, tmp_path, capsys):
    assert cli.main(["report", "a.xml", "-o", str(tmp_path / "a.html")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"written: {tmp_path / 'a.html'}"
