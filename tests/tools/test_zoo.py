"""The zoo's networks: they live, cover the table of operations, and become what the native pass makes of them."""

from __future__ import annotations

import re
import shutil
from functools import cache

import numpy as np
import pytest

import ovlpt
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.config import PrecisionsRestriction
from ovlpt.device.overflow import overflow_risks
from ovlpt.openvino_api import RELEASE
from ovlpt.operations import OPERATIONS
from tests.conftest import EXACT, run_pass
from tests.graphs import CORE
from tests.tools.test_parity import GRANULARITY, PRECISIONS, assert_native
from tools.real.networks import REAL
from tools.zoo import sketches
from tools.zoo.__main__ import main
from tools.zoo.alive import ALIVE, distance, movement, run
from tools.zoo.benchmark import BENCHMARK
from tools.zoo.catalogue import CATALOGUE
from tools.zoo.coverage import ROWS, transformed, versions
from tools.zoo.overflow_fix import HALF, WHOLE, range_of_weights
from tools.zoo.sketch import both
from tools.zoo.sketches import SKETCHES

RESTRICTED = (
    *PRECISIONS,
    PrecisionsRestriction.create("ConvolutionBackpropData", {0: ["u8", "i8"], 1: ["i8"]}),
    PrecisionsRestriction.create("LSTMSequence", {(0, 1): ["u8"]}),
    PrecisionsRestriction.create("GRUSequence", {(0, 1): ["u8"]}),
)


@cache
def sketch(name: str):
    """The network in float, quantized, and its samples."""
    return both(SKETCHES[name], sketches.PRECISIONS.get(name, "f32"))


@cache
def covered(name: str):
    return transformed(sketch(name)[1])


@pytest.mark.parametrize("row", ROWS)
def test_a_network_covers_the_row(row):
    assert any(row in covered(name) for name in SKETCHES)


def test_every_version_with_a_rule_is_in_a_network():
    found = versions(sketch(name)[1] for name in SKETCHES)
    assert {kind for row in ROWS for kind in OPERATIONS[row].type_names} <= found


@pytest.mark.parametrize("name", SKETCHES)
def test_the_network_lives_and_its_numbers_stay(name):
    """A tie in a quantization may move by one level, and the layers after spread it.

    Recurrent layers of the plugin's own LPT have other numbers than the model, ovlpt's those of the float model.
    """
    is_recurrent = name == "recurrent"
    model, quantized, samples = sketch(name)
    outputs = [run(each, samples[:3]) for each in (model, quantized)]
    assert min(map(movement, outputs)) > ALIVE
    assert max(distance(*outputs)) < (0.7 if is_recurrent else 0.3)
    compiled = ovlpt.compile_model(quantized, "CPU", EXACT)
    results = [[np.array(value) for value in compiled(sample).values()] for sample in samples[:3]]
    result = [np.stack(values) for values in zip(*results, strict=True)]
    assert max(distance(outputs[0 if is_recurrent else 1], result)) < 0.06


@pytest.mark.skipif(
    shutil.which("g++") is None, reason="the native pass is driven by a C++ program and there is no g++"
)
@pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one")
@pytest.mark.parametrize("name", SKETCHES)
def test_parity(name):
    graph = sketch(name)[1].clone()
    run_pass(graph, CommonOptimizations())
    assert_native(graph, RESTRICTED, GRANULARITY)


def test_the_benchmark_names_networks_of_the_zoo():
    assert len(BENCHMARK) >= 16
    assert {contender.name for contender in BENCHMARK} <= CATALOGUE.keys()
    assert len({contender.name for contender in BENCHMARK}) == len(BENCHMARK)


def _stock_layers(name: str):
    _, quantized, samples = sketch(name)
    compiled = CORE.compile_model(quantized, "CPU", EXACT)
    layers = ovlpt.execution_types(compiled, samples[0]).executed
    return [layer for layer in layers if layer.layer_type == "Convolution"]


def test_the_obstacle_of_leaky_data_is_there():
    assert sum(not layer.is_int8 for layer in _stock_layers("leaky")) == 6


def test_the_obstacle_of_shared_biases_is_there():
    """The convolutions of the head are in int8 and give f32."""
    layers = _stock_layers("shared_head")
    assert all(layer.is_int8 for layer in layers)
    assert sum(layer.output_precision == "f32" for layer in layers) == 12


def _risks(folder):
    model = CORE.read_model(folder / "shared_head.xml")
    return range_of_weights(model), len(overflow_risks(ovlpt.transform(model, lowered=False, core=CORE)))


def test_a_network_for_cpus_without_vnni(tmp_path):
    """Its weights cannot overflow 16 bits, those of the float network are the same, and the file says which it is."""
    whole, half = tmp_path / "whole", tmp_path / "half"
    assert main(["shared_head", "-o", str(whole)]) == 0
    assert main(["shared_head", "-o", str(half), "--overflow-fix"]) == 0
    assert _risks(whole) == (WHOLE, 19)
    assert _risks(half) == (HALF, 0)
    floats = [(folder / "shared_head_float.bin").read_bytes() for folder in (whole, half)]
    assert floats[0] == floats[1]


def test_a_network_from_the_command_line(tmp_path, capsys):
    assert main(["streaming", "-o", str(tmp_path)]) == 0
    assert "FakeQuantize" in capsys.readouterr().out
    assert {file.name for file in tmp_path.glob("*.xml")} == {"streaming.xml", "streaming_float.xml"}
    assert main(["--coverage", str(tmp_path)]) == 1  # most rows are in other networks
    assert re.search(r"^Assign +streaming 2$", capsys.readouterr().out, re.MULTILINE)


def test_the_list_names_all_networks(capsys):
    assert main(["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names[: len(CATALOGUE)] == list(CATALOGUE)
    assert names[len(CATALOGUE) :] == [f"real/{name}" for name in REAL]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["resnet51", "-o", "x"], "no network is called resnet51; there are resnet50, "),
        (["resnet50"], "give names of networks and -o DIR, --list, or --coverage DIR"),
        (["--coverage", "nowhere"], "no network lies in nowhere; python -m tools.zoo all -o nowhere builds them"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, sentence, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(sentence)


def test_an_unknown_quantization_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["real/magika", "--quantizations", "nothing", "-o", "x"])
    assert "qdq_u8i8" in capsys.readouterr().err
