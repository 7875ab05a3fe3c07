from __future__ import annotations

import pytest

import ovlpt
from ovlpt.device.counters import read_counters, write_counters
from ovlpt.device.execution_types import CONSTANT
from ovlpt.openvino_api import Core
from ovlpt.trace import InputError
from tests.conftest import inputs_of
from tests.networks import one_convolution

PYTHON_TOOL = """layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)
x;Status.NOT_RUN;Input;unknown_f32;0.000;0.000
conv;Status.EXECUTED;Convolution;jit_avx2_I8;0.250;0.200
Total;;;;0.250;0.200

"""
CPP_TOOL = """layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms);
x;NOT_RUN;Input;unknown_f32;0;0;
conv;EXECUTED;Convolution;jit_avx2_I8;0.25;0.2;
Total;;;;0.25;0.2;
"""


@pytest.mark.parametrize("text", [PYTHON_TOOL, CPP_TOOL])
def test_what_benchmark_app_writes_is_read(text, tmp_path):
    (tmp_path / "report.csv").write_text(text)
    skipped, layer = read_counters(tmp_path / "report.csv")
    assert (skipped.name, skipped.is_executed) == ("x", False)
    assert (layer.name, layer.status, layer.real_time, layer.cpu_time) == ("conv", "EXECUTED", 0.25, 0.2)
    assert layer.is_int8
    assert layer.original_names == ("conv",)


def test_several_reports_in_a_file_become_their_mean(tmp_path):
    (tmp_path / "report.csv").write_text(PYTHON_TOOL + PYTHON_TOOL.replace("0.250", "0.750"))
    assert [layer.real_time for layer in read_counters(tmp_path / "report.csv")] == [0.0, 0.5]


def test_written_counters_are_read_again(tmp_path):
    model = one_convolution()
    compiled = ovlpt.compile_model(model, "CPU", {"PERF_COUNT": True}, core=Core())
    layers = [
        layer for layer in ovlpt.execution_types(compiled, inputs_of(model)) if layer.status not in ("", CONSTANT)
    ]
    write_counters(tmp_path / "report.csv", layers)
    assert (tmp_path / "report.csv").read_text().startswith(PYTHON_TOOL.splitlines()[0] + "\n")
    fields = ("name", "status", "layer_type", "exec_type")
    again = read_counters(tmp_path / "report.csv")
    assert [[getattr(layer, field) for field in fields] for layer in again] == [
        [getattr(layer, field) for field in fields] for layer in layers
    ]
    assert any(layer.is_int8 and layer.real_time > 0 for layer in again)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is not a counters report"),
        ("layer;time\n", "is not a counters report"),
        (PYTHON_TOOL.replace("0.250;0.200\nTotal", "soon\nTotal"), "line 3: not 6 fields that end in two times"),
        (b"\xff\xfe\x00", "it is not text"),
    ],
)
def test_what_is_no_report(content, sentence, tmp_path):
    path = tmp_path / "report.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=sentence):
        read_counters(path)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*nowhere\.csv"):
        read_counters(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="cannot write"):
        write_counters(tmp_path / "no folder" / "x.csv", [])
