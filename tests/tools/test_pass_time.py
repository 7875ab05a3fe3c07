"""Times of the pass and of loading: what is measured, and what the bounds say of it."""

from __future__ import annotations

import json

import openvino
import pytest

from ovlpt.openvino_api import opset1
from tests.networks import model, parameter, residual
from tools import load_time, pass_time
from tools.load_time import LoadTime
from tools.pass_time import PassTime, markdown


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "residual.xml"
    openvino.save_model(residual(), path, compress_to_fp16=False)
    return path


@pytest.mark.parametrize(("bound", "status"), [("1e6", 0), ("1e-6", 1)])
def test_a_missed_bound_is_an_exit_status(network, tmp_path, monkeypatch, bound, status):
    monkeypatch.setattr(pass_time, "measure", lambda path, pairs: PassTime(path.stem, 2.0, 5.0, 2.5, 3.0))
    figures = tmp_path / "figures.json"
    assert pass_time.main([str(network.parent), "--max-ratio", bound, "--json", str(figures)]) == status
    assert pass_time.main([str(network), "--max-mean", bound]) == status
    monkeypatch.setattr(
        load_time,
        "measure",
        lambda path, rounds, wanted: LoadTime(path.stem, {"stock": 2.0}, dict.fromkeys(wanted, 0.5)),
    )
    assert load_time.main([str(network), "--max-baked", bound]) == status
    assert load_time.main([str(network), "--only", "ovlpt", "--max-ovlpt", bound]) == status
    assert json.loads(figures.read_text())["largest"] == 2.5


def test_both_passes_run(network):
    time = pass_time.measure(network, 1)
    assert time.native > 0
    assert time.ratio == pytest.approx(time.ovlpt / time.native)


def test_each_way_is_timed_in_a_process_of_its_own(network):
    time = load_time.measure(network, 1, ("baked", "ovlpt again"))
    assert list(time.milliseconds) == ["stock", "baked", "stock again", "ovlpt again"]
    assert min(time.milliseconds.values()) > 0
    assert time.ratios["baked"] == pytest.approx(time.milliseconds["baked"] / time.milliseconds["stock"])


def test_the_table_of_loading_has_the_largest_first_ratio_first():
    times = [LoadTime(name, {"stock": 10, "ovlpt": at}, {"ovlpt": at / 10}) for name, at in (("a", 10), ("b", 40))]
    rows = load_time.markdown(times).splitlines()
    assert rows[0] == "| network | stock ms | ovlpt ms | ovlpt / stock |"
    assert rows[2:] == ["| b | 10 | 40 | 4.00 |", "| a | 10 | 10 | 1.00 |", "| geometric mean |  |  | 2.00 |"]


def test_a_model_without_quantization_is_named(tmp_path):
    x = parameter([1, 4])
    path = tmp_path / "float.xml"
    openvino.save_model(model(opset1.relu(x), x), path)
    with pytest.raises(ValueError, match="quantized"):
        pass_time.measure(path, 1)


def test_the_table_has_the_largest_ratio_first():
    times = [PassTime("a", 10, 10, 1.0, 1.0), PassTime("b", 10, 40, 4.0, 5.0)]
    rows = markdown(times).splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["b", "a", "geometric mean"]
    assert rows[-1].endswith("| 2.00 |")
