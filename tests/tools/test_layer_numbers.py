"""Each int8 layer alone, against stock, with each type of floats."""

from __future__ import annotations

import pytest

import ovlpt
from ovlpt.openvino_api import opset1
from tests.networks import model, one_convolution, parameter, residual
from tests.test_cli import save
from tools import layer_numbers


def test_layers_as_stock_has_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(layer_numbers, "float_types", lambda core: ("f32", "bf16"))
    assert layer_numbers.main([save(residual(), tmp_path / "net.xml")]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[3] for line in printed.splitlines() if " net " in line] == ["f32", "bf16"]


@pytest.mark.parametrize("wrong", ["f32", "bf16"])
def test_a_layer_that_is_wrong_with_one_type_of_floats(tmp_path, monkeypatch, wrong):
    own = ovlpt.compile_model

    def compiled(model, device, properties, core):
        is_wrong = properties["INFERENCE_PRECISION_HINT"] == wrong
        return own(one_convolution(0.0, 0.3) if is_wrong else model, device, properties, core=core)

    monkeypatch.setattr(layer_numbers, "float_types", lambda core: ("f32", "bf16"))
    monkeypatch.setattr(ovlpt, "compile_model", compiled)
    assert layer_numbers.main([save(one_convolution(), tmp_path / "net.xml")]) == 1


def test_layers_of_open_sizes(tmp_path, capsys, monkeypatch):
    """They were left out, and no layer at all was as good as all of them."""
    monkeypatch.setattr(layer_numbers, "float_types", lambda core: ("f32",))
    net = residual()
    net.reshape([-1, *list(net.input(0).get_partial_shape())[1:2], -1, -1])
    assert layer_numbers.main([save(net, tmp_path / "net.xml")]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if " net " in line)
    assert int(line.split()[5]) >= 2


def test_a_network_without_an_int8_layer_is_not_green(tmp_path):
    x = parameter([1, 4])
    assert layer_numbers.main([save(model(opset1.relu(x), x), tmp_path / "net.xml")]) == 1
