"""What is said of layers with one known cause, held to what was executed."""

from __future__ import annotations

import openvino
import pytest

import ovlpt
from ovlpt import cli
from tools.answers import CASES, LAYER, attention, convolution, image, judge, loop, model, recurrent


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_answer_is_true(case, core):
    judged = judge(case, core)
    assert judged.is_true, (judged.in_int8, [(answer.root_reason.code, answer.reason) for answer in judged.answers])


def test_the_body_of_a_loop_is_explained(core):
    found = ovlpt.explain(loop("inside"), core=core)
    assert [(answer.name, answer.reason.code) for answer in found if answer.operation == "Convolution"] == [
        (LAYER, "no_fake_quantize")
    ]
    assert found.headline == "1 of 2 layers with weights run in int8"


def test_a_recurrent_layer_in_float_fails_a_strict_run(tmp_path):
    for kind in ("RNNSequence", "LSTMCell", "RNNCell"):
        path = str(tmp_path / f"{kind}.xml")
        openvino.save_model(recurrent(kind), path, compress_to_fp16=False)
        assert cli.main(["explain", path, "--strict"]) == 1


def test_both_products_of_an_attention_have_the_name_that_was_given(core):
    found = ovlpt.explain(attention(fused=True), core=core)
    (answer,) = found.quantizable
    assert answer.name == LAYER
    assert answer.root == f"Softmax inside ScaledDotProductAttention {LAYER}"
    (answer,) = ovlpt.explain(attention(), core=core).quantizable
    assert answer.root == "Softmax softmax"


def test_what_a_layer_executes_along_is_not_float_in_an_int8_layer(core):
    assert not list(ovlpt.explain(model(convolution(image())), core=core))


def test_the_graph_alone(core, tmp_path, capsys):
    path = str(tmp_path / "model.xml")
    openvino.save_model(model(convolution(image())), path, compress_to_fp16=False)
    assert cli.main(["explain", path]) == 0
    assert "1 of 1 layer with weights runs in int8" in capsys.readouterr().out
    assert cli.main(["explain", path, "--graph-only"]) == 0
    assert "nothing was compiled" in capsys.readouterr().out
