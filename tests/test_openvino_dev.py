"""What openvino-dev, which ends with 2024.6, leaves behind is read: a model zoo's folders, IRs of `mo`, IRs of POT."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import cli
from ovlpt.openvino_api import Core, Model, opset1
from tests.conftest import EXACT, TRUTH
from tests.networks import const, model, one_convolution, parameter, quantized

QDQ = Path(__file__).parent / "data" / "qdq.onnx"  # python -m tools.make_qdq_onnx
MO = "import runpy; runpy.run_module('openvino.tools.mo', run_name='__main__')"
needs_openvino_dev = pytest.mark.skipif(
    find_spec("openvino.tools") is None or find_spec("openvino.tools.mo") is None,
    reason="openvino-dev ends with 2024.6: there is no mo and no omz_converter here",
)
PARAMETERS = {
    "config": '{"compression": {"algorithms": [{"name": "DefaultQuantization", "params": {"preset": "performance"}}]}}',
    "version": "2022.3.0",
    "cli_params": "{'quantize': None}",
}


def assert_int8_and_right(path: Path | str) -> None:
    """The convolution in int8, and the numbers of the FakeQuantize simulation."""
    core = Core()
    compiled = ovlpt.compile_model(path, "CPU", EXACT, core=core)
    kinds = [each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Convolution"]
    assert kinds == [True]
    x = np.random.default_rng(0).uniform(-2, 3, list(compiled.inputs[0].shape)).astype(np.float32)
    expected = core.compile_model(core.read_model(path), "CPU", TRUTH)([x])[0]
    assert np.abs(compiled([x])[0] - expected).max() <= 1e-4 * np.abs(expected).max()


def run_tool(code: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_openvino_dev
def test_a_network_that_omz_converter_made(tmp_path, monkeypatch, capsys):
    """The zoo's name, and in the file of its quantized ONNX network a small one."""
    source = tmp_path / "public" / "aclnet-int8" / "aclnet_des_53_int8.onnx"
    source.parent.mkdir(parents=True)
    shutil.copy(QDQ, source)
    mo = tmp_path / "mo.py"
    mo.write_text(MO)
    monkeypatch.chdir(tmp_path)
    converter = "import sys; from omz_tools.omz_converter import main; sys.exit(main())"
    run_tool(converter, "--name", "aclnet-int8", "--precisions", "FP16", "--mo", str(mo))
    for given in ("aclnet-int8", "public/aclnet-int8"):
        assert cli.main(["explain", given, "--strict", "--json", "-"]) == 0
        assert json.loads(capsys.readouterr().out)["result"]["answers"] == []
    assert_int8_and_right("public/aclnet-int8/FP16/aclnet-int8.xml")


@needs_openvino_dev
def test_pairs_that_mo_converted(tmp_path):
    run_tool(MO, "--input_model", str(QDQ), "--output_dir", str(tmp_path), "--compress_to_fp16=False")
    assert_int8_and_right(tmp_path / "qdq.xml")


def quantized_by_pot() -> Model:
    """FakeQuantize on float weights too, to 255 levels with a scale for each channel; ±61 of 127 are taken."""
    random, x = np.random.default_rng(0), parameter([1, 8, 6, 6])
    largest = const(random.uniform(0.5, 1, (16, 1, 1, 1)))
    ends = [opset1.negative(largest), largest] * 2
    weights = opset1.fake_quantize(const(random.uniform(-0.24, 0.24, (16, 8, 3, 3))), *ends, 255)
    layer = opset1.convolution(quantized(x, -1.0, 2.0), weights, [1, 1], [1, 1], [1, 1], [1, 1])
    return model(opset1.relu(layer), x)


@needs_openvino_dev
@pytest.mark.parametrize("network", [one_convolution, quantized_by_pot])
def test_what_pot_wrote(network, tmp_path):
    """POT read and wrote IRs by these two functions of mo."""
    from openvino.tools.mo.utils.ir_reader.restore_graph import restore_graph_from_ir, save_restored_graph

    openvino.save_model(network(), tmp_path / "source.xml", compress_to_fp16=False)
    graph, meta = restore_graph_from_ir(str(tmp_path / "source.xml"), str(tmp_path / "source.bin"))
    save_restored_graph(graph, str(tmp_path), {**meta, "quantization_parameters": PARAMETERS}, "optimized")
    assert "<quantization_parameters>" in (tmp_path / "optimized.xml").read_text()
    assert_int8_and_right(tmp_path / "optimized.xml")


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("network", [one_convolution, quantized_by_pot])
def test_its_sections_in_older_files(network, version, tmp_path):
    """POT's section, in the versions of IR that it wrote."""
    path = tmp_path / "net.xml"
    openvino.save_model(network(), path, compress_to_fp16=False)
    section = (
        f"<quantization_parameters><config>{PARAMETERS['config']}</config>"
        f'<version value="{PARAMETERS["version"]}"/></quantization_parameters></net>'
    )
    text = path.read_text().replace("</net>", section).replace('version="11"', f'version="{version}"')
    path.write_text(text)
    assert_int8_and_right(path)
