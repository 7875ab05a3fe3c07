"""The verdict names the known bottleneck of a network, by times that are given: no machine decides."""

from __future__ import annotations

import dataclasses

import pytest

from ovlpt.device.execution_types import ExecutionTypes, execution_types
from ovlpt.inspect.explain import explain
from ovlpt.inspect.report import facts, report
from ovlpt.inspect.report.causes import Bottleneck, Facts, verdict
from ovlpt.inspect.report.overhead import Latencies
from ovlpt.inspect.report.page import LABELS
from ovlpt.reasons import Cause
from tests.conftest import is_avx2_vnni
from tools.verdicts import CASES, Case, is_true


def with_times(monkeypatch, case: Case) -> None:
    """The layers and kernels that run here, with the times of the case."""

    def executed(compiled, arrays, **_):
        return ExecutionTypes(
            [
                dataclasses.replace(layer, real_time=case.times.get(layer.layer_type, 0.01) * layer.is_executed)
                for layer in execution_types(compiled, arrays)
            ]
        )

    def measured(compiled, arrays, *_):
        mine = sum(layer.real_time for layer in executed(compiled["int8"], arrays))
        times = {"int8": mine, "float": mine * case.speed}
        return Latencies(times, times, 0.005, 0.002, case.speed, (case.speed - 0.02, case.speed + 0.01))

    monkeypatch.setattr(facts, "execution_types", executed)
    monkeypatch.setattr(facts, "latencies", measured)
    monkeypatch.setattr(facts, "default_precision", lambda *_: "bf16")
    monkeypatch.setattr(facts, "saturates", lambda *_: False)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bottleneck_is_named(case, core, monkeypatch):
    if case.name == "attention" and is_avx2_vnni():
        pytest.skip("the plugin's kernel of such an attention ends the process, with stock, too")
    with_times(monkeypatch, case)
    network = case.build()
    found = report(network, core=core, **case.settings)
    assert is_true(case, found), (found.verdict, found.bottlenecks)
    assert f"{case.speed:.2f}" in found.verdict.text or "as fast as" in found.verdict.text
    assert "float in bf16" in found.verdict.text
    if not case.settings:  # one truth: what explain says of a layer with weights, the report says
        helps = {answer.reason.code: answer.help for answer in explain(network, core=core) if answer.causes}
        assert all(helps.get(each.code) in (None, each.help) for each in found.bottlenecks)


FACTS = Facts("CPU", True, False, 0.52, 1.0, 10.0, 0.1, 9, True, 10.0, 7.8, "f32", 0.78, (0.7, 0.8))
SPLIT = Bottleneck("Split", Cause.MOVEMENT, "data_movement", "it moves", "", ("s",), (1,), 4.8, 0.48, 0.0)
SIGMOID = dataclasses.replace(SPLIT, operation="Sigmoid", cause=Cause.GRAPH, milliseconds=2.0, time_share=0.2)


@pytest.mark.parametrize(
    "changes, found, cause, text",
    [
        ({}, (SPLIT,), Cause.MOVEMENT, "0.78 of the speed of float, 10 ms per inference: it is slower. Data movement: 48%"),
        ({"speed": 1.5, "speed_interval": (1.4, 1.6)}, (SPLIT,), Cause.MOVEMENT, "runs at 1.50 times the speed of float,"),
        ({"int8_time_share": 0.8}, (SIGMOID,), Cause.HARDWARE, "not faster in int8 than in f32"),
        ({"int8_time_share": 0.8, "speed": 0.9, "speed_interval": (0.8, 0.95)}, (SIGMOID,), Cause.GRAPH, "20% because of Sigmoid"),
        ({"int8_time_share": 0.9, "float_precision": "bf16"}, (), Cause.HARDWARE, "of float in bf16"),
        ({"overhead": 3.0}, (SPLIT,), Cause.TOO_SMALL, "about 30% of the"),
        ({"int8_time_share": 0.9, "speed": 3.0, "speed_interval": (2.9, 3.1)}, (), Cause.NOTHING, "3.00 times the speed"),
        ({"speed": 1.01, "speed_interval": (0.9, 1.1)}, (SPLIT,), Cause.MOVEMENT, "int8 is as fast as float, 10 ms"),
        ({"int8_time_share": 0.9, "speed": 1.2, "speed_interval": (0.95, 1.3)}, (), Cause.HARDWARE, "int8 is as fast as float, 10 ms"),
        ({"int8_time_share": 0.9, "speed": 1.2, "speed_interval": (0.7, 1.9)}, (), Cause.NOTHING,
         "not clear: 1.20 times its speed, 95 % interval 0.70 to 1.90, 10 ms per inference; measure again on an idle machine. No layer"),
        ({"speed": 1.0, "speed_interval": (0.7, 1.9)}, (SPLIT,), Cause.MOVEMENT, "is not clear: 1.00 times its speed"),
    ],
)  # fmt: skip
def test_the_measured_ratio_comes_first(changes, found, cause, text):
    made = verdict(dataclasses.replace(FACTS, **changes), found)
    assert made.cause is cause
    assert text in made.text


def test_no_slow_network_has_nothing_in_its_way():
    for speed in (0.3, 0.78, 0.99, 1.05):
        for share in (0.0, 0.5, 1.0):
            for found in ((), (SPLIT,), (SIGMOID, SPLIT)):
                facts = dataclasses.replace(FACTS, speed=speed, speed_interval=(speed, speed), int8_time_share=share)
                assert verdict(facts, found).cause is not Cause.NOTHING


def test_what_is_not_clear_is_not_called_good_news():
    """The heading of the page stands over either sentence."""
    unclear = dataclasses.replace(FACTS, int8_time_share=0.9, speed=1.2, speed_interval=(0.7, 1.9))
    made = verdict(unclear, ())
    assert made.cause is Cause.NOTHING
    assert "good news" not in f"{LABELS[made.cause]} {made.text}".lower()
