"""The comparison with the stock plugin: SQNR and goals against numbers worked out by hand, and what a run keeps."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ovlpt.openvino_api import opset1
from tests.graphs import CORE
from tests.networks import const, model, one_convolution, parameter
from tools.benchmark import __main__ as command
from tools.benchmark.figures import Figures, remarks
from tools.benchmark.goals import Row, goals, is_below, remark
from tools.benchmark.measure import EXACT, OVLPT, SIMULATION, STOCK, Numbers, measure_numbers, samples
from tools.benchmark.speed import (
    Fixed,
    Latency,
    Share,
    limit,
    measure_batch,
    measure_latency,
    measure_share,
    measure_throughput,
    set_batch,
)
from tools.benchmark.sqnr import Estimate, Movement, estimate, paired, sqnr
from tools.zoo.alive import movement
from tools.zoo.overflow_fix import HALF, WHOLE
from tools.zoo.signals import VOCABULARY, draw
from tools.zoo.sketch import build
from tools.zoo.sketches import SKETCHES

LATENCY = Latency(1.0, 0.99, 1.01, (1.0,) * 6, 60, {STOCK: 2.0, OVLPT: 2.0})
SHARE = Share(rate=1e11, limit=4e11, time=0.5)
NUMBERS = Numbers(
    weighted={STOCK: 4, OVLPT: 4},
    int8={STOCK: 3, OVLPT: 4},
    borders={STOCK: {"Reorder": 2, "Subgraph": 1}, OVLPT: {"Reorder": 1}},
    at_risk={STOCK: 0, OVLPT: 0},
    sqnr={
        STOCK: (30.0, 31.0, 32.0),
        OVLPT: (30.5, 31.5, 32.5),
        EXACT: (31.0, 32.0, 33.0),
        SIMULATION: (31.0, 32.0, 33.0),
    },
    movement=0.5,
)


def test_noise_of_a_tenth_is_20_db_and_outputs_count_alike():
    ones = np.ones((2, 8), np.float32)
    assert sqnr([ones], [0.9 * ones]) == pytest.approx(20, abs=1e-5)
    assert sqnr([ones, 1000 * ones], [0.9 * ones, 1000 * 0.99 * ones]) == pytest.approx(30, abs=1e-4)


@pytest.mark.parametrize(
    ("reference", "value", "decibels"),
    [(1, 1, 144.5), (0, 0, 144.5), (1, 1 + 1e-9, 144.5), (0, 1, -144.5), (1, np.nan, -144.5), (1, np.inf, -144.5)],
)
def test_no_input_has_an_infinite_figure(reference, value, decibels):
    assert sqnr([np.full(4, reference, np.float64)], [np.full(4, value, np.float64)]) == pytest.approx(
        decibels, abs=0.01
    )


def test_differences_are_taken_input_by_input():
    assert estimate([1.0, 2.0, 3.0]) == pytest.approx((2.0, 1 / np.sqrt(3)))
    assert paired([11.0, 2.0, 33.0], [10.0, 1.0, 32.0]) == Estimate(1.0, 0.0)


def test_movement_of_outputs_one_by_one_is_that_of_all():
    outputs = [np.random.default_rng(seed).standard_normal((5, 3, 4)) + seed for seed in range(3)]
    moving = Movement()
    for each in zip(*outputs, strict=True):
        moving.add(each)
    assert moving.stillest == pytest.approx(movement(outputs))


def test_a_difference_counts_beyond_half_a_decibel_and_two_standard_errors():
    assert not is_below(Estimate(-0.69, 0.1))
    assert is_below(Estimate(-0.71, 0.1))


def _rows(*ratios: float) -> list[Row]:
    obstacles = ["none" if ratio >= 0.98 else "something" for ratio in ratios]
    latencies = [replace(LATENCY, ratio=ratio, low=ratio - 0.01) for ratio in ratios]
    return [Row(str(ratio), *each) for ratio, *each in zip(ratios, obstacles, latencies, strict=True)]


@pytest.mark.parametrize(
    ("ratios", "met"),
    [
        ((0.5, 0.9, 0.9, 0.9, 0.9, 0.98, 1.01), [True, True, True, True]),
        ((0.5, 0.9, 0.9, 0.9, 0.91, 0.98, 1.01), [False, True, True, True]),
        ((0.9, 0.9, 0.9, 0.9, 0.9, 0.98, 1.01, 1.0, 1.0, 1.0), [True, False, True, True]),
        ((0.5, 0.9, 0.9, 0.9, 0.9, 0.98, 1.05), [True, True, False, False]),
    ],
)
def test_the_goals_of_latencies(ratios, met):
    assert [goal.met for goal in goals(_rows(*ratios))] == met


def test_what_speaks_of_all_networks_waits_for_all():
    rows = _rows(0.5, 1.2)
    assert [goal.met for goal in goals(rows, whole=False)] == [False]
    assert "1.190 (1.2)" in goals(rows, whole=False)[0].text
    assert [goal.met for goal in goals([*rows, Row("later", "none")])] == [False]
    assert goals([Row("later", "none")]) == []


def test_the_goal_of_numbers_names_the_networks_that_miss_it():
    worse = replace(NUMBERS, sqnr={**NUMBERS.sqnr, OVLPT: (29.0, 30.0, 31.0)})
    goal, exact = goals([Row("good", "none", None, NUMBERS), Row("bad", "none", None, worse)])
    assert not goal.met
    assert goal.text.endswith("1 of 2, not bad")
    assert exact.met
    assert [goal.met for goal in goals([Row("good", "none", None, NUMBERS)])] == [True, True]


def test_a_failing_figure_is_read_with_stock_s_and_with_exact_arithmetic():
    worse = replace(NUMBERS, sqnr={**NUMBERS.sqnr, OVLPT: (29.0, 30.0, 31.0)})
    assert remark(NUMBERS) == ""
    assert remark(worse) == "stock's as well; in f32 arithmetic it is not"
    wrong = replace(worse, sqnr={**worse.sqnr, STOCK: worse.sqnr[SIMULATION], EXACT: worse.sqnr[OVLPT]})
    assert remark(wrong) == "stock's is not; in f32 arithmetic it is too"
    risky = replace(worse, at_risk={STOCK: 1, OVLPT: 3})
    assert remark(risky).endswith("; int8 layers that can overflow 16 bits here: stock 1, ovlpt 3")


def _answer(function):
    if function is measure_batch:
        raise Fixed("the graph has its batch built in")
    return {measure_numbers: NUMBERS, measure_share: SHARE}.get(function, LATENCY), ""


def _given(tmp_path, *names):
    for name in names:
        (tmp_path / f"{name}.xml").touch()
    return [*names, "--models", str(tmp_path), "--json", str(tmp_path / "figures.json")]


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    asked = []

    def call(function, path, *_):
        asked.append((function.__name__, path.stem))
        return _answer(function)

    monkeypatch.setattr(command.subprocess_call, "call", call)
    arguments = _given(tmp_path, "leaky", "unet")
    assert command.main([*arguments, "--only", "numbers"]) == 0
    assert command.main([*arguments, "--markdown"]) == 0
    assert command.main([*arguments, "--markdown"]) == 0
    parts = ("numbers", "latency", "throughput", "batch", "share")
    assert asked == [(f"measure_{part}", name) for part in parts for name in ("leaky", "unet")]
    printed = capsys.readouterr().out.splitlines()
    row = next(line for line in printed if line.startswith("| unet | transposed"))
    assert row.endswith(
        "| 3 of 4 / 4 of 4 | 3 / 1 | 1.000 (0.990–1.010) | 1.000 (0.990–1.010) | 25% in 50% of the time "
        "| 32.0 | -1.00 ± 0.00 | -0.50 ± 0.00 | +0.00 ± 0.00 |"
    )
    assert "geometric mean of throughput over 2 networks: 1.000" in printed
    assert not any("geometric mean of batch" in line for line in printed)
    assert "the limit: 400 (lowest 400) 10^9 multiply-accumulates a second" in printed


def test_minutes_end_before_a_measurement_that_would_be_too_long(tmp_path, monkeypatch, capsys):
    """Each takes 20 s by this clock: of a minute and a half four fit, the next run does the others."""
    now, asked = [0.0], []

    def call(function, path, *_):
        asked.append(path.stem)
        now[0] += 20
        return _answer(function)

    monkeypatch.setattr(command.subprocess_call, "call", call)
    monkeypatch.setattr(command.time, "monotonic", lambda: now[0])
    arguments = [*_given(tmp_path, "bert", "leaky", "unet", "vit", "yolo", "swin"), "--only", "latency", "--minutes"]
    assert command.main([*arguments, "1.5"]) == command.OVER
    assert capsys.readouterr().err.endswith("2 measurements are left; the same command goes on with them\n")
    assert asked == ["bert", "leaky", "unet", "vit"]
    assert command.main([*arguments, "1.5"]) == 0
    assert asked[4:] == ["yolo", "swin"]
    assert command.main([*arguments, "0"]) == 2


def test_workers_measure_one_latency_at_a_time_after_all_numbers(tmp_path, monkeypatch, capsys):
    pytest.importorskip("fcntl", reason="Windows has no such locks")
    under_way, asked = [], []

    def call(function, path, *_):
        asked.append(function.__name__)
        if function is measure_latency:
            under_way.append(path)
            time.sleep(0.1)
            assert under_way == [path]
            under_way.pop()
        return _answer(function)

    monkeypatch.setattr(command.subprocess_call, "call", call)
    monkeypatch.setattr("ovlpt.commands.workers.processes", lambda count: lambda: ThreadPoolExecutor(count))
    for name in ("leaky", "unet", "vit"):
        (tmp_path / f"{name}.xml").touch()
    given = ["leaky", "unet", "vit", "--models", str(tmp_path), "--markdown", "--only", "numbers", "latency"]
    assert command.main(given) == 0
    alone = capsys.readouterr().out
    assert command.main([*given, "--workers", "3"]) == 0
    assert capsys.readouterr().out == alone
    assert asked == [*["measure_numbers"] * 3, *["measure_latency"] * 3] * 2


def test_the_table_says_how_the_networks_were_quantized():
    half = replace(NUMBERS, weights=HALF)
    rows = [Row("a", "none", LATENCY, half), Row("b", "none", LATENCY, half), Row("c", "none", LATENCY, NUMBERS)]
    setting, *said = remarks(Figures(None, "bf16"), rows)
    assert setting.endswith("precision bf16")
    assert said == [
        f"numbers of a, b: weights {HALF}",
        f"numbers of c: weights {WHOLE}",
        f"latency of all networks: weights {WHOLE}",
        "geometric mean of latency over 3 networks: 1.000",
    ]


def test_figures_of_another_machine_are_not_mixed_in(tmp_path):
    file = tmp_path / "figures.json"
    file.write_text(json.dumps({"openvino": "2030.0", "device": "abacus", "networks": {}}))
    with pytest.raises(SystemExit, match="abacus"):
        command.main(["leaky", "--models", str(tmp_path), "--json", str(file)])
    kept = Figures(tmp_path / "kept.json")
    kept.add("leaky", "batch", None)
    assert Figures(kept.file).has("leaky", "batch")
    with pytest.raises(SystemExit, match="'precision': 'f32'"):
        Figures(kept.file, "bf16")


@pytest.mark.parametrize(
    ("name", "sentence"), [("alexnet", "not in the list: alexnet; there are resnet50, "), ("leaky", "no file ")]
)
def test_what_cannot_be_measured_is_said_in_one_sentence(tmp_path, capsys, name, sentence):
    assert command.main([name, "--models", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(sentence)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    build("depthwise", SKETCHES["depthwise"], folder, overflow_fix=True)
    return folder / "depthwise.xml"


def test_numbers_of_a_network(network):
    found = measure_numbers(network, 3)
    assert found.weighted == {STOCK: 3, OVLPT: 3}
    assert found.int8[OVLPT] >= found.int8[STOCK] > 0
    assert {len(values) for values in found.sqnr.values()} == {3}
    assert min(map(min, found.sqnr.values())) > 10
    assert found.sqnr[EXACT] == pytest.approx(found.sqnr[SIMULATION], abs=0.5)
    assert found.movement > 0.1
    assert found.weights == HALF
    assert found.at_risk == {STOCK: 0, OVLPT: 0}
    assert sum(found.borders[STOCK].values()) > 0


@pytest.mark.parametrize("measure", [measure_latency, measure_throughput, measure_batch])
def test_times_of_a_network(network, measure):
    found = measure(network, 0.01)
    assert len(found.blocks) == 6
    assert 0 < found.low <= found.ratio <= found.high
    assert found.weights == HALF


def test_the_share_of_the_limit(network, monkeypatch):
    monkeypatch.setattr("tools.benchmark.speed.SIDES", (64,))
    found = measure_share(network, 0.01)
    assert found.rate > 0
    assert found.limit > 0
    assert 0 < found.time < 1
    assert found.weights == HALF


def test_the_limit_is_of_an_int8_product(core):
    assert limit(core, 0.01, sides=(32, 64)) > limit(core, 0.0, sides=(1,)) > 0


def test_more_samples():
    net = one_convolution()
    assert set_batch(net, 8) == {"x": 0}
    assert [list(port.shape) for port in (*net.inputs, *net.outputs)] == [[8, 16, 8, 8], [8, 32, 8, 8]]
    x = parameter([1, 4])
    with pytest.raises(Fixed, match="batch built in"):
        set_batch(model(opset1.reshape(x, const([2, 2], "i64"), False), x), 8)
    x = parameter([1, 4])
    with pytest.raises(Fixed, match="does not grow"):
        set_batch(model(opset1.reduce_mean(x, const([0], "i64"), True), x), 8)
    x = parameter([2, 4])
    with pytest.raises(Fixed, match="no axis of one sample"):
        set_batch(model(opset1.relu(x), x), 8)


def test_inputs_follow_names_and_shapes(network):
    shapes = {"image": (1, 3, 16, 20), "sound": (1, 400), "frames": (1, 8, 10), "input_ids": (1, 12),
              "attention_mask": (1, 12), "hidden": (2, 1, 4)}  # fmt: skip
    first, second = (draw(np.random.default_rng(seed), shapes) for seed in (0, 1))
    assert {name: array.shape for name, array in first.items()} == shapes
    assert all((first[name] != second[name]).any() for name in shapes)
    assert 0 <= first["input_ids"].min() <= first["input_ids"].max() < VOCABULARY
    assert 6 <= first["attention_mask"].sum() <= 12
    assert np.abs(first["hidden"]).max() < 1
    assert next(samples(CORE.read_model(network)))["image"].shape == (1, 3, 96, 96)
