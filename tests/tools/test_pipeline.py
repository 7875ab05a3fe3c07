"""The whole pipeline against stock, from the model that a user has."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device.properties import simulation
from ovlpt.openvino_api import opset1
from ovlpt.trace import InputError
from tests.graphs import f32, fake_quantize, model, parameter
from tests.networks import residual
from tests.prerequisites.test_quantize_dequantize import activations, layer
from tests.test_cli import save
from tools.parity import __main__ as parity
from tools.parity import pipeline as measured
from tools.parity.pipeline import DEFAULT, NATIVE, STOCK, pipeline


def network():
    kernel = fake_quantize(f32(np.random.default_rng(0).uniform(-0.4, 0.4, (8, 16, 3, 3))), -1.0, 1.0, 255)
    data = fake_quantize(parameter((1, 16, 8, 8)), 0.0, 2.55)
    result = opset1.relu(opset1.convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1]))
    result.output(0).get_tensor().set_names({"right"})
    return model(result)


def test_a_network_that_runs_as_stock_does(core):
    result = pipeline(network(), core)
    assert result.equal, result.differences
    assert [result.executed[variant].low for variant in (STOCK, NATIVE, DEFAULT)] == [1, 1, 1]


@pytest.mark.parametrize("kind", ["convolution", "depthwise", "MatMul"])
def test_quantize_and_dequantize(kind, core):
    data = activations(parameter((1, 16, 8, 8)), np.uint8, 10)
    result = pipeline(model(layer(kind, data, precision=np.int8, per_channel=False, stored=False)), core)
    assert result.equal, result.differences


def test_lost_int8_is_named(core, monkeypatch):
    """As if the pipeline lost all of it."""
    monkeypatch.setattr(
        ovlpt, "compile_model", lambda model, device, properties, core, **_: core.compile_model(model, device, simulation())
    )  # fmt: skip
    result = pipeline(network(), core)
    assert not result.equal
    assert [result.executed[variant].low for variant in (STOCK, NATIVE)] == [1, 0]
    (line,) = (each for each in result.differences[NATIVE] if each.startswith("Convolution"))
    assert "in stock, here in" in line


def test_other_numbers_names_and_layers_are_named(core, monkeypatch):
    own = ovlpt.compile_model

    def other(graph, device, properties, core, native_only=False, strict=True):
        if native_only:
            raise RuntimeError("no such kernel")
        graph = graph.clone()
        (result,) = graph.get_results()
        value = result.input_value(0)
        wrong = opset1.sigmoid(opset1.max_pool(value, [1, 1], [0, 0], [0, 0], [1, 1]))
        result.input(0).replace_source_output(wrong.output(0))
        graph.validate_nodes_and_infer_types()
        for node in (result, wrong):
            node.output(0).get_tensor().set_names({"wrong"})
        return own(graph, device, properties, core=core)

    monkeypatch.setattr(ovlpt, "compile_model", other)
    result = pipeline(network(), core)
    assert result.differences[NATIVE] == ("it does not run: no such kernel",)
    found = " | ".join(result.differences[DEFAULT])
    assert "dB from the simulation" in found
    assert "executed layers" in found
    assert "wrong, not f32[1,8,8,8] right" in found


def test_what_is_lost_in_the_default_type_of_floats_is_named(core, monkeypatch):
    """As on a CPU with another one, which here is f32 once more, and loses int8."""
    own, calls = ovlpt.compile_model, []

    def as_floats(graph, device, properties, core, **settings):
        calls.append(settings)
        compiler = own if len(calls) <= 2 else lambda *given, core, **_: core.compile_model(*given[:2], simulation())
        return compiler(graph, device, properties, core=core, **settings)

    monkeypatch.setattr(measured, "float_types", lambda core: ("f32", "f32"))
    monkeypatch.setattr(ovlpt, "compile_model", as_floats)
    result = pipeline(network(), core)
    assert not any(result.differences.values())
    assert any("in stock, here in" in each for each in result.in_default.differences[DEFAULT])
    assert not result.equal


def test_a_float_network_is_refused(core):
    with pytest.raises(InputError, match="not quantized"):
        pipeline(model(opset1.relu(parameter((1, 3)))), core)


def test_command(tmp_path, capsys):
    path = save(residual(), tmp_path / "net.xml")
    assert parity.main([path, "--only", "pipeline"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("net ")
    assert "stock 3 int8" in line
    assert "native_only 3 int8" in line
    with pytest.raises(SystemExit):
        parity.main([path, "--only", "pipeline", "--arm"])
