from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import ovlpt
from ovlpt import cli, data
from ovlpt.device.execution_types import ExecutionTypes, LayerExecution
from ovlpt.graph.stamp import is_transformed
from ovlpt.inspect.check import execution as check_execution
from ovlpt.inspect.check.execution import Executed
from ovlpt.inspect.check.layers import Kind, LayerPrecision, compare, executed_precision
from ovlpt.openvino_api import opset1, opset8
from ovlpt.trace import InputError
from tests.conftest import is_avx2_vnni
from tests.networks import (
    const,
    convolution,
    depthwise,
    encoder,
    int8_weights,
    model,
    one_convolution,
    parameter,
    quantized,
    residual,
)
from tests.test_cli import save
from tools import answers


def layer(name, precision="u8", layer_type="Convolution", operations=None):
    return LayerPrecision(name, layer_type, precision, f"jit_{precision}", operations or (name,))


def execution(exec_type, precision, name="x", layer_type="Convolution"):
    return LayerExecution(name, layer_type, "", exec_type, precision, precision, 0.0, 0.0, (name,))


@pytest.mark.parametrize(
    ("exec_type", "precision", "computes_in"),
    [
        ("brgconv_avx512_I8", "u8", "u8"),
        ("convolution_gpu_imad__u8", "i8", "i8"),
        ("brgconv_avx512_f32", "i8", "f32"),  # the field alone lies
        ("jit_avx2_I8", "f32", "f32"),
        ("jit_avx2_I8", "", "int8"),  # counters tell no more
        ("ref_any", "bf16", "bf16"),
        ("ref_any", "u8", "unknown"),
    ],
)
def test_the_kernel_decides(exec_type, precision, computes_in):
    assert executed_precision(execution(exec_type, precision)) == computes_in


def test_kinds_of_difference():
    wanted = [layer("a"), layer("b"), layer("c", "f32"), layer("d", "f32"), layer("e"), layer("f", "f32")]
    found = [layer("a", "f32"), layer("b", "i8"), layer("c"), layer("d", "bf16")]
    differences = {each.layer: each.kind for each in compare(wanted, found)}
    assert differences == {"a": Kind.LOST, "c": Kind.GAINED, "d": Kind.CHANGED, "e": Kind.MISSING}


def test_layers_are_the_same_by_their_operations():
    wanted = [layer("one", operations=("conv", "relu", "add")), layer("two", operations=("other",))]
    found = [layer("two", "f32", operations=("add", "other")), layer("one", operations=("relu", "conv"))]
    (difference,) = compare(wanted, found)
    assert (difference.layer, difference.kind) == ("two", Kind.LOST)


def test_layers_without_common_names_are_paired_in_order():
    found = [layer("MatMul_1"), layer("MatMul_2", "f32")]
    (difference,) = compare([layer("a"), layer("b")], found)
    assert difference.layer == "MatMul_2"


def test_layers_in_int8_stand_for_each_other_where_there_are_more_of_them_in_one():
    """Three were missing where stock runs one of them twice; one is where it does not."""
    found = [execution("brgemm_avx512_I8", "u8", name, "FullyConnected") for name in ("a", "b", "c", "d", "e")]
    both = {"stock": ExecutionTypes(found[:3]), "ovlpt": ExecutionTypes(found[3:])}
    twice = Executed("", both, dict.fromkeys("xy", "MatMul"))
    once = Executed("", both, dict.fromkeys("xyz", "MatMul"))
    assert [difference.kind for difference in once.against_stock()] == [Kind.MISSING]
    assert twice.against_stock() == []


@pytest.mark.parametrize("net", [one_convolution, residual, encoder])
def test_the_int8_layers_of_the_plugins_own_lpt(net):
    found = ovlpt.check(net(), against="stock")
    assert found.ok
    assert found.compared
    assert all(each.is_low for each in found.compared)
    assert found.differences == ()


def test_a_layer_that_loses_int8_is_named(tmp_path):
    settings = tmp_path / "float.toml"
    settings.write_text('name = "x"\n[precisions.Convolution]\n')  # not to be quantized
    found = ovlpt.check(one_convolution(), against="stock", config=str(settings))
    assert not found.ok
    (difference,) = found.differences
    assert (difference.kind, difference.layer, difference.wanted, difference.found) == ("lost", "conv", "u8", "f32")


def grouped():
    """A convolution and a depthwise one, of one layer type."""
    x = parameter([1, 16, 8, 8])
    first = quantized(convolution(quantized(x, 0, 2.55), 16, name="dense"), 0, 4)
    deep = depthwise(first)
    deep.set_friendly_name("deep")
    return model(deep, x)


def test_expectations_tell_operations_of_one_layer_type_apart():
    assert [each.name for each in ovlpt.check(grouped(), expect="int8:Convolution").compared] == ["dense"]
    found = ovlpt.check(grouped(), expect=["int8:Convolution", "f32:GroupConvolution"])
    (difference,) = found.differences
    assert difference.layer.startswith("deep")
    assert (difference.wanted, difference.kind) == ("f32", Kind.CHANGED)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"expect": "Convolution"}, "cannot read the expectation"),
        ({"expect": "int9:Convolution"}, "cannot read the expectation"),
        ({"expect": "int8:"}, "names no operation"),
        ({"expect": "int8:convolution"}, 'no operation "convolution" .*did you mean Convolution'),
        ({"expect": "int8:MatMul"}, "no executed layer holds a MatMul"),
        ({"against": "float"}, 'cannot compare against "float"'),
        ({"against": "stock", "expect": "int8:MatMul"}, "expect and against are two questions"),
        ({"baseline": "nowhere.json"}, 'cannot read the baseline "nowhere.json"'),
        ({"model": None}, "nothing to check"),
        ({"model": None, "counters": "x.csv", "against": "stock"}, "with the model that they were recorded with"),
        (
            {"isa": "sse41", "config": ovlpt.PluginConfig("x", callbacks={"": lambda _: True})},
            "give the path of a TOML file",
        ),
    ],
)
def test_what_cannot_be_asked(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        ovlpt.check(**{"model": one_convolution(), **arguments})


@pytest.fixture
def net(tmp_path):
    return save(one_convolution(), tmp_path / "net.xml")


def test_a_baseline_and_what_differs_from_it(net, tmp_path, capsys):
    stored, result = tmp_path / "base.json", tmp_path / "result.json"
    assert cli.main(["check", net, "--save-baseline", str(stored)]) == 0
    assert cli.main(["check", net, "--baseline", str(stored), "--json", str(result)]) == 0
    assert "every layer as expected" in capsys.readouterr().out
    assert json.loads(result.read_text())["result"]["ok"] is True

    content = json.loads(stored.read_text())["result"]
    assert {"device", "name", "virtual", "isa", "openvino", "layers"} == set(content)
    (convolution,) = (each for each in content["layers"] if each["layer_type"] == "Convolution")
    assert "conv" in convolution["operations"]
    convolution["precision"] = "f32"
    content["openvino"] = "2023.0"
    stored.write_text(json.dumps(content))
    assert cli.main(["check", net, "--baseline", str(stored)]) == 0  # int8 where float was: gained
    printed = capsys.readouterr().out
    assert "gained" in printed
    assert "the baseline is of openvino 2023.0" in printed

    content["layers"][0]["precision"] = "bf16"
    stored.write_text(json.dumps(content))
    assert cli.main(["check", net, "--baseline", str(stored)]) == 1
    assert "1 layers not as expected" in capsys.readouterr().out

    stored.write_text(json.dumps(content | {"device": "GPU"}))
    assert cli.main(["check", net, "--baseline", str(stored)]) == 2
    assert 'is of the device "GPU", not of "CPU"' in capsys.readouterr().err
    stored.write_text('{"layers": [{"name": "conv"}]}')
    assert cli.main(["check", net, "--baseline", str(stored)]) == 2
    assert "is not a baseline" in capsys.readouterr().err


def test_counters_in_place_of_a_run(net, tmp_path, capsys):
    recorded = str(tmp_path / "counters.csv")
    assert cli.main(["check", net, "--expect", "int8:Convolution", "--save-counters", recorded]) == 0
    assert cli.main(["check", "--counters", recorded, "--expect", "int8:Convolution"]) == 0
    assert cli.main(["check", net, "--counters", recorded, "--against", "stock"]) == 0
    assert cli.main(["check", "--counters", recorded]) == 2
    text = (tmp_path / "counters.csv").read_text()
    (tmp_path / "counters.csv").write_text(text.replace("_I8", "_f32"))
    capsys.readouterr()
    assert cli.main(["check", "--counters", recorded, "--expect", "int8:Convolution"]) == 1
    assert cli.main(["check", net, "--counters", recorded, "--against", "stock"]) == 1
    assert "lost" in capsys.readouterr().out


def test_a_gate(net, capsys):
    assert cli.main(["check", net]) == 0
    assert cli.main(["check", net, "--expect", "f32:Convolution"]) == 1
    assert cli.main(["check"]) == 2
    assert cli.main(["check", net, "-d", "TPU"]) == 2
    error = capsys.readouterr().err
    assert "nothing to check: give a model" in error
    assert 'no device "TPU"' in error


def test_the_callers_model_stays():
    net = one_convolution()
    names = [node.get_friendly_name() for node in net.get_ordered_ops()]
    ovlpt.check(net, against="stock")
    assert [node.get_friendly_name() for node in net.get_ordered_ops()] == names


def test_the_bundled_network_against_the_plugin():
    found = ovlpt.check(data.digits(), against="stock", count=True)
    assert found.ok
    assert len(found.compared) == 11
    assert {"ok", "question", "compared", "differences", "notes"} < set(found.to_json())
    json.dumps(found.to_json())


def test_counters_of_benchmark_app_name_operations(tmp_path):
    """Recorded by benchmark_app 2026.4 on a saved model."""
    (tmp_path / "counters.csv").write_text(
        "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms);\n"
        "a;Status.EXECUTED;Convolution;brgconv_avx512_I8;0.008;0.008;\n"
        "b;Status.EXECUTED;GroupConvolution;brgconv_avx512_dw_I8;0.004;0.004;\n"
        "c;Status.EXECUTED;FullyConnectedQuantizedLegacy;brgemm_avx512_f32;0.002;0.002;\n"
    )
    found = {}
    for operation in ("Convolution", "GroupConvolution", "MatMul"):
        checked = ovlpt.check(counters=tmp_path / "counters.csv", expect=f"int8:{operation}")
        found[operation] = [layer.name for layer in checked.compared], checked.ok
    assert found == {"Convolution": (["a"], True), "GroupConvolution": (["a", "b"], True), "MatMul": (["c"], False)}


@pytest.mark.skipif(is_avx2_vnni(), reason="the plugin's kernel of such an attention ends the process, with stock, too")
def test_a_float_product_in_a_fused_attention(core):
    """The layer is in int8, the product of float probabilities is not."""
    found = ovlpt.check(answers.attention(), expect="int8:MatMul", numbers=False, core=core)
    assert [difference.kind for difference in found.differences] == [Kind.LOST]
    assert sum(layer.is_low for layer in found.compared) == len(found.compared) - 1
    assert ovlpt.check(answers.attention(probabilities=True), expect="int8:MatMul", numbers=False, core=core).ok


def test_an_attention_that_ovlpt_alone_fuses_has_lost_nothing(core):
    """Of joined heads, with a mask between two Reshapes: the first product, in int8, has no layer, and was missed."""
    inputs = [quantized(parameter([4, 12, 8], name=name), -1.28, 1.27) for name in "qkv"]
    mask = parameter([1, 1, 12, 12], name="mask")
    first, second = (opset1.constant(np.array(shape)) for shape in ([1, 4, 12, 12], [4, 12, 12]))
    scores = opset1.reshape(opset1.matmul(inputs[0], inputs[1], False, True), first, False)
    scores = opset1.reshape(opset1.add(scores, mask), second, False)
    parameters = [mask, *(each.input_value(0).get_node() for each in inputs)]
    net = model(opset1.matmul(opset8.softmax(scores, -1), inputs[2], False, False), parameters)
    found = ovlpt.check(net, against="stock", numbers=False, core=core)
    assert found.ok
    own = ovlpt.plugin_config.for_device(core, "CPU")
    in_float = replace(own, disabled=(*own.disabled, "MatMulTransformation"))
    assert not ovlpt.check(net, against="stock", numbers=False, core=core, config=in_float).ok


def test_a_second_product_in_int8_within_a_fused_attention_is_not_missed():
    """Stock runs both as layers, the first in float; the fused kernel has the names of both."""
    stock = [
        execution("jit_avx512_f32", "f32", "first", "MatMul"),
        execution("jit_avx512_I8", "u8", "second", "MatMul"),
    ]
    fused = replace(execution("jit_avx512_I8", "u8", "end", "Subgraph"), original_names=("first", "second", "end"))
    both = {"stock": ExecutionTypes(stock), "ovlpt": ExecutionTypes([fused])}
    found = Executed("", both, dict.fromkeys(("first", "second"), "MatMul"), second_products={"first": "second"})
    assert found.against_stock() == []
    in_float = replace(found, float_inside=frozenset(["second"]))
    assert [difference.kind for difference in in_float.against_stock()] == [Kind.MISSING]


def test_int8_that_is_lost_in_the_default_type_of_floats_alone(monkeypatch, core, net, capsys):
    """The layers are compared in both. The CPU at hand need not have another type: f16 stands for it, its kernels f32's."""
    compiled = []
    compile_quantized, own = check_execution.compile_quantized, ovlpt.plugin_config.for_device(core, "CPU")
    worse = replace(own, disabled=(*own.disabled, "ConvolutionTransformation"))

    def lose(model, device, properties, config, **more):
        compiled.append(properties["INFERENCE_PRECISION_HINT"])
        given = config if compiled[-1] == "f32" else worse
        return compile_quantized(model, device, {**properties, "INFERENCE_PRECISION_HINT": "f32"}, given, **more)

    monkeypatch.setattr(check_execution, "compile_quantized", lose)
    monkeypatch.setattr(check_execution, "default_precision", lambda *_: "f16")
    for question in ({"against": "stock"}, {"expect": "int8:Convolution"}):
        found = ovlpt.check(one_convolution(), **question, numbers=False, core=core)
        assert [(each.kind, each.layer, each.setting) for each in found.differences] == [("lost", "conv", "f16")]
        assert found.precisions == ("f32", "f16")
    assert ovlpt.check(one_convolution(), against="stock", precision="f32", numbers=False, core=core).ok
    assert compiled == ["f32", "f16", "f32", "f16", "f32"]
    assert cli.main(["check", net, "--no-numbers"]) == 1
    assert "1 layers not as expected, with floats in f32 and in f16" in capsys.readouterr().out


class StockFails:
    """A core that compiles what ovlpt has transformed, with floats of one type, and nothing else."""

    def __init__(self, core, precisions):
        self._core, self._precisions = core, precisions

    def __getattr__(self, name):
        return getattr(self._core, name)

    def compile_model(self, model, device, properties):
        if properties.get("INFERENCE_PRECISION_HINT") in self._precisions and not is_transformed(model):
            raise RuntimeError("somewhere:\nno such kernel\n")
        return self._core.compile_model(model, device, properties)


@pytest.mark.parametrize("precisions", [("f32", "f16"), ("f16",)])
def test_a_model_that_the_plugins_own_lpt_cannot_compile(monkeypatch, core, precisions):
    """Nothing is lost against it, and the check says so, also where it fails in the default type of floats alone."""
    monkeypatch.setattr(check_execution, "default_precision", lambda *_: "f16")
    found = ovlpt.check(one_convolution(), against="stock", numbers=False, core=StockFails(core, precisions))
    assert found.ok
    assert found.without_stock == "no such kernel"
    assert any("the plugin with its own LPT cannot compile the model" in note for note in found.notes)
    assert [layer.is_low for layer in found.compared] == [True]


def test_a_layer_that_the_plugin_computes_wrongly_in_int8_may_be_in_float(tmp_path, capsys):
    x = parameter([1, 16, 7, 5])
    shift = const(np.random.default_rng(0).integers(90, 200, (1, 16, 1, 1)) * np.float32(0.01))
    data = opset1.subtract(quantized(x, 0, 2.55), shift)
    ones = [1, 1]
    net = model(opset1.convolution(data, int8_weights([6, 16, 3, 3]), ones, ones, ones, ones, name="padded"), x)
    assert cli.main(["check", save(net, tmp_path / "padded.xml"), "--precision", "f32"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "padded_original runs in float, as the plugin computes it wrongly in int8: in the padding all zero points"
        in printed
    )
    assert "against the plugin's own LPT: every layer as expected" in printed
