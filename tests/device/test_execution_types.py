from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt.device.execution_types import least_times
from ovlpt.trace import InputError
from tests.conftest import inputs_of
from tests.graphs import i64, model, opset1, parameter
from tests.networks import residual


class Quick:
    """An infer request whose layers take less than a microsecond after the first inferences."""

    def __init__(self, request, slow: int, took: int | None = None):
        self._request, self._slow, self._took, self._count = request, slow, took, 0

    def infer(self, inputs):
        self._request.infer(inputs)
        self._count += 1

    def query_state(self):
        return self._request.query_state()

    @property
    def model_inputs(self):
        return self._request.model_inputs

    @property
    def profiling_info(self):
        status = "Status.EXECUTED" if self._count <= self._slow else "Status.NOT_RUN"
        fields = ("node_name", "node_type", "exec_type", "real_time", "cpu_time")
        changed = {} if self._took is None else {"real_time": timedelta(microseconds=self._took)}
        return [
            SimpleNamespace(**{"status": status, **{field: getattr(info, field) for field in fields}, **changed})
            for info in self._request.profiling_info
        ]


def statuses(core, graph, slow: int, took: int | None = None) -> list[str]:
    """Of the layers of a graph of which a plugin says that they run in the first ``slow`` inferences only, and that they
    ``took`` so many microseconds.
    """
    compiled = core.compile_model(graph, "CPU", {"PERF_COUNT": True})
    quick = SimpleNamespace(
        create_infer_request=lambda: Quick(compiled.create_infer_request(), slow, took),
        get_property=compiled.get_property,
        get_runtime_model=compiled.get_runtime_model,
        inputs=compiled.inputs,
    )
    layers = ovlpt.execution_types(quick, [np.zeros((1, 3, 4, 4), np.float32)])
    return [layer.status for layer in layers if layer.layer_type not in ("Const", "Input", "Output")]


@pytest.mark.parametrize("slow", [0, 1])
def test_a_layer_that_is_short_has_run(core, slow):
    """A plugin says of a layer with a mean below a microsecond that it did not run; its kernel says that it did."""
    assert statuses(core, model(opset1.sigmoid(parameter((1, 3, 4, 4)))), slow) == ["EXECUTED"]


def test_a_layer_in_place_has_not_run(core):
    """It names no kernel; only times could say that it moves data."""
    reshaped = opset1.reshape(opset1.sigmoid(parameter((1, 3, 4, 4))), i64(1, 48), False)
    assert statuses(core, model(opset1.softmax(reshaped, 1)), 0) == ["EXECUTED", "NOT_RUN", "EXECUTED"]


def test_a_layer_in_place_has_not_run_on_a_busy_machine_either(core):
    """Its first inference may take some microseconds: whether it counted as a layer was chance."""
    graph = model(opset1.softmax(opset1.reshape(opset1.sigmoid(parameter((1, 3, 4, 4))), i64(1, 48), False), 1))
    assert statuses(core, graph, 1, took=7) == ["EXECUTED", "NOT_RUN", "EXECUTED"]
    assert statuses(core, graph, 1, took=100) == ["EXECUTED", "EXECUTED", "EXECUTED"]


def test_times_are_those_of_the_runs_that_nothing_disturbed():
    """Means in whole microseconds, as a plugin gives them, of layers that other work makes slower now and then."""
    random = np.random.default_rng(0)
    true = np.array([300.4, 41.7, 2.6, 0.0])
    taken = true * np.where(random.random((50, 4)) < 0.4, random.uniform(2, 30, (50, 4)), 1.0)
    means = [np.floor(taken[:count].mean(0)).astype(int) for count in range(1, 51)]
    found = least_times([dict(zip("abcd", each.tolist(), strict=True)) for each in means])
    assert means[-1][0] > 2 * true[0]
    for name, expected in zip("ab", true, strict=False):
        assert abs(found[name] * 1e3 - expected) < 0.12 * expected, found
    assert found["c"] * 1e3 <= taken[:, 2].mean() + 0.5
    assert found["d"] == 0.0


def test_the_table_is_benchmark_apps_detailed_report(core, tmp_path):
    """Names, types and kernels of all layers, and which of them ran, but for layers of less than a microsecond."""
    openvino.save_model(residual(), tmp_path / "net.xml", compress_to_fp16=False)
    tool = "import sys; from openvino.tools.benchmark.main import main; sys.exit(main())"
    options = "-m net.xml -niter 1 -api sync -hint none -nstreams 1 -report_type detailed_counters -report_folder ."
    subprocess.run([sys.executable, "-c", tool, *options.split()], cwd=tmp_path, check=True, capture_output=True)
    report = (tmp_path / "benchmark_detailed_counters_report.csv").read_text().split("\n\n")[0].splitlines()[1:-1]
    theirs = {row.split(";")[0]: row.replace("Status.", "").split(";")[1:4] for row in report}

    compiled = core.compile_model(tmp_path / "net.xml", "CPU", {"PERF_COUNT": True, "NUM_STREAMS": "1"})
    layers = ovlpt.execution_types(compiled, inputs_of(residual()))
    first, *lines = layers.table().splitlines()
    assert first.split("  ")[0] == "layerName"
    ours = {line.split()[0]: line.split()[1:4] for line in lines}
    constants = {name for name, fields in theirs.items() if fields[1] == "Const"}
    assert set(theirs) - constants == set(ours)
    for name, (status, layer_type, exec_type) in ours.items():
        assert [layer_type, exec_type] == theirs[name][1:]
        if layer_type == "Convolution" or exec_type == "undef":
            assert status == theirs[name][0]
    assert len({len(line) for line in (first, *lines)}) == 1


def test_a_table_takes_no_inputs_or_says_what_it_needs(core):
    """Zeros where sizes are fixed."""
    counted = core.compile_model(residual(), "CPU", {"PERF_COUNT": True})
    assert "EXECUTED" in ovlpt.execution_types(counted).table()
    with pytest.raises(InputError, match="PERF_COUNT"):
        ovlpt.execution_types(core.compile_model(residual(), "CPU")).table()
    open_sizes = model(opset1.sigmoid(parameter((-1, 3))))
    with pytest.raises(InputError, match="give inputs"):
        ovlpt.execution_types(core.compile_model(open_sizes, "CPU", {"PERF_COUNT": True})).table()


def test_arrays_of_an_earlier_inference_stay_as_they_are(core):
    """A new request of a model of dynamic sizes has the inputs of the last one, in which the caller's array may be."""
    compiled = core.compile_model(model(opset1.sigmoid(parameter((-1, 4)))), "CPU")
    earlier, later = np.full((2, 1, 4), [[[1.0]], [[7.0]]], np.float32)
    compiled([earlier])
    ovlpt.execution_types(compiled, [later])
    assert (earlier == 1).all()
    assert (later == 7).all()


@pytest.mark.parametrize("is_run_before", [False, True])
def test_later_requests_do_not_write_into_memory_that_is_freed(core, is_run_before):
    """A new request had the memory of the one that counted: what lay there since was overwritten, or the process ended."""
    compiled = core.compile_model(model(opset1.sigmoid(parameter((-1, 3, 64, 64)))), "CPU")
    inputs = np.ones((1, 3, 64, 64), np.float32)
    if is_run_before:
        compiled([inputs])
    ovlpt.execution_types(compiled, [inputs])
    others = [np.full_like(inputs, 7) for _ in range(64)]
    compiled.create_infer_request().infer([2 * inputs])
    assert all((other == 7).all() for other in others)
    assert (inputs == 1).all()
