"""What is said of layers with one known cause, held to what was executed."""

from __future__ import annotations

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import cli, plugin_config
from ovlpt.device import lowering
from ovlpt.inspect import explain as explaining
from ovlpt.inspect.calibration import calibrate
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, PartialShape, opset1
from ovlpt.trace import InputError
from tools import answers
from tools.answers import (
    CASES,
    LAYER,
    attention,
    convolution,
    f32,
    group_deconvolution,
    i64,
    image,
    in_a_body,
    in_int8,
    judge,
    loop,
    model,
    named,
    opset5,
    opset8,
    parameter,
    quantized,
    real,
    recurrent,
    stored_weights,
    transposed,
    weights,
)

GATES = {"LSTMSequence": 4, "GRUSequence": 3}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_answer_is_true_and_its_advices_work(case, core):
    judged = judge(case, core)
    assert judged.is_true, (judged.in_int8, judged.said, [answer.why for answer in judged.answers])
    assert judged.is_advised, [answer.help for answer in judged.answers]


def test_an_answer_holds_with_each_type_of_floats(core, monkeypatch):
    case = next(each for each in CASES if not each.codes)
    assert judge(case, core).is_true
    monkeypatch.setattr(answers, "_executed", lambda *_: [True, False])
    assert not judge(case, core).is_true


def test_the_body_of_a_loop_is_explained(core):
    found = ovlpt.explain(loop("inside"), core=core)
    assert [(answer.name, answer.reason.code) for answer in found if answer.operation == "Convolution"] == [
        (LAYER, "no_fake_quantize")
    ]
    assert found.headline == "1 of 2 layers with weights run in int8"
    assert "and the input of the body that it is in" in found.of(LAYER).why


def test_advice_takes_the_values_that_are_finite(core):
    """A logarithm of zeros is among the data."""
    network = model(convolution(named(opset1.log(image()), "between")))
    advices = ovlpt.explain(network, core=core).of(LAYER).advices
    sample = [np.array([0.0, 1.0, 2.0, 0.5] * 128, np.float32).reshape(1, 8, 8, 8)]
    ((low, high),) = calibrate(network, advices, [sample], core).values()
    assert low == pytest.approx(np.log(0.5), abs=0.02)
    assert high == pytest.approx(np.log(2.0), abs=0.02)
    nowhere = calibrate(network, advices, [[np.zeros((1, 8, 8, 8), np.float32)]], core)
    with pytest.raises(InputError, match="no range for the output of"):
        advices[0].apply(network, nowhere)


def test_a_name_at_the_end_of_a_scale_in_f64_is_found(core):
    """The output has the name of a Convert that a plugin removes, and the layer has it from there."""
    product = opset1.matmul(quantized(parameter((1, 8, 1, 4))), weights((8, 4)), False, True)
    scaled = named(opset1.multiply(named(product), f32(np.linspace(0.5, 2, 8).reshape(1, 1, 1, 8))), "scaled")
    network = Model(
        [scaled.output(0)], [scaled.input_value(0).get_node().input_value(0).get_node().input_value(0).get_node()], "m"
    )
    assert ovlpt.explain(network, core=core).headline == "1 of 1 layer with weights runs in int8"


@pytest.mark.parametrize("size", [1, 3], ids=["of one size", "of which the float one has more to do"])
def test_both_branches_of_an_if_are_explained(core, size):
    """The share of int8 is that of the branch with more to do."""
    bodies, data = [], parameter()
    for name, quantize, kernel in ((LAYER, image, 2), ("other", parameter, size)):
        inside = quantize(name=f"x_{name}")
        layer = opset1.convolution(inside, weights((8, 8, kernel, kernel)), [1, 1], [0, 0], [0, 0], [1, 1])
        given = inside if quantize is parameter else inside.input_value(0).get_node()
        bodies.append((Model([opset1.reduce_max(named(layer, name), i64(2, 3)).output(0)], [given], name), given))
    either = opset8.if_op(opset1.parameter(PartialShape([]), np.bool_).output(0))
    (then, x), (other, y) = bodies
    either.set_then_body(then)
    either.set_else_body(other)
    either.set_input(data.output(0), x, y)
    graph = model(either.set_output(then.results[0], other.results[0]))
    found = ovlpt.explain(graph, core=core)
    assert found.headline == "1 of 2 layers with weights run in int8"
    assert [answer.name for answer in found if answer.operation == "Convolution"] == ["other"]
    result = ovlpt.report(graph, core=core, seconds=0.02)
    assert result.facts.int8_work_share == (1.0 if size == 1 else 0.0)
    assert max(layer.multiply_accumulates for layer in result.layers) == max(
        8 * 8 * 4 * 7 * 7, 8 * 8 * size**2 * (9 - size) ** 2
    )


def of_one_size(data):
    """oneDNN has an int8 kernel of it for AVX2, none for AVX512."""
    return group_deconvolution(data, weights((2, 4, 4, 1, 1), axis=None), [1, 1])


@pytest.mark.parametrize("layer", [convolution, of_one_size])
def test_a_layer_in_a_body_is_what_it_is_outside(layer, core):
    """The execution graph has one layer for the Loop. The kernels are those that oneDNN reports of this network."""
    int8 = in_int8(ovlpt.compile_model(model(layer(image())), "CPU", core=core), LAYER)
    code = None if int8 else "no_kernel"
    graph = in_a_body(layer)
    found = ovlpt.explain(graph, core=core)
    assert [(each.answer and each.answer.reason.code) for each in found.operations if each.name == LAYER] == [code]
    assert found.headline == f"{1 if int8 else 0} of 1 layer with weights runs in int8"
    assert ovlpt.report(graph, core=core, seconds=0.05).facts.int8_work_share == (1.0 if int8 else 0.0)


@pytest.mark.parametrize("low", [0.0, -1.0], ids=["", "beside data with a zero point"])
def test_weights_beyond_i8_are_the_cause_however_they_are_read(low, core):
    """Of a layer that reads floats the lowering folds them, zero point included; it said that there is no kernel."""
    graph = model(convolution(image(low), stored_weights((8, 8, 1, 1), 60)))
    (answer,) = ovlpt.explain(graph, core=core).quantizable
    assert answer.reason.code in ("weights_zero_point", "weights_range")
    assert answer.help is not None


def test_groups_without_a_kernel_get_no_advice(core):
    """oneDNN has an int8 kernel of four channels in each of two groups for AVX2, none for AVX512."""
    by_column = model(group_deconvolution(image(), weights((2, 4, 4, 2, 2), axis=4)))
    (answer,) = ovlpt.explain(by_column, core=core).quantizable
    symmetric = ovlpt.compile_model(model(group_deconvolution(image())), "CPU", core=core)
    has_kernel = in_int8(symmetric, LAYER)
    assert answer.reason.code == ("weights_granularity" if has_kernel else "no_kernel")
    assert (answer.help is not None) == has_kernel


@pytest.mark.parametrize("kind", ["LSTMSequence", "GRUSequence"])
def test_a_layer_in_both_directions_is_said_to_be_what_was_executed(kind, core, monkeypatch):
    """The plugin makes two layers of it, which had names of the plugin's own; without the rule both run in float."""
    graph = recurrent(kind, data=transposed, direction="bidirectional")
    found = ovlpt.execution_types(ovlpt.compile_model(graph, "CPU", core=core))
    assert sorted((layer.name, layer.is_int8) for layer in found if layer.layer_type == "RNNSeq") == [
        (f"{LAYER}/Forward", True), (f"{LAYER}/Reverse", True)
    ]  # fmt: skip
    work = [layer for layer in ovlpt.report(graph, core=core, seconds=0.05).layers if layer.type == "RNNSeq"]
    assert [(layer.weighted, layer.multiply_accumulates) for layer in work] == [
        ((LAYER,), 2 * 3 * GATES[kind] * 8 * 16)
    ] * 2
    of_transposed = ("quantize_after_transpose", "read_after_transpose")
    others = tuple(rule for rule in lowering.RULES if rule.name not in of_transposed)
    monkeypatch.setattr(lowering, "RULES", others)
    (answer,) = ovlpt.explain(graph, core=core).quantizable
    assert (answer.name, answer.reason.code) == (LAYER, "no_kernel")


def test_equal_layers_are_one_layer(core):
    """The plugin computes equal layers of one value once."""
    shared, other = image(), image(name="other")
    graph = model(*(convolution(data, name=name) for name, data in (("one", shared), ("two", shared), ("x", other))))
    assert ovlpt.explain(graph, core=core).headline == "3 of 3 layers with weights run in int8"


def test_a_layer_that_is_not_found_is_not_said_to_be_int8(core, monkeypatch):
    def without_layer(compiled):
        return [layer for layer in ovlpt.execution_types(compiled) if layer.layer_type != "Convolution"]

    monkeypatch.setattr(explaining, "execution_types", without_layer)
    found = ovlpt.explain(model(convolution(image())), core=core)
    assert [(answer.name, answer.reason.code, answer.advices) for answer in found.quantizable] == [
        (LAYER, "no_layer", [])
    ]


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


def test_advices_are_changes_of_the_model_that_was_given(core):
    graph = model(convolution(named(opset1.sigmoid(image()), "gate"), real((8, 8, 1, 1))))
    (answer,) = ovlpt.explain(graph, core=core).quantizable
    assert [str(advice) for advice in answer.advices] == [
        "put a FakeQuantize on input 0 of Convolution layer, after Sigmoid gate",
        "quantize the weights of Convolution layer per output channel to 255 levels around zero",
    ]
    assert answer.help == "; ".join(map(str, answer.advices))
    assert "Sigmoid is not linear" in answer.why
    assert "weights are not quantized" in answer.why
    with pytest.raises(InputError, match='no range for the output of "gate"'):
        answer.advices[0].apply(graph, {})
    for advice in answer.advices:
        advice.apply(graph, {"gate": (0.0, 1.0)})
    assert ovlpt.explain(graph, core=core).headline == "1 of 1 layer with weights runs in int8"
    with pytest.raises(InputError, match='the model has no Convolution "layer"'):
        answer.advices[1].apply(model(convolution(image(), name="another")), {})


def test_repeated_pairs_of_linear_quantization_become_one_fake_quantize(core):
    case = next(case for case in CASES if case.name == "product of activations in repeated Q/DQ")
    graph = case.build()
    inputs = [np.random.default_rng(0).uniform(-2, 2, (2, 16, 8)).astype(np.float32) for _ in range(2)]
    expected = simulate(graph, core)(inputs)[0]
    (answer,) = ovlpt.explain(graph, core=core).quantizable
    assert [str(advice) for advice in answer.advices] == [
        f"quantize {name}_again per tensor to 256 levels on an interval around zero" for name in ("left", "right")
    ]
    for advice in answer.advices:
        advice.apply(graph, {})
    kinds = [node.get_type_name() for node in graph.get_ordered_ops()]
    assert (kinds.count("FakeQuantize"), kinds.count("Convert")) == (2, 0)
    np.testing.assert_allclose(simulate(graph, core)(inputs)[0], expected, atol=0.3)


def test_a_product_that_a_cpu_computes_as_a_convolution(core, monkeypatch):
    monkeypatch.setattr(plugin_config.this_cpu, "multiplies_slowly", lambda *_: True)
    case = next(case for case in CASES if case.name == "MatMul: 512 levels")
    (answer,) = ovlpt.explain(case.build(), core=core).quantizable
    assert answer.operation == "Convolution"
    assert [str(advice) for advice in answer.advices] == [
        "quantize quantized per tensor to 256 levels on an interval around zero"
    ]


def dynamic_product(name):
    """Six rows of eight, as ONNX's DynamicQuantizeLinear and MatMulInteger are read."""
    data = parameter((6, 16))
    scale = opset1.divide(opset1.reduce_max(data, i64(0, 1), True), f32(255.0))
    rounded = opset1.clamp(opset5.round(opset1.divide(data, scale)), 0.0, 255.0)
    integers = opset1.convert(opset1.convert(rounded, "u8"), "i32")
    kernel = opset1.convert(opset1.constant(np.ones((16, 8), np.int8)), "i32")
    product = opset1.convert(named(opset1.matmul(integers, kernel, False, False), name), "f32")
    return opset1.multiply(product, scale)


def test_a_dynamic_quantization_has_one_answer(core):
    graph = model(dynamic_product(LAYER))
    with pytest.warns(UserWarning, match="quantized dynamically, with scales that each inference computes"):
        found = ovlpt.explain(graph, core=core)
    (answer,) = (each for each in found if each.causes)
    assert (answer.name, answer.reason.code, answer.advices) == (LAYER, "dynamic_scales", [])
    assert answer.help == "quantize the network statically, on samples"


@pytest.mark.filterwarnings("ignore:.*is quantized dynamically")
def test_what_reads_a_dynamic_quantization_has_its_own_advice(core):
    def data(shape):
        return opset1.reshape(dynamic_product("product"), i64(*shape), False)

    graph = recurrent("LSTMSequence", data=data, rearranged=True)
    (answer,) = (each for each in ovlpt.explain(graph, core=core).quantizable if each.name == LAYER)
    ranges = calibrate(graph, answer.advices, [[np.linspace(-1, 1, 96, dtype=np.float32).reshape(6, 16)]], core)
    for advice in answer.advices:
        advice.apply(graph, ranges)
    assert in_int8(ovlpt.compile_model(graph, "CPU", core=core), LAYER)


def test_ranges_of_data(core):
    graph = model(convolution(named(opset1.sigmoid(image()), "gate")))
    (answer,) = ovlpt.explain(graph, core=core).quantizable
    samples = [[np.full((1, 8, 8, 8), value, np.float32)] for value in (0.0, 2.55)]
    assert calibrate(graph, answer.advices, samples, core)["gate"] == pytest.approx((0.5, 1 / (1 + np.exp(-2.55))))


def test_the_graph_alone(core, tmp_path, capsys):
    path = str(tmp_path / "model.xml")
    openvino.save_model(model(convolution(image())), path, compress_to_fp16=False)
    assert cli.main(["explain", path]) == 0
    assert "1 of 1 layer with weights runs in int8" in capsys.readouterr().out
    assert cli.main(["explain", path, "--graph-only"]) == 0
    assert "nothing was compiled" in capsys.readouterr().out
