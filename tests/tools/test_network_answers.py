from __future__ import annotations

import openvino
import pytest

from ovlpt.openvino_api import opset1
from tools import network_answers
from tools.answers import convolution, deconvolution, image, model, named, parameter, real, weights


@pytest.fixture
def networks(tmp_path) -> list[str]:
    """One layer that an advice makes int8, one for which nothing can be done, and one that is int8; in two files."""
    gate = named(opset1.sigmoid(image()), "gate")
    graphs = {
        "gate": model(convolution(gate, name="gated"), convolution(image(name="z"), name="int8")),
        "strided": model(deconvolution(image(), weights((8, 8, 4, 4), axis=1), 4)),
        "strided_float": model(convolution(image())),
    }
    for name, graph in graphs.items():
        openvino.save_model(graph, tmp_path / f"{name}.xml", compress_to_fp16=False)
    return [str(tmp_path / f"{name}.xml") for name in graphs]


def test_both_shares_of_networks(networks, capsys):
    assert network_answers.main(networks) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "3 layers with weights, 2 of them in float",
        "3 answers are true (100.0%)",
        "2 float layers are int8 once advised, or nothing can be done (100.0%)",
    ]


def test_an_advice_that_does_not_help_is_a_failure(networks, capsys, monkeypatch):
    monkeypatch.setattr(network_answers, "in_order", lambda advices: list(advices)[:0])
    assert network_answers.main(networks) == 1
    printed = capsys.readouterr().out
    assert "gate: no working advice: Convolution gated" in printed
    assert "1 float layers are int8 once advised, or nothing can be done (50.0%)" in printed


def test_an_answer_holds_with_each_type_of_floats(networks, capsys, monkeypatch):
    """As if with the second one all ran in float."""
    own = network_answers._kernels_with
    monkeypatch.setattr(network_answers, "float_types", lambda core: ("f32", "other"))
    monkeypatch.setattr(
        network_answers, "_kernels_with", lambda floats, *given: own(floats, *given) if floats == "f32" else {}
    )
    assert network_answers.main(networks) == 1
    assert "not true: Convolution int8 [int8] runs in int8 and float; said int8" in capsys.readouterr().out


def test_a_network_that_is_not_quantized_is_named(tmp_path, capsys):
    openvino.save_model(model(convolution(parameter(), real((8, 8, 1, 1)))), tmp_path / "plain.xml")
    assert network_answers.main([str(tmp_path / "plain.xml")]) == 2
    assert "plain: the model" in capsys.readouterr().err
