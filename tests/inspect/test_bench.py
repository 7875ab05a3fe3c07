"""Two sides measured alike, a verdict only where there is one, and benchmark_app's report. No speed is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import bench, cli, data, plugin_config
from ovlpt.commands import bench as command
from ovlpt.device.compile import default_precision
from ovlpt.inspect import peak_memory
from ovlpt.inspect.bench import Bench, Side
from ovlpt.openvino_api import Core, opset1
from ovlpt.trace import InputError
from tests.conftest import assert_documented
from tests.networks import const, model, one_convolution, parameter

SIDE = Side("ovlpt", 1.0, 2.0, 3.0, (4.0, 5.0, 9.0), 18.0, "1", 1, 2, None)


def result(ratio: float, interval: tuple[float, float], blocks: int = 6) -> Bench:
    return Bench("net", "CPU", "latency", (SIDE, replace(SIDE, name="stock")), ratio, interval, (ratio,) * blocks)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (result(0.99, (0.97, 1.01)), "no significant difference"),
        (result(1.0, (1.0, 1.0)), "no significant difference"),
        (result(0.9, (0.85, 0.95)), "ovlpt is faster"),
        (result(1.1, (1.05, 1.2)), "stock is faster"),
        (result(0.5, (0.4, 0.6), blocks=3), "too few runs to tell"),
    ],
)
def test_verdicts(found, verdict):
    assert found.verdict == verdict


def test_figures_of_a_side():
    assert SIDE.latency == 5.0
    assert SIDE.iterations == 3
    assert SIDE.throughput == pytest.approx(1000 * 2 * 3 / 18)


@pytest.mark.parametrize("hint", ["latency", "throughput"])
def test_both_sides_run_alike(hint):
    parts = []
    found = bench(one_convolution(), hint=hint, iterations=26, progress=parts.append)
    assert [side.name for side in found.sides] == ["ovlpt", "stock"]
    assert [side.iterations for side in found.sides] == [26, 26]
    assert len(found.blocks) == 6
    assert found.interval[0] <= found.ratio <= found.interval[1]
    assert parts == sorted(parts)
    assert parts[-1] == 1
    assert all(side.requests == 1 for side in found.sides) or hint == "throughput"


def test_against_another_model_and_a_file_of_inputs(tmp_path):
    np.save(tmp_path / "image.npy", data.heldout()[0][:1])
    found = bench(data.digits(), data.digits_float(), inputs=tmp_path / "image.npy", iterations=1)
    assert [side.name for side in found.sides] == ["ovlpt", "digits_float.xml"]
    assert found.verdict == "too few runs to tell"
    assert all(side.peak_memory is None or side.peak_memory > 20e6 for side in found.sides)


def test_memory_can_be_left_out():
    found = bench(one_convolution(), iterations=1, memory=False)
    assert [side.peak_memory for side in found.sides] == [None, None]


def test_the_other_side_s_process_never_imports_the_package(tmp_path):
    """Its peak memory is that of somebody who does not use it."""
    np.savez(tmp_path / "inputs.npz", data.heldout()[0][:1])
    code = "import runpy, sys; runpy.run_path(sys.argv[0], run_name='__main__'); assert 'ovlpt' not in sys.modules"
    arguments = [peak_memory.__file__, data.digits(), "CPU", "{}", tmp_path / "inputs.npz"]
    code = f"import sys; sys.argv = sys.argv[1:]; {code}"
    program = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    if sys.platform == "linux":
        assert int(done.stdout) > 20e6


def float_network():
    x = parameter([1, 8])
    return model(opset1.matmul(x, const(np.ones((8, 4))), False, False), x)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: bench(one_convolution(), float_network()), "takes other inputs"),
        (lambda: bench(float_network()), "is not quantized"),
        (lambda: bench(ovlpt.transform(one_convolution())), '"net" is transformed already, and its "stock" side'),
        (lambda: bench(ovlpt.transform(one_convolution()), "float"), "give the quantized model that it was made from"),
        (lambda: bench(one_convolution(), "nowhere.xml"), "no file"),
        (lambda: bench(one_convolution(), hint="fast"), 'no hint "fast"'),
        (lambda: bench(one_convolution(), iterations=0), "0 iterations leave nothing"),
        (lambda: bench(one_convolution(), seconds=-1), "-1 seconds leave nothing"),
        (lambda: bench(one_convolution(), device="TPU"), 'no device "TPU"'),
        (lambda: bench(one_convolution(), inputs=[np.zeros((1, 3), np.float32)]), "inputs do not fit"),
        (lambda: bench(one_convolution(), streams="many"), 'no "many" streams'),
        (lambda: bench(one_convolution(), infer_precision="i4"), "cannot be compiled"),
    ],
)
def test_unusable_input_is_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_transformed_file_against_the_quantized_model(tmp_path, capsys):
    openvino.save_model(one_convolution(), tmp_path / "net.xml")
    openvino.save_model(ovlpt.transform(one_convolution()), tmp_path / "baked.xml", compress_to_fp16=False)
    arguments = ["bench", str(tmp_path / "baked.xml"), "-niter", "1"]
    assert cli.main(arguments) == 2
    assert f'"{tmp_path / "baked.xml"}" is transformed already' in capsys.readouterr().err
    assert cli.main([*arguments, "--against", str(tmp_path / "net.xml")]) == 0


REPORT = {  # as benchmark_app of OpenVINO 2026.4 writes it with "-report_type no_counters"
    "Command line parameters": ["-m", "-d", "-hint", "-niter", "-report_folder"],
    "Configuration setup": [
        "topology", "target device", "API", "inference_only", "precision", "batch size", "number of iterations",
        "number of parallel infer requests", "duration (ms)", "number of CPU streams",
    ],
    "Execution results": [
        "read model time (ms)", "compile model time (ms)", "first inference time (ms)", "total execution time (ms)",
        "total number of iterations", "latency (ms)", "avg latency", "min latency", "max latency", "throughput",
        "peak memory (bytes)",
    ],
}  # fmt: skip


def test_the_command_its_report_and_its_json(tmp_path, capsys):
    openvino.save_model(one_convolution(), str(tmp_path / "net.xml"))
    arguments = ["-m", str(tmp_path / "net.xml"), "-niter", "2", "-report_folder", str(tmp_path / "new" / "folder")]
    assert cli.main(["bench", *arguments, "--against", "float", "--json", str(tmp_path / "out.json")]) == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert_documented(written)
    (content,) = written["result"]["benches"]
    default = default_precision(Core(), "CPU")
    assert content["precision"] == default
    beside = content["in_f32"]
    assert (beside is None) == (default == "f32")
    assert beside is None or (beside["precision"] == "f32" and set(beside["sides"]) == {"ovlpt", "float"})
    assert content["verdict"] in capsys.readouterr().out
    assert set(content["sides"]) == {"ovlpt", "float"}
    for side, figures in content["sides"].items():
        text = (tmp_path / "new" / "folder" / "net" / side / "benchmark_report.csv").read_text()
        sections = {}
        for block in text.removesuffix("\n\n").split("\n\n"):
            title, *rows = block.split("\n")
            sections[title] = dict(row.split(";") for row in rows)
        assert {title: list(rows) for title, rows in sections.items()} == REPORT
        assert sections["Execution results"]["total number of iterations"] == "2"
        assert sections["Execution results"]["latency (ms)"] == f"{figures['latency_ms']['median']:.2f}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no model to measure"),
        (["a/net.xml", "b/net.xml", "-report_folder", "reports"], 'two models are called "net"'),
        (["net.xml", "-report_folder", __file__], "is a file; give a folder"),
        ([str(data.digits()), "-niter", "0"], "0 iterations leave nothing"),
    ],
)
def test_unusable_arguments_are_one_sentence_and_status_2(arguments, sentence, capsys):
    assert cli.main(["bench", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert sentence in error
    assert error.count("\n") == 0


@pytest.mark.parametrize("forced", [False, True])
def test_force_takes_the_settings_of_a_device_without_int8(forced, monkeypatch, core):
    given = []

    def recorded(*arguments, config, **options):
        given.append(config)
        raise InputError("recorded")

    monkeypatch.setattr(command, "bench", recorded)
    assert cli.main(["bench", str(data.digits()), *(["--force"] if forced else [])]) == 2
    assert given == [plugin_config.for_device(core, "CPU", force=True) if forced else None]


def test_floats_in_a_type_that_is_asked_for_are_measured_in_no_other(core):
    found = bench(one_convolution(), infer_precision="f32", iterations=1, memory=False, core=core)
    assert (found.precision, found.in_f32) == ("f32", None)
