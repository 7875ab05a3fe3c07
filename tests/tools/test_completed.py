"""Decisions on a small network, and their table. Latencies are not measured here: the test says what they are."""

from __future__ import annotations

import json

import openvino
import pytest

from ovlpt.inspect import complete
from ovlpt.openvino_api import opset1
from tools import completed
from tools.answers import convolution, image, model, named, parameter, real, weights


@pytest.fixture
def zoo(tmp_path):
    kernel = weights((8, 8, 1, 1), low=-2.0, high=2.0)  # integers of at most 64: no CPU saturates
    networks = {"gate": (image(), kernel), "gate_float": (parameter(), real((8, 8, 1, 1)))}
    for name, (data, values) in networks.items():
        graph = model(convolution(named(opset1.sigmoid(data), "sigmoid"), values))
        openvino.save_model(graph, tmp_path / f"{name}.xml", compress_to_fp16=False)
    return tmp_path


def test_decisions_and_their_table(zoo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(complete._Measure, "ratio", lambda *_: (0.5, (0.4, 0.6)))
    monkeypatch.setattr(complete._Measure, "shares", lambda _, answers: {each.name: 0.3 for each in answers})
    taken = {"stock": 4.0, "given": 2.0, "completed": 1.0}
    monkeypatch.setattr(completed, "_block", lambda sides, _, __: {side: [taken[side]] * 5 for side in sides})
    common = ["gate", "--models", str(zoo), "-o", str(tmp_path / "out")]
    assert completed.main(["decide", *common, "--max-loss", "20"]) == 0
    decided = json.loads((tmp_path / "out/gate.json").read_text())
    assert (decided["before"]["in_int8"], decided["after"]["in_int8"]) == (0, 1)
    assert set(decided["sqnr_on_others"]["completed"]) == {"simulation", "int8"}
    assert completed.main(["measure", *common]) == 0
    printed = capsys.readouterr().out
    monkeypatch.setattr(completed, "_block", None)  # nothing is measured, nor decided, twice
    monkeypatch.setattr(completed, "decide", None)
    assert completed.main(["run", *common]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == printed.splitlines()[-3:]
    assert "| gate | 0, 1 of 1 | 0.250 (0.250–0.250) | 0.500 (0.500–0.500) | 4.0, 2.0, 1.0 |" in printed
    assert "geometric mean of completed / stock: 0.250" in printed


def test_a_network_that_nothing_is_kept_of_takes_as_long_as_before(zoo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(complete._Measure, "ratio", lambda *_: (1.1, (1.05, 1.2)))
    monkeypatch.setattr(complete._Measure, "shares", lambda _, answers: {each.name: 0.3 for each in answers})
    monkeypatch.setattr(completed, "_block", lambda sides, _, at: {side: [3.0 + at] * 5 for side in sides})
    command = ["run", "gate", "--models", str(zoo), "-o", str(tmp_path / "out"), "--minutes"]
    assert completed.main([*command, "0"]) == 0
    assert "the time was over" in (tmp_path / "out/gate.json").read_text()
    assert completed.main([*command, "9"]) == 0  # goes on
    assert "gains -10.0%" in (tmp_path / "out/gate.json").read_text()
    assert "| gate | 0, 0 of 1 | 1.000 (1.000–1.000) | 1.000 (1.000–1.000) |" in capsys.readouterr().out
