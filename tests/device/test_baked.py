"""A transformed model in a file: it loads without ovlpt, and ovlpt takes it as it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import openvino
import pytest
from ovlpt.plugin_config import cpu, this_cpu

import ovlpt
from ovlpt import cli, data
from ovlpt.device.compile import lpt_properties
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, RELEASE, opset1
from ovlpt.trace import InputError
from tests.conftest import EXACT
from tests.networks import const, encoder, model, one_convolution, parameter

LOAD = """
import json, sys
import numpy as np
import openvino
core = openvino.Core()
compiled = core.compile_model(sys.argv[1], "CPU", json.loads(sys.argv[2]))
layers = [
    [str(info[key].astype(str)) for key in ("layerType", "primitiveType", "runtimePrecision")]
    for info in (node.get_rt_info() for node in compiled.get_runtime_model().get_ordered_ops())
]
np.save(sys.argv[3], compiled(np.load(sys.argv[4]))[0])
assert not any(name.startswith("ovlpt") for name in sys.modules)
print(json.dumps(layers))
"""


@pytest.fixture
def baked(core, tmp_path):
    path = tmp_path / "baked.xml"
    openvino.save_model(ovlpt.transform(data.digits(), core=core), path, compress_to_fp16=False)
    return path


def layers_of(compiled) -> list[list[str]]:
    """Of every executed layer its type, kernel and precision."""
    infos = (node.get_rt_info() for node in compiled.get_runtime_model().get_ordered_ops())
    keys = ("layerType", "primitiveType", "runtimePrecision")
    return [[str(info[key].astype(str)) for key in keys] for info in infos]


def test_round_trip_without_ovlpt(core, baked, tmp_path):
    transformed = ovlpt.transform(data.digits(), core=core)
    properties = {**EXACT, **lpt_properties(transformed, "CPU")}
    here = core.compile_model(transformed, "CPU", properties)
    images = data.heldout()[0][:1]
    np.save(tmp_path / "images.npy", images)
    command = [sys.executable, "-c", LOAD, str(baked), json.dumps(properties)]
    arguments = [str(tmp_path / "answer.npy"), str(tmp_path / "images.npy")]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) == layers_of(here)
    answer = np.load(tmp_path / "answer.npy")
    assert np.array_equal(answer, here([images])[0])
    assert np.array_equal(answer, ovlpt.compile_model(data.digits(), properties=EXACT, core=core)([images])[0])


def test_ovlpt_takes_it_as_it_is(core, baked):
    trace = ovlpt.Trace()
    compiled = ovlpt.compile_model(baked, properties=EXACT, core=core, trace=trace)
    assert not list(trace)
    assert layers_of(compiled) == layers_of(
        core.compile_model(str(baked), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    )


def test_it_says_what_made_it(core, baked):
    read = core.read_model(baked)
    made = {key: read.get_rt_info(["ovlpt", key]).astype(str) for key in ("version", "config", "openvino", "lowered")}
    assert made["openvino"] == ".".join(map(str, RELEASE))
    assert made["config"] == ovlpt.plugin_config.for_device(core, "CPU").name
    assert made["lowered"] == "CPU"
    assert made["version"].count(".") == 2


def test_one_for_another_kind_of_cpu_gets_a_sentence(core, monkeypatch, recwarn, tmp_path, capsys):
    for slow in (True, False):
        own = cpu.config(slow_mat_mul=slow)
        openvino.save_model(
            ovlpt.transform(encoder(), config=own, core=core), tmp_path / f"{slow}.xml", compress_to_fp16=False
        )
    made = [
        core.read_model(tmp_path / f"{slow}.xml").get_rt_info(["ovlpt", "cpu"]).astype(str) for slow in (True, False)
    ]
    assert made == ["AVX2 without VNNI", "any"]
    for here in (True, False):
        monkeypatch.setattr(this_cpu, "multiplies_slowly", lambda here=here: here)
        ovlpt.compile_model(tmp_path / f"{here}.xml", core=core)
    assert not recwarn.list
    with pytest.warns(
        UserWarning, match=r'True.xml" was transformed for .* AVX2 without VNNI, .* transform the quantized'
    ):
        ovlpt.compile_model(tmp_path / "True.xml", core=core)
    assert cli.main(["check", str(tmp_path / "True.xml"), "--expect", "int8:Convolution", "--no-numbers"]) == 0
    assert "AVX2 without VNNI" in capsys.readouterr().err


def test_another_line_of_openvino_is_named_before_reading(core, baked):
    text, made = baked.read_text(), ".".join(map(str, RELEASE))
    if RELAXES_EVERY_OPSET:
        text, other = text.replace("type_relaxed_opset1", "type_relaxed_opset"), "2024.6"
    else:
        text, other = text.replace('"type_relaxed_opset"', '"type_relaxed_opset1"'), "2026.4"
    baked.write_text(text.replace(f'<openvino value="{made}"', f'<openvino value="{other}"'))
    sentence = (
        f"was transformed on OpenVINO {other}, .* the {made} that is installed; transform the quantized model again"
    )
    with pytest.raises(InputError, match=sentence):
        ovlpt.compile_model(baked, core=core)


def test_no_release_of_a_line_has_a_type_that_another_cannot_read(baked):
    """Of an input that keeps its type: 2024.6 calls it undefined, 2025.1 dynamic."""
    types = re.findall('input_data_types="([^"]*)"', baked.read_text())
    assert {name for each in types for name in each.split(", ")} == {"f32"}


def test_another_device_is_named(core, baked):
    own = ovlpt.plugin_config.gpu.config()
    with pytest.raises(InputError, match=r'baked.xml" was transformed for CPU, not for "GPU"'):
        ovlpt.transform(baked, "GPU", own, core=core)


def test_for_a_device_that_is_not_here(core):
    """With its settings at hand; what is not in low precision then runs in the GPU's half precision."""
    result = ovlpt.transform(one_convolution(), "GPU.7", ovlpt.plugin_config.gpu.config(systolic=True), core=core)
    assert result.get_rt_info(["ovlpt", "lowered"]).astype(str) == "GPU"
    relaxed = [node for node in result.get_ops() if "type_relax" in node.get_attributes()]
    assert result.get_rt_info(["ovlpt", "precision"]).astype(str) == "f16"
    types = {node.get_type_name(): node.get_output_element_type(0).get_type_name() for node in relaxed}
    assert types == {"FakeQuantize": "u8", "Convolution": "f32", "Multiply": "f32"}  # no half holds a sum of integers


def test_the_command_prints_the_code_that_loads_the_file(core, tmp_path, capsys):
    path = tmp_path / "out.xml"
    assert cli.main(["transform", str(data.digits()), "-o", str(path)]) == 0
    names = {"openvino": openvino}
    exec(capsys.readouterr().out, names)
    transformed = ovlpt.transform(data.digits(), core=core)
    here = core.compile_model(transformed, "CPU", lpt_properties(transformed, "CPU"))
    image = data.heldout()[0][:1]
    assert np.array_equal(names["compiled"]([image])[0], here([image])[0])


def test_a_model_without_quantization(tmp_path, capsys):
    x = parameter([1, 8])
    openvino.save_model(model(opset1.matmul(x, const(np.ones((8, 4))), False, False), x), tmp_path / "float.xml")
    assert cli.main(["transform", str(tmp_path / "float.xml"), "-o", str(tmp_path / "out.xml")]) == 2
    assert "is not quantized: it has no FakeQuantize" in capsys.readouterr().err
    assert not (tmp_path / "out.xml").exists()


@pytest.mark.parametrize("command", ["run", "verify", "explain", "report", "compare"])
def test_what_asks_for_the_quantization_refuses_it(baked, tmp_path, command):
    """In a process of its own: a transformed model beside its simulation ended it."""
    options = ["-o", str(tmp_path / "page.html")] if command == "report" else []
    code = "import sys; from ovlpt.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, command, str(baked), *options], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f'ovlpt: "{baked}" is transformed already and no longer shows how it was quantized; give the quantized model that '
        "it was made from"
    ]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("run", "is transformed already and no longer shows how it was quantized"),
        ("check", "is transformed already and no longer says how, as its runtime information is lost"),
        ("transform", "is transformed already and no longer says how, as its runtime information is lost"),
        ("fuse", "is transformed already; give the model before quantization"),
    ],
)
def test_without_its_runtime_information_it_is_refused_as_well(core, baked, tmp_path, capsys, command, sentence):
    """As a model is that another program has made of its nodes."""
    core.get_property("CPU", "FULL_DEVICE_NAME")
    read = core.read_model(baked)
    openvino.save_model(openvino.Model(read.get_results(), read.get_parameters(), "cut"), tmp_path / "cut.xml")
    options = ["-o", str(tmp_path / "out.xml")] if command in ("transform", "fuse") else []
    assert cli.main([command, str(tmp_path / "cut.xml"), *options]) == 2
    assert sentence in capsys.readouterr().err


def test_what_is_true_of_it_is_said(core, baked, tmp_path, capsys):
    stock = ovlpt.check(data.digits(), against="stock", core=core)
    found = ovlpt.check(baked, against="stock", core=core, numbers=False)
    assert found.ok
    assert len(found.compared) == len(stock.compared)
    assert cli.main(["transform", str(baked), "-o", str(tmp_path / "again.xml")]) == 0
    assert (tmp_path / "again.xml").with_suffix(".bin").read_bytes() == baked.with_suffix(".bin").read_bytes()
    assert cli.main(["bench", str(data.digits()), "--against", str(baked), "-niter", "5"]) in (0, 1)
    assert "baked.xml" in capsys.readouterr().out


def test_a_gate_is_not_green_where_it_compares_no_numbers(baked, tmp_path, capsys):
    """Nothing tells whether those of a transformed model are right: a script sees it by the status, and in JSON."""
    answer = tmp_path / "answer.json"
    assert cli.main(["check", str(baked), "--expect", "int8:Convolution", "--json", str(answer)]) == 1
    assert "whether the numbers are right is not known; --no-numbers" in " ".join(capsys.readouterr().out.split())
    found = json.loads(answer.read_text())["result"]
    assert (found["ok"], found["numbers"]["ok"], found["numbers"]["records"]) == (False, False, [])
    assert not [each for each in found["differences"] if each["kind"] != "gained"]
    assert cli.main(["check", str(baked), "--expect", "int8:Convolution", "--no-numbers"]) == 0
