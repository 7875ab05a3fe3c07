"""The gate of a fleet: which cases a file means, what becomes of them, and what continuous integration reads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pytest

from ovlpt import cli
from ovlpt.inspect import fleet_check
from ovlpt.inspect.fleet_check import check_fleet
from ovlpt.inspect.fleet_file import load_fleet
from ovlpt.trace import InputError
from tests.conftest import assert_documented
from tests.networks import convolution, model, parameter, quantized
from tests.test_cli import save

FLEET = """
[models]
good = "good.xml"
many = "more*.xml"

[devices]
here = {}
gpu = { device = "GPU", virtual = "xelp" }

[expectations]
int8 = { expect = ["int8:Convolution"], numbers = false }
float = { expect = ["f32:Convolution"], numbers = false }

[[without]]
devices = ["gpu"]
expectations = ["float"]

[[without]]
models = ["more1", "more2"]
devices = ["gpu"]
"""


@pytest.fixture
def folder(tmp_path):
    x = parameter([1, 4, 8, 8])
    net = model(convolution(quantized(x, 0, 2.55), 4, kernel=1), x)
    for name in ("good", "more1"):
        save(net, tmp_path / f"{name}.xml")
    (tmp_path / "more2.xml").write_text("no model")
    (tmp_path / "fleet.toml").write_text(FLEET)
    return tmp_path


def test_the_cases_are_all_combinations_but_those_left_out(folder):
    cases = {(case.model, case.device, case.expectation) for case in load_fleet(folder / "fleet.toml")}
    here = {(name, "here", wanted) for name in ("good", "more1", "more2") for wanted in ("int8", "float")}
    assert cases == here | {("good", "gpu", "int8")}


def test_without_sections_a_model_is_checked_against_stock_here(folder):
    (folder / "small.toml").write_text('[models]\ngood = { path = "good.xml" }')
    (case,) = load_fleet(folder / "small.toml")
    assert (case.device, case.configuration, case.options) == ("CPU", "own", {"against": "stock"})


def test_the_command_says_what_failed_to_people_programs_and_ci(folder, capsys):
    more = [
        "--json",
        str(folder / "out.json"),
        "--junit",
        str(folder / "junit.xml"),
        "--resume",
        str(folder / "journal"),
    ]
    text = (
        (folder / "fleet.toml").read_text().replace("[[without]]", '[[without]]\ndevices = ["gpu"]\n\n[[without]]', 1)
    )
    (folder / "fleet.toml").write_text(text)
    assert cli.main(["check", str(folder / "fleet.toml"), *more]) == 1
    printed = capsys.readouterr().out
    assert "6 cases, 2 passed, 2 failed, 2 error" in printed
    content = json.loads((folder / "out.json").read_text())
    assert_documented(content)
    cases = content["result"]["cases"]
    status = {(case["model"], case["expectation"]): case["status"] for case in cases}
    assert status == {
        ("good", "int8"): "passed", ("good", "float"): "failed", ("more1", "int8"): "passed",
        ("more1", "float"): "failed", ("more2", "int8"): "error", ("more2", "float"): "error",
    }  # fmt: skip
    assert "is to run in f32, and runs in" in next(case["text"] for case in cases if case["status"] == "failed")
    (suite,) = ElementTree.parse(folder / "junit.xml").getroot()
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors")} == {
        "name": "here", "tests": "6", "failures": "2", "errors": "2",
    }  # fmt: skip
    assert [len(case) for case in suite] == [0, 1, 0, 1, 1, 1]
    assert "cannot read" in suite[4][0].get("message")


def test_an_executor_changes_nothing_and_a_journal_spares_what_it_has(folder, monkeypatch):
    calls = []

    def counted(options, parcels):
        calls.append(parcels)
        return {"status": "passed", "text": "", "seconds": 0.0, "check": None}

    monkeypatch.setattr(fleet_check, "check_case", counted)
    alone = check_fleet(folder / "fleet.toml")
    assert check_fleet(folder / "fleet.toml", ThreadPoolExecutor(2), folder / "journal") == alone
    assert len(calls) == 2 * len(alone.cases)
    assert check_fleet(folder / "fleet.toml", ThreadPoolExecutor(2), folder / "journal") == alone
    assert len(calls) == 2 * len(alone.cases)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("models = 3", "names no models"),
        ("[devices]\na = {}", "names no models"),
        ("[model]", r'has no section "model" \(did you mean "models"'),
        ('[models]\na = { inputs = "x" }', 'has no path for the model "a"'),
        ('[models]\na = "no*.xml"', "and no file matches"),
        ('[models]\na = "good.xml"\n[devices]\nb = { dvice = "CPU" }', 'has "dvice" for "b"'),
        ('[models]\na = "good.xml"\n[devices]\nb = 3', 'has for "b" in'),
        ('[models]\na = "good.xml"\n[expectations]\nb = { expect = "int8" }', "it must be a list of texts"),
        ('[models]\na = "good.xml"\n[[without]]\nmodels = ["b"]', 'leaves out "b" of models'),
        ('[models]\na = "good.xml"\n[[without]]\nmodel = ["a"]', "write .*without.* and lists of names"),
        ('[models]\na = "good.xml"\n[without]\nmodels = ["a"]', "write .*without.* and lists of names"),
        ('[models]\na = "good.xml"\n[[without]]\nmodels = ["a"]', "leaves no case to check"),
        ('[models]\na = "absent.xml"', "cannot read"),
        ('[models]\na = "."', "give one of them"),
        ('[models]\na = "x\\u0000.xml"', "cannot read"),
        ('[models]\nmore1 = "good.xml"\na = "m*.xml"', 'names two models "more1"'),
        ('[models]\na = "good.xml"\n[[without]]\nmodels = [["a"]]', "write .*without.* and lists of names"),
        ("[models", "is not a TOML file"),
    ],
)
def test_an_unusable_file_is_one_sentence(folder, text, sentence):
    (folder / "fleet.toml").write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        check_fleet(folder / "fleet.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fleet.toml", "--no-numbers"], "--no-numbers is not used here"),
        (["fleet.toml", "-d", "GPU"], "-d GPU is not used here"),
        (["good.xml", "--workers", "2"], "--workers is not used here: that is for a fleet"),
        (["fleet.toml", "--junit", "nowhere/junit.xml"], "there is no such folder"),
    ],
)
def test_options_of_the_other_kind_are_refused(folder, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(folder)
    assert cli.main(["check", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_hostile_names_are_text_in_xml():
    case = fleet_check.CaseResult("a<b>\x1b", 'd"&', "own", "stock", "failed", "x\x00y", 1.0, None)
    root = ElementTree.fromstring(fleet_check.FleetCheck("f", (case,)).to_junit().encode())
    assert root[0].get("name") == 'd"&'
    assert root[0][0].get("classname").startswith("a<b>")
