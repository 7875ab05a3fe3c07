"""``ovlpt fuse``: from a float model in a file to a fused one, with the numbers that it had."""

from __future__ import annotations

import json

import numpy as np
import openvino
import pytest

from ovlpt import cli
from ovlpt.fusions import fuse
from ovlpt.openvino_api import Core
from ovlpt.trace import InputError, Trace
from tests.conftest import assert_documented
from tests.fusions import networks as net
from tests.fusions.conftest import difference, inputs_of
from tests.fusions.networks import kinds
from tests.fusions.test_batch_norm_branch import network as branch
from tests.fusions.test_small_batch_norm import Source, structure
from tests.fusions.whole_networks import NETWORKS
from tests.numpy_model import run
from tools import answers


def save(model, path) -> str:
    openvino.save_model(model, str(path), compress_to_fp16=False)
    return str(path)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", ["Const", "ReadValue", "ReadValue+Assign", "Parameter"])
def test_each_source_of_a_small_normalization(kind, layout, tmp_path, capsys):
    """The document's scenarios: constants, variables; and inputs, whose values come from files."""
    model, source, _ = structure("multiply_power", True, True, layout, Source(kind))
    inputs = inputs_of(model) | source.values
    values = []
    for name, value in source.values.items():
        np.save(tmp_path / f"{name}.npy", value)
        values += ["--value", f"{name}={tmp_path / name}.npy"]
    target = tmp_path / "fused.xml"
    path = save(model, tmp_path / "float.xml")
    assert cli.main(["fuse", path, "-o", str(target), *values, "--json", str(tmp_path / "fuse.json")]) == 0
    result = Core().read_model(target)
    assert difference(run(model, inputs)[0], run(result, inputs)[0]) <= 1e-5
    said = json.loads((tmp_path / "fuse.json").read_text())
    assert_documented(said)
    said = said["result"]
    assert said["operations"]["after"] == dict(kinds(result))
    assert said["operations"]["before"]["Convolution"] == 1
    assert "SmallBatchNormFusion" in {event["fusion"] for event in said["fused"]}
    assert not said["not_fused"]
    printed = capsys.readouterr().out
    assert "nncf.quantize" in printed
    assert ["operation", "before", "after"] in [line.split() for line in printed.splitlines()]


class Restored(Source):
    """Variables that are set from inputs, as those of a checkpoint are."""

    def __call__(self, name, values):
        node = super().__call__(name, values)
        node.set_friendly_name(f"restored {name}")
        return net.opset8.read_value(node, name)


def test_inputs_without_a_value_are_named(tmp_path, capsys):
    model, source, _ = structure("multiply_power", True, True, "NCHW", Source("Parameter"))
    path = save(model, tmp_path / "float.xml")
    assert cli.main(["fuse", path, "-o", str(tmp_path / "fused.xml")]) == 0
    (said,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("inputs without a value: "))
    assert all(name in said for name in source.values)
    assert "x" not in said.partition(";")[0].removeprefix("inputs without a value: ").split(", ")
    assert "--value NAME=FILE.npy" in said


def test_a_variable_without_a_value_in_the_graph():
    _, source, _ = structure("multiply_power", True, True, source=Source("Parameter"))
    expected = structure("multiply_power", True, True)[0]
    model = structure("multiply_power", True, True, source=Restored("Parameter"))[0]
    refused = Trace()
    assert kinds(fuse(model, refused))["ReadValue"] == 4
    assert {event.reason.code for event in refused if event.transformation == "FreezeVariables"} == {"not_constant"}
    result = fuse(model, values=source.values)
    assert kinds(result)["ReadValue"] == 0
    inputs = inputs_of(model)
    assert difference(run(expected, inputs)[0], run(result, inputs)[0]) <= 1e-5
    with pytest.raises(InputError, match='the value for "gamma" has the shape'):
        fuse(model, values={"gamma": np.ones(77)})


def test_a_value_that_is_written_out(tmp_path, capsys):
    path, target = save(branch(None), tmp_path / "float.xml"), tmp_path / "fused.xml"
    name = Core().read_model(path).get_parameters()[-1].get_friendly_name()
    assert cli.main(["fuse", path, "-o", str(target), "--json", str(tmp_path / "fuse.json")]) == 0
    assert "the condition is not a constant" in capsys.readouterr().out
    assert_documented(json.loads((tmp_path / "fuse.json").read_text()))
    assert cli.main(["fuse", path, "-o", str(target), "--value", f"{name}=false"]) == 0
    assert kinds(Core().read_model(target))["If"] == 0


@pytest.mark.parametrize("name", NETWORKS)
def test_whole_networks(name, tmp_path):
    model = NETWORKS[name](size=16)
    path, target = save(model, tmp_path / "float.xml"), tmp_path / "fused.xml"
    assert cli.main(["fuse", path, "-o", str(target), "--json", str(tmp_path / "fuse.json")]) == 0
    counts = json.loads((tmp_path / "fuse.json").read_text())["result"]["operations"]
    assert sum(counts["after"].values()) < sum(counts["before"].values()) / 2
    inputs = inputs_of(model)
    assert difference(run(model, inputs)[0], run(Core().read_model(target), inputs)[0]) <= 1e-5


@pytest.mark.parametrize(
    "value, sentence",
    [
        ("gamma", 'cannot read the value "gamma"; write NAME=FILE.npy'),
        ("gamma=nowhere.npy", 'no file "nowhere.npy"; give an .npz or .npy of arrays'),
        ("gama=1", 'no input "gama" to give a value to; the model has x'),
    ],
)
def test_what_is_no_value(value, sentence, tmp_path, capsys):
    path = save(structure("multiply_power", True, True)[0], tmp_path / "float.xml")
    target = tmp_path / "fused.xml"
    assert cli.main(["fuse", path, "-o", str(target), "--value", value]) == 2
    assert sentence in capsys.readouterr().err
    assert not target.exists()


def test_a_model_without_any(tmp_path, capsys):
    path = save(fuse(structure("multiply_power", True, True)[0]), tmp_path / "float.xml")
    assert cli.main(["fuse", path, "-o", str(tmp_path / "fused.xml")]) == 0
    assert "nothing to fuse" in capsys.readouterr().out


def test_a_float_model_has_a_command_of_its_own(tmp_path, capsys):
    path = save(structure("multiply_power", True, True)[0], tmp_path / "float.xml")
    assert cli.main(["transform", path, "-o", str(tmp_path / "out.xml"), "--fuse"]) == 2
    assert f'"{path}" is not quantized; fuse it with "ovlpt fuse"' in capsys.readouterr().err


def test_what_comes_next_for_a_model_that_is_quantized_already(tmp_path, capsys):
    path = save(answers.model(answers.convolution(answers.image())), tmp_path / "quantized.xml")
    assert cli.main(["fuse", path, "-o", str(tmp_path / "fused.xml")]) == 0
    printed = capsys.readouterr().out
    assert "the model was quantized before it was fused" in " ".join(printed.split())
    assert "nncf" not in printed
