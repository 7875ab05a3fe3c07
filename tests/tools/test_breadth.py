"""The run over many families: its plan, what it flags, that it goes on where it stopped."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import openvino
import pytest

from ovlpt.openvino_api import opset1
from tests.networks import const, convolution, model, parameter, quantized
from tools.breadth import __main__ as command
from tools.breadth.document import row
from tools.breadth.expected import EXPECTED
from tools.breadth.families import FAMILIES
from tools.breadth.one import run, sentence_of
from tools.breadth.plan import DEFAULT, OTHERS, flags, plan

TENTH = next(iter(FAMILIES))


def numbers(int8: int = 5, executed: int = 20, decibels: float = 30.0) -> dict[str, object]:
    return {"int8": int8, "weighted": 6, "executed": executed, "decibels": decibels, "float": []}


def line(
    mine: dict[str, object], stock: dict[str, object] | None = None, name: str = "timm/resnet18"
) -> dict[str, object]:
    """The open batch as given, the fixed one the same in both."""
    same = {"stock": numbers(), "ovlpt": numbers()}
    return {"family": name, "quantizer": DEFAULT, "static": same, "open": {"stock": stock or numbers(), "ovlpt": mine}}


def test_many_families_and_a_tenth_by_every_quantizer():
    both = list(plan(list(FAMILIES), ["f32", "bf16"]))
    planned = [(name, quantizer) for name, quantizer, floats in both if floats == "f32"]
    assert [(*run, "bf16") for run in planned] == both[len(planned) :]
    assert len(FAMILIES) >= 80
    assert len({name.split("/")[0] for name in FAMILIES}) == 4
    assert {name for name, quantizer in planned if quantizer == DEFAULT} == set(FAMILIES)
    for other in OTHERS:
        assert sum(quantizer == other for _, quantizer in planned) == -(-len(FAMILIES) // 10)
    assert len(planned) == len(set(planned))


@pytest.mark.parametrize(
    "mine, found",
    [
        (numbers(), []),
        (numbers(int8=6, executed=19, decibels=60.0), []),
        (numbers(decibels=29.5), []),
        (numbers(int8=4), ["open int8"]),
        ({**numbers(int8=4), "lost": []}, []),  # two products of an attention in one kernel
        ({**numbers(), "lost": ["a"]}, ["open int8"]),
        (numbers(executed=21, decibels=12.0), ["open layers", "open SQNR"]),
        ({"failure": "RuntimeError"}, ["open failure"]),
    ],
)
def test_what_is_flagged(mine, found):
    assert flags(line(mine)) == found


def test_where_stock_fails_nothing_is_compared():
    assert flags(line({"failure": "no"}, {"failure": "no"})) == flags(line(numbers(), {"failure": "no"})) == []
    assert flags({**line(numbers()), "open": {"failure": "cannot be reshaped"}}) == []


def test_where_stock_fails_the_fixed_shape_is_compared_with():
    """Numbers far from those at the fixed shape passed, as nothing was compared."""
    assert flags(line(numbers(decibels=4.0), {"failure": "no"})) == ["open SQNR"]


def test_what_is_far_from_the_fixed_shape_is_flagged_where_stock_is_as_far():
    """Wrong numbers passed, as stock had them, too. One sample of several may lie at a tie."""
    fixed = {**numbers(decibels=60.0), "each": [60.0, 61.0, 59.0, 60.0]}
    far = {**numbers(decibels=2.0), "each": [1.0, 2.0, 3.0, 2.0]}
    tie = {**numbers(decibels=40.0), "each": [60.0, 61.0, 34.0, 60.0]}
    same = {"static": {"stock": fixed, "ovlpt": fixed}}
    assert flags({**line(far, far), **same}) == ["open SQNR"]
    assert flags({**line(tie, tie), **same}) == []


def test_what_has_a_line_is_not_done_again(tmp_path, monkeypatch, capsys):
    asked = []

    def one(folder, name, quantizer, floats):
        asked.append((name, quantizer))
        assert floats == "f32"
        return {**line(numbers(executed=21) if quantizer == "mixed" else numbers(), name=name), "quantizer": quantizer}

    monkeypatch.setattr(command, "apart", one)
    (tmp_path / "results.jsonl").write_text(json.dumps(line(numbers(), name=TENTH)) + "\n")
    assert command.main([str(tmp_path), TENTH, "--floats", "f32"]) == 1
    assert asked == [(TENTH, other) for other in OTHERS]
    assert re.search(r"mixed f32: .*FLAGGED open layers", capsys.readouterr().out)
    asked.clear()
    monkeypatch.setitem(EXPECTED, (TENTH, "mixed"), {"int8": "no reason"})
    assert command.main([str(tmp_path), TENTH, "--floats", "f32"]) == 1
    monkeypatch.setitem(EXPECTED, (TENTH, "mixed"), {"layers": "a reason"})
    assert command.main([str(tmp_path), TENTH, "--floats", "f32"]) == 0
    assert not asked
    assert "expected: a reason" in (said := capsys.readouterr().out)
    assert "5 of 6 without a flag" in said


def test_the_document_has_misses_first(tmp_path):
    lines = [line(numbers()), line(numbers(executed=21), name=TENTH), {**line({}), "failure": "no such operation"}]
    (tmp_path / "results.jsonl").write_text(
        "".join(
            json.dumps({**each, "quantizer": str(at), "cpu": ("some processor", "another", "")[at], "commit": "abc"})
            + "\n"
            for at, each in enumerate(lines)
        )
    )
    assert command.main([str(tmp_path), "--report", "--markdown", str(tmp_path / "table.md")]) == 1
    said = (tmp_path / "table.md").read_text()
    assert "2 families, 2 networks, 1 of 2 runs without a flag" in said
    assert "CPU: another, some processor." in said
    assert said.index(f"| {TENTH} | 1 | f32 | open | 5/6, 5/6 | 21, 20 | 30.0 | 30.0 | layers |  | abc |") < said.index(
        "| 0 | f32 | static |"
    )
    assert "no such operation" in said
    assert "torch/gru" in said.partition("## Not measured")[2]


def test_what_is_measured_apart_is_kept_in_the_document(tmp_path):
    (tmp_path / "results.jsonl").write_text(json.dumps({**line(numbers()), "commit": "abc"}) + "\n")
    table, apart = tmp_path / "table.md", "## Settings of quantizers\n\n| a | table |\n"
    table.write_text("# An earlier document\n\n" + apart)
    for _ in range(2):
        command.main([str(tmp_path), "--report", "--markdown", str(table)])
        said = table.read_text()
        assert said.startswith("# Families")
        assert said.endswith("\n\n" + apart)
        assert said.count(apart) == 1


def test_the_document_says_who_throws_and_what_the_other_computes():
    assert row(line(numbers(), {"failure": "no"}), "open").endswith(
        "| open | 5/6, - | 20, - | 30.0 |  |  | stock throws: no |  |"
    )
    assert row(line({"failure": "no"}), "open").endswith("| -, 5/6 | -, 20 |  | 30.0 | failure | ovlpt throws: no |  |")
    assert row({**line(numbers()), "open": {"failure": "no shape"}}, "open").endswith(
        "| open |  |  |  |  |  | no shape |  |"
    )
    assert command.sentence(line(numbers(), {"failure": "no"})).endswith("open stock throws: no")


def test_a_failure_is_told_without_the_places_that_it_passed():
    error = RuntimeError("Exception from src/core.cpp:117:\nException from src/plugin.cpp:54:\nCheck 'x' failed")
    assert sentence_of(error) == "RuntimeError: Check 'x' failed"


def test_each_type_of_floats_has_a_line_of_its_own(tmp_path, monkeypatch):
    asked = []

    def one(folder, name, quantizer, floats):
        asked.append(floats)
        return {**line(numbers(), name=name), "quantizer": quantizer, "floats": floats}

    monkeypatch.setattr(command, "apart", one)
    monkeypatch.setattr(command, "types", lambda asked: ["f32", "bf16"])
    monkeypatch.setattr(command, "commit", lambda: "abc")
    assert command.main([str(tmp_path), "timm/resnet18"]) == 0
    assert command.main([str(tmp_path), "timm/resnet18"]) == 0
    assert asked == ["f32", "bf16"]
    lines = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert [(line["floats"], line["commit"]) for line in lines] == [("f32", "abc"), ("bf16", "abc")]


def test_the_default_is_run_once_where_it_is_f32():
    first, *more = command.types(None)
    assert first == "f32"
    assert "f32" not in more
    assert command.types("f32") == ["f32"]
    assert command.types("default") == (more or ["f32"])


def test_rounding_in_bf16_is_no_flag_but_what_is_lower_in_every_sample_is():
    stock = {**numbers(), "each": [30.0, 31.0, 32.0, 33.0]}
    chance = {**numbers(decibels=27.0), "each": [27.0, 33.0, 30.0, 36.0]}
    lower = {**numbers(decibels=27.0), "each": [27.0, 28.5, 29.5, 31.0]}
    assert flags({**line(chance, stock), "floats": "bf16"}) == []
    assert flags({**line(lower, stock), "floats": "bf16"}) == ["open SQNR"]
    assert flags(line(chance, stock)) == ["open SQNR"]


def test_what_is_more_is_named_by_type():
    mine = {**numbers(executed=21), "types": {"Convert": 3, "Eltwise": 1}}
    text = command.sentence(line(mine, {**numbers(), "types": {"Convert": 1, "Eltwise": 2}}))
    assert text.endswith("FLAGGED open layers; open: +2 Convert, -1 Eltwise")


def test_a_process_that_ends_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(command.sys, "executable", "false")
    assert command.apart(tmp_path, "torch/gru", DEFAULT, "f32")["failure"].startswith("the process ended with 1")


@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_a_network_that_always_says_the_same_is_not_measured(tmp_path, factor):
    x = parameter([1, 8, 6, 6])
    layer = convolution(quantized(x, -1.28, 1.27), 8)
    openvino.save_model(model(opset1.multiply(layer, const(factor)), x), tmp_path / "timm_dead-default.xml", False)
    samples = [[np.random.default_rng(seed).uniform(-1, 1, (1, 8, 6, 6)).astype(np.float32)] for seed in (0, 1)]
    (tmp_path / "timm_dead-default.pickle").write_bytes(pickle.dumps(samples))
    found = run(tmp_path, "timm/dead", DEFAULT, "f32")
    assert ("same for all samples" in found.get("failure", "")) == (factor == 0)
    assert factor == 0 or flags(found) == []


def test_an_unknown_family_is_named(tmp_path, capsys):
    assert command.main([str(tmp_path), "--floats", "f32", "timm/none"]) == 2
    assert "no family is called timm/none" in capsys.readouterr().err
