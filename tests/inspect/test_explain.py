"""Why not: the reasons, and that no operation is without an answer."""

from __future__ import annotations

import json

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import cli, data
from ovlpt.inspect.explain.graph import in_low_precision, is_answerable
from ovlpt.main.convolution import ConvolutionTransformation
from ovlpt.openvino_api import openvino_module, opset1
from tests import networks
from tests.graphs import f32, fake_quantize, i64, model, parameter, weights
from tests.restricted_networks import (
    NETWORKS,
    concat,
    convolution,
    image,
    matmul,
    one_convolution,
    product_of_activations,
    two_convolutions,
)

MODELS = {
    **NETWORKS,
    "encoder": networks.encoder,
    "shared": networks.shared_zero_point,
    "bundled": lambda: str(data.digits()),
}


@pytest.mark.parametrize("native_only", [False, True], ids=["", "native_only"])
@pytest.mark.parametrize("name", MODELS)
def test_no_operation_without_an_answer(name, native_only, core):
    """Each operation of the result is in low precision, or has exactly one answer with a reason."""
    graph = MODELS[name]()
    found = ovlpt.explain(graph, core=core, native_only=native_only, graph_only=True)
    result = ovlpt.transform(graph, lowered=False, native_only=native_only, core=core)
    asked = [node for node in result.get_ops() if is_answerable(node)]
    assert asked
    assert len(found) + sum(found.low.values()) == len(asked)
    names = {node.get_friendly_name().removesuffix("_original") for node in asked if not in_low_precision(node)}
    assert {answer.node for answer in found} == names
    for answer in found:
        assert answer.reason.code
        assert len(answer.reason.text) > 10
        assert answer.reason.text != "there is no rule for " + answer.operation


def the(graph, operation: str, core, **settings):
    found = ovlpt.explain(graph, core=core, graph_only=True, **settings)
    return next(answer for answer in found if answer.operation == operation)


def config(*precisions, **more) -> ovlpt.PluginConfig:
    return ovlpt.PluginConfig("test", precision_restrictions=precisions, **more)


def per_channel(data):
    high = np.linspace(1, 2.5, 4).reshape(1, 4, 1, 1)
    return fake_quantize(data, 0 * high, high)


def max_pool_14(data):
    return openvino_module("opset14").max_pool(data, [1, 1], [1, 1], [0, 0], [0, 0], [2, 2], "ceil_torch").output(0)


FORBIDDEN = ovlpt.PrecisionsRestriction.create("Convolution", {})
LEAVES_ALONE = {"ConvolutionTransformation": lambda node: True}
I8 = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["i8"], 1: ["i8"]})

REASONS = {
    "no FakeQuantize": (
        lambda: model(convolution(parameter((1, 4, 6, 6))), opset1.relu(image())),
        {},
        "no_fake_quantize",
        "no FakeQuantize",
    ),
    "levels": (lambda: model(convolution(image(levels=512))), {}, "levels", "512 levels"),
    "range without zero": (
        lambda: model(convolution(image(1.0, 2.0))),
        {},
        "zero_point_range",
        "does not contain zero, which would be -255 where u8 has 0 to 255",
    ),
    "asymmetric weights": (
        lambda: model(opset1.matmul(image(), weights((6, 6), 0.01, 3.0), False, True)),
        {"operation": "MatMul"},
        "weights_zero_point",
        "input 1 has a zero point",
    ),
    "scales that would be summed": (
        lambda: model(convolution(per_channel(parameter((1, 4, 6, 6))))),
        {},
        "per_channel_activations",
        "scale per channel (4) and the channels are summed",
    ),
    "weights not quantized": (
        lambda: model(opset1.convolution(image(), f32(np.ones((4, 4, 1, 1))), [1, 1], [0, 0], [0, 0], [1, 1])),
        {},
        "weights_not_quantized",
        "not quantized",
    ),
    "no rule": (lambda: model(convolution(opset1.sigmoid(image()))), {}, "lost_upstream", "lost at Sigmoid"),
    "a restriction": (one_convolution, {"config": config(FORBIDDEN)}, "restriction", "a restriction says"),
    "a callback": (
        one_convolution,
        {"config": config(callbacks=LEAVES_ALONE)},
        "callback",
        "ConvolutionTransformation",
    ),
    "a pass switched off": (
        one_convolution,
        {"config": config(disabled=("ConvolutionTransformation",))},
        "disabled",
        "is switched off",
    ),
    "alignment": (
        lambda: concat([(0.0, 255.0), (0.0, 0.5)]),
        {},
        "fake_quantize_stays",
        "aligned with its neighbours it would keep only 2 levels",
    ),
    "alignment of levels": (
        lambda: concat([(0.0, 2.55), (-1.27, 1.27)], (256, 255)),
        {"native_only": True},
        "fake_quantize_stays",
        "different numbers of levels",
    ),
    "zero point of a product": (
        product_of_activations,
        {"operation": "MatMul"},
        "zero_point",
        "a MatMul of two activations has no int8 kernel",
    ),
    "float result": (
        lambda: model(convolution(convolution(image()))),
        {},
        "float_result",
        "reads the float result of Convolution",
    ),
    "moved channels": (
        lambda: model(matmul(opset1.transpose(per_channel(parameter((1, 4, 6, 6))), i64(0, 2, 3, 1)))),
        {"operation": "MatMul"},
        "lost_upstream",
        "lost at Transpose",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_reason(name, core):
    build, more, code, words = REASONS[name]
    answer = the(
        build(), more.get("operation", "Convolution"), core, **{key: more[key] for key in more if key != "operation"}
    )
    assert answer.reason.code == code, answer.reason
    assert words in answer.reason.text
    assert answer.quantizable is (code != "no_fake_quantize")


def test_a_version_without_a_rule_is_where_the_quantization_is_lost(core):
    answer = the(model(convolution(max_pool_14(image()))), "Convolution", core, native_only=True)
    assert answer.reason.code == "lost_upstream"
    assert "lost at MaxPool" in answer.reason.text
    assert "of opset14" in answer.reason.text
    assert answer.upstream[-1].startswith("MaxPool")
    assert answer.help.startswith("put a FakeQuantize on input 0 of Convolution y, after MaxPool")


def test_what_a_fake_quantize_says_of_itself(core):
    answer = the(model(opset1.sigmoid(image())), "FakeQuantize", core)
    assert answer.reason.code == "no_consumer"
    assert "Sigmoid is not linear" in answer.reason.text
    found = {
        answer.name: answer.reason.code
        for answer in ovlpt.explain(NETWORKS["residual Add"](), core=core, graph_only=True)
    }
    assert found == {"fq_second": "full_branch"}


def test_one_of_two_consumers_keeps_the_other_out(core):
    graph = two_convolutions(0.0, 2.55)
    passes = {"ConvolutionTransformation": lambda node: node.get_friendly_name() == "y1"}
    answers = {
        answer.name: answer
        for answer in ovlpt.explain(graph, core=core, config=config(callbacks=passes), graph_only=True)
    }
    assert answers["y1"].reason.code == "callback"
    assert "y0" not in answers


def test_a_bias_is_none_of_the_losses(core):
    found = {
        answer.operation: answer.reason
        for answer in ovlpt.explain(NETWORKS["convolution with bias"](), core=core, graph_only=True)
    }
    assert found["Add"].code == "bias"
    assert found["Relu"].code == "float_result"


@pytest.fixture
def saved(tmp_path):
    def save(graph) -> str:
        path = str(tmp_path / "net.xml")
        openvino.save_model(graph, path, compress_to_fp16=False)
        return path

    return save


def test_command(saved, tmp_path, capsys):
    path = saved(model(convolution(opset1.sigmoid(image()))))
    target = tmp_path / "answers.json"
    assert cli.main(["explain", path, "--layer", "y", "--json", str(target)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "lost at Sigmoid" in printed
    assert "above it: Sigmoid" in printed
    (content,) = json.loads(target.read_text())["result"]["answers"]
    assert content["reason"]["code"] == "lost_upstream"
    assert content["quantizable"] is True


def test_strict(saved):
    assert cli.main(["explain", saved(one_convolution()), "--strict"]) == 0
    assert cli.main(["explain", saved(model(convolution(opset1.sigmoid(image())))), "--strict"]) == 1


def test_strict_passes_what_nothing_was_quantized_above(saved):
    unquantized = convolution(parameter((1, 4, 6, 6), "x2"))
    assert cli.main(["explain", saved(model(convolution(image()), unquantized)), "--strict"]) == 0


def test_a_layer_in_low_precision_and_one_that_is_not_there(saved, capsys):
    path = saved(one_convolution())
    assert cli.main(["explain", path, "--layer", "y"]) == 0
    assert "y is in low precision" in capsys.readouterr().out
    assert cli.main(["explain", path, "--layer", "fq"]) == 2
    assert 'no operation "fq" in the transformed model; did you mean "fq_x"?' in capsys.readouterr().err


def test_settings_from_a_file(saved, tmp_path, capsys):
    (tmp_path / "my.toml").write_text("[precisions.Convolution]\n")
    assert cli.main(["explain", saved(one_convolution()), "--config", str(tmp_path / "my.toml"), "--strict"]) == 1
    assert "lift the restriction" in capsys.readouterr().out


def test_callbacks_are_asked_by_class():
    passes = ovlpt.PassConfig()
    passes.set_callback(ConvolutionTransformation, lambda node: True)
    assert passes.has_callback("ConvolutionTransformation")
