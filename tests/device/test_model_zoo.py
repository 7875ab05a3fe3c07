"""A command finds a model in the folders that omz_downloader and omz_converter write, or says which there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ovlpt
from ovlpt import cli
from ovlpt.device.model_zoo import float_file, quantized_file
from tests.networks import one_convolution

FILES = (
    "intel/reader-0001/FP16/reader-0001.xml",
    "intel/reader-0001/FP32/reader-0001.xml",
    "intel/reader-0001/FP16-INT8/reader-0001.xml",
    "intel/both-0001/FP16-INT8/both-0001.xml",
    "intel/both-0001/FP32-INT8/both-0001.xml",
    "intel/action-0001/action-0001-encoder/FP16-INT8/action-0001-encoder.xml",
    "intel/action-0001/action-0001-decoder/FP16-INT8/action-0001-decoder.xml",
    "public/plain-1.0-224/FP16/plain-1.0-224.xml",
    "public/plain-1.0-224/FP32/plain-1.0-224.xml",
    "public/single/FP32/single.xml",
    "exported/openvino_model.xml",
)


@pytest.fixture
def zoo(tmp_path, monkeypatch) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "saved" / "variables").mkdir(parents=True)
    (tmp_path / "saved" / "saved_model.pb").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "given, quantized, original",
    [
        ("intel/reader-0001", FILES[2], FILES[1]),
        ("reader-0001", FILES[2], FILES[1]),
        ("intel/reader-0001/FP16", FILES[0], FILES[0]),
        ("intel/action-0001/action-0001-encoder", FILES[5], FILES[5]),
        ("action-0001-encoder", FILES[5], FILES[5]),
        ("single", FILES[9], FILES[9]),
        ("exported", FILES[10], FILES[10]),
        ("saved", "saved", "saved"),  # OpenVINO's to read
        ("nowhere", "nowhere", "nowhere"),
        (FILES[0], FILES[0], FILES[0]),
    ],
)
def test_a_folder_or_a_name_means_a_file(zoo, given, quantized, original):
    assert quantized_file(Path(given)) == Path(quantized)
    assert float_file(Path(given)) == Path(original)


@pytest.mark.parametrize(
    "given, sentence",
    [
        (
            "plain-1.0-224",
            '"plain-1.0-224" holds FP16/plain-1.0-224.xml and FP32/plain-1.0-224.xml; give one of them',
        ),
        (
            "intel/both-0001",
            '"intel/both-0001" holds FP16-INT8/both-0001.xml and FP32-INT8/both-0001.xml; give one of them',
        ),
        ("intel", '"intel" is a folder of several models: action-0001, both-0001 and reader-0001; give one of them'),
        (
            "action-0001",
            '"action-0001" is a folder of several models: action-0001-decoder and action-0001-encoder; give one of them',
        ),
    ],
)
def test_of_several_a_sentence_says_which(zoo, given, sentence, capsys):
    assert cli.main(["explain", given]) == 2
    assert capsys.readouterr().err == f"ovlpt: {sentence}\n"


def test_commands_take_it(zoo, capsys):
    """The quantized model, and beside it the one before quantization."""
    import openvino

    from ovlpt.inspect.float_model import without_fake_quantize

    openvino.save_model(one_convolution(), zoo / FILES[2])
    openvino.save_model(without_fake_quantize(one_convolution()), zoo / FILES[1], compress_to_fp16=False)
    assert cli.main(["compare", "reader-0001", "-f", "reader-0001", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["result"]
    assert "quantization" in json.dumps(rows)
    assert cli.main(["fuse", "intel/reader-0001", "-o", "fused.xml"]) == 0
    assert not [node for node in openvino.Core().read_model("fused.xml").get_ops() if "Fake" in node.get_type_name()]
    assert ovlpt.explain("reader-0001", graph_only=True).quantizable == []
