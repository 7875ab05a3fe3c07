from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from ovlpt import cli, data
from ovlpt.device.compile import default_precision
from ovlpt.openvino_api import Core, opset1
from tests.conftest import EXACT, assert_close, assert_documented
from tests.networks import const, convolution, model, one_convolution, parameter
from tests.networks import quantized as fake_quantized


def save(net, path):
    import openvino

    openvino.save_model(net, str(path), compress_to_fp16=False)
    return str(path)


@pytest.fixture
def quantized(tmp_path):
    return save(one_convolution(), tmp_path / "net.xml")


def test_the_main_job(tmp_path, capsys):
    target = tmp_path / "run.json"
    assert cli.main(["run", "--json", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "latency, plugin's own LPT" in printed
    assert "FakeQuantize simulation" in printed
    written = json.loads(target.read_text())
    assert_documented(written)
    assert written["model"] is None
    content = written["result"]
    assert content["summary"]["Convolution"]["float"] == 0
    assert content["accuracy"]["ovlpt"] >= 0.97
    assert abs(content["accuracy"]["ovlpt"] - content["accuracy"]["plugin's own LPT"]) <= 0.01
    assert content["largest_relative_difference"] < 0.05
    sides = {"ovlpt", "plugin's own LPT", "float", "FakeQuantize simulation"}
    default = default_precision(Core(), "CPU")
    beside = {"ovlpt in f32", "float in f32"} if default != "f32" else set()
    assert set(content["latency_ms"]) == sides | beside
    assert content["precision"] == default
    assert f"floats in {default}" in printed


def test_a_model_that_the_plugin_s_own_lpt_cannot_compile(tmp_path, capsys):
    """With samples of sound in 16 bits it throws."""
    x = parameter([1, 8, 6, 6], "i16")
    sound = save(model(convolution(fake_quantized(opset1.convert(x, "f32"), -128, 127), 8), x), tmp_path / "sound.xml")
    assert cli.main(["run", sound, "--json", str(tmp_path / "run.json")]) == 0
    assert "the plugin with its own LPT cannot compile the model" in capsys.readouterr().out
    written = json.loads((tmp_path / "run.json").read_text())
    assert_documented(written)
    assert written["result"]["largest_relative_difference"] is None
    assert "plugin's own LPT" not in written["result"]["latency_ms"]


def test_performance_counters_with_an_input_file(quantized, tmp_path, capsys):
    np.savez(tmp_path / "in.npz", x=np.ones((1, 16, 8, 8), np.float32))
    assert cli.main(["run", quantized, "-i", str(tmp_path / "in.npz"), "-pc"]) == 0
    printed = capsys.readouterr().out
    assert "execStatus" in printed
    assert "NOT_RUN" in printed


@pytest.mark.parametrize("command", [None, *cli.COMMANDS])
def test_every_help_ends_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([command, "--help"] if command else ["--help"])
    assert left.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    example = printed[printed.rindex("example: ovlpt ") + len("example: ") :]
    arguments = example.split(" (")[0].split()[1:]
    assert arguments[0] in cli.COMMANDS
    assert command in (None, arguments[0])
    cli.parser().parse_args(arguments)  # it is one that the command takes


HELP = """
import contextlib, io, sys
from ovlpt import cli
for arguments in ([], ["--completion", "bash"], ["--help"], *([name, "--help"] for name in cli.COMMANDS)):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as printed:
        cli.main(arguments)
    assert "ovlpt" in printed.getvalue()
assert not {"openvino", "numpy", "rich"} & sys.modules.keys()
"""


def test_help_is_there_at_once():
    """What takes most of a second to import is not."""
    subprocess.run([sys.executable, "-c", HELP], check=True)


def float_model(tmp_path):
    x = parameter([1, 8])
    return save(model(opset1.matmul(x, const(np.ones((8, 4))), False, False), x), tmp_path / "float.xml")


def text_file(tmp_path):
    (tmp_path / "text.xml").write_text("no model")
    return str(tmp_path / "text.xml")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (lambda path: ["run", str(path / "nowhere.xml")], "no file"),
        (lambda path: ["run", text_file(path)], "cannot read"),
        (lambda path: ["run", float_model(path)], "is not quantized"),
        (lambda path: ["run", "-d", "TPU"], 'no device "TPU"'),
        (lambda path: ["run", "-i", str(path / "nowhere.npz")], "no file"),
        (lambda path: ["run", "-i", text_file(path)], "is not an .npz"),
        (lambda path: ["compare", str(path / "nowhere.xml")], "no file"),
        (lambda path: ["compare", "--samples", "0"], "--samples 0 leaves nothing to compare the layers on"),
        (lambda path: ["compare", "-f", text_file(path)], "cannot read"),
        (lambda path: ["bench", str(path / "nowhere.xml")], "no file"),
        (lambda path: ["bench", float_model(path)], "is not quantized"),
        (lambda path: ["run", "--json", str(path / "no folder" / "x.json")], "cannot write"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(arguments, sentence, tmp_path, capsys):
    assert cli.main(arguments(tmp_path)) == 2
    error = capsys.readouterr().err.strip()
    assert sentence in error
    assert error.count("\n") == 0
    assert "Traceback" not in error


def test_an_input_of_the_wrong_shape(quantized, tmp_path, capsys):
    np.savez(tmp_path / "in.npz", x=np.ones((1, 3, 8, 8), np.float32))
    assert cli.main(["run", quantized, "-i", str(tmp_path / "in.npz")]) == 2
    assert 'input "x" takes the shape [1,16,8,8]' in capsys.readouterr().err


LOADER = """
import sys, numpy, openvino
compiled = openvino.Core().compile_model(sys.argv[1], "CPU", {"LP_TRANSFORMS_MODE": "NO", "INFERENCE_PRECISION_HINT": "f32"})
assert "ovlpt" not in sys.modules
infos = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
kernels = [info["primitiveType"].astype(str) for info in infos if info["layerType"].astype(str) == "Convolution"]
assert kernels and all(kernel.lower().endswith("i8") for kernel in kernels), kernels
numpy.save(sys.argv[2], compiled([numpy.load(sys.argv[3])])[0])
"""


@pytest.mark.parametrize("fused", [[], ["--fuse"]])
def test_a_transformed_file_compiles_without_the_package(quantized, tmp_path, core, fused):
    out, numbers, data = tmp_path / "out.xml", tmp_path / "numbers.npy", tmp_path / "data.npy"
    values = np.random.default_rng(0).standard_normal((1, 16, 8, 8)).astype(np.float32)
    np.save(data, values)
    assert cli.main(["transform", quantized, "-o", str(out), *fused]) == 0
    subprocess.run([sys.executable, "-c", LOADER, str(out), str(numbers), str(data)], check=True, cwd="/")
    expected = core.compile_model(quantized, "CPU", EXACT)([values])[0]
    assert_close([np.load(numbers)], [expected])


def test_a_gpu_that_is_not_here_is_named_by_its_option(tmp_path, capsys):
    model = str(data.digits())
    for command in (["explain", model], ["report", model], ["transform", model, "-o", str(tmp_path / "out.xml")]):
        assert cli.main([*command, "-d", "dg2"]) == 2
        assert "write -d GPU --virtual dg2" in capsys.readouterr().err
