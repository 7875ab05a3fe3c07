from __future__ import annotations

import os

import numpy as np
import pytest
from ovlpt.plugin_config import arm, cpu, gpu, this_cpu

import ovlpt
from ovlpt import Params
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import EXACT, TRUTH, Transformed, assert_close, cpu_flags
from tests.graphs import dequantization, f32, fake_quantize, i64, model, opset5, opset7, parameter

NAME = "MatMulToConvolution"
ON = Params(mat_mul_as_convolution=True)


def stored(inputs, outputs, transposed=True, zero_point=None):
    """Integers with a scale for each output channel."""
    values = np.random.default_rng(1).integers(-60, 61, (outputs, inputs)).astype(np.int8)
    scale = np.linspace(0.01, 0.03, outputs)[:, None]
    return dequantization(
        opset1.constant(values if transposed else values.T), scale if transposed else scale.T, zero_point, "w"
    )


def after_fake_quantize(inputs, outputs, transposed=True):
    values = np.random.default_rng(1).uniform(-1, 1, (outputs, inputs))
    return fake_quantize(f32(values if transposed else values.T), -1, 1, 255, "w")


def quantized(shape, low=0, high=2.55):
    return fake_quantize(parameter(shape), low, high)


def product(data, weights=None, transposed=True):
    layer = opset1.matmul(data, stored(8, 6) if weights is None else weights, False, transposed)
    layer.set_friendly_name("product")
    return layer


def repaired(graph, params=ON, **settings):
    result = Transformed(graph, params, **settings)
    return result, [(event.outcome, event.reason.code) for event in result.trace if event.transformation == NAME]


def kinds(result):
    return [node.get_type_name() for node in result.after.get_ordered_ops()]


def assert_convolved(graph, times=1):
    result, said = repaired(graph)
    assert said == [(Outcome.TRANSFORMED, "as_convolution")] * times
    assert kinds(result).count("Convolution") == times
    assert "MatMul" not in kinds(result)
    result.assert_numbers()
    return result


@pytest.mark.parametrize("shape", [(5, 8), (2, 5, 8), (2, 3, 5, 8), (-1, 5, 8), (-1, -1, 8)], ids=str)
@pytest.mark.parametrize("low, high", [(0, 2.55), (-1.28, 1.27), (-1, 1.5)])
def test_ranks_and_intervals(shape, low, high):
    result = assert_convolved(model(opset1.add(product(quantized(shape, low, high)), f32(np.arange(6)))))
    types = [
        [value.get_element_type().get_type_name() for value in node.input_values()]
        for node in result.after.get_ops()
        if node.get_type_name() == "Convolution"
    ]
    assert all(weights == "i8" for _, weights in types)


@pytest.mark.parametrize("shape", [(6, 8), (1, 6, 8), (1, 2, 6, 8), (-1, -1, 8)], ids=str)
def test_integers_that_several_dequantizations_read(core, shape):
    """Their Convert was left behind the Transpose, and the layers after it took that in: an error, of rank 3."""
    layer = opset1.matmul(quantized(shape, -1.28, 1.27), stored(8, 12), False, True)
    integers = opset1.convert(opset1.fake_quantize(layer, f32(-1), f32(1.55), f32(0), f32(255), 256), "u8")
    parts = [
        opset1.matmul(dequantization(integers, 0.01, point), stored(12, 12), False, True) for point in (100.0, 100.0)
    ]
    graph = model(opset1.concat(parts, -1))
    data = [np.random.default_rng(0).uniform(-1, 1, [6 if size < 0 else size for size in shape]).astype(np.float32)]
    expected = core.compile_model(graph, "CPU", TRUTH)(data)[0]
    assert_close([ovlpt.compile_model(graph, "CPU", EXACT, core=core)(data)[0]], [expected])


def test_a_stored_bias():
    bias = dequantization(opset1.constant(np.arange(-3, 3, dtype=np.int32)), 0.1, name="bias")
    last = fake_quantize(opset1.add(product(quantized((2, 5, 8))), bias), -3, 3, name="last")
    result = assert_convolved(model(opset1.sigmoid(last)))
    kinds_after = kinds(result)[kinds(result).index("Convolution") :]
    assert kinds_after.index("Add") < kinds_after.index("Transpose")


def test_one_that_ends_in_a_quantized_output_stays():
    _, said = repaired(model(fake_quantize(product(quantized((2, 5, 8))), -3, 3, name="last")))
    assert said == [(Outcome.REJECTED, "quantized_output")]


WEIGHTS = {
    "stored": stored(8, 6),
    "stored, inputs first": stored(8, 6, transposed=False),
    "FakeQuantize": after_fake_quantize(8, 6),
    "FakeQuantize, inputs first": after_fake_quantize(8, 6, transposed=False),
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights(weights):
    assert_convolved(model(product(quantized((2, 5, 8)), WEIGHTS[weights], "first" not in weights)))


@pytest.mark.parametrize("batch", [2, -1])
def test_an_axis_that_is_split_after_it(core, batch):
    """Before the Transpose it is split for nothing; after, the data would be copied twice."""
    moved = opset1.transpose(product(quantized((batch, 6, 8))), i64(0, 2, 1))
    image = opset1.reshape(moved, i64(-1, 6, 2, 3), False)
    graph = model(opset1.relu(image))
    result = assert_convolved(graph)
    reshape = next(node for node in result.after.get_ops() if node.get_type_name() == "Reshape")
    assert reshape.get_output_partial_shape(0)[3].get_length() == 6


def test_data_with_its_channels_first():
    layer = opset1.matmul(quantized((2, 8, 5)), stored(8, 6), True, True)
    result = assert_convolved(model(layer))
    assert kinds(result).count("Transpose") == 1


def test_what_follows_goes_along():
    data = opset1.add(product(quantized((1, 5, 8))), f32(np.arange(6).reshape(1, 1, 6)))
    data = fake_quantize(opset7.gelu(data, "erf"), 0, 2.55, name="between")
    result = assert_convolved(model(product(data, stored(6, 4))), 2)
    assert kinds(result).count("Transpose") == 2  # none between the layers


def test_a_zero_point_is_subtracted_after_it():
    result = assert_convolved(model(product(quantized((1, 5, 8), -1, 1.55))))
    (layer,) = (node for node in result.after.get_ops() if node.get_type_name() == "Convolution")
    (reader,) = layer.output(0).get_target_inputs()
    assert layer.input_value(0).get_node().get_type_name() == "Transpose"
    assert reader.get_node().get_type_name() == "Subtract"
    assert list(reader.get_node().input_value(1).get_shape()) == [1, 6, 1]


def test_a_reader_with_channels_first():
    layer = product(quantized((1, 5, 8)))
    turned = opset1.relu(opset1.transpose(fake_quantize(opset1.relu(layer), 0, 2.55), i64(0, 2, 1)))
    result = assert_convolved(model(turned))
    assert kinds(result).count("Transpose") == 1


def test_several_readers_share_a_transpose():
    data = quantized((1, 5, 8))
    result = assert_convolved(model(product(data), product(data, stored(8, 4))), 2)
    assert kinds(result).count("Transpose") == 3


def test_names_of_outputs():
    graph = model(opset1.add(product(quantized((5, 8))), f32(np.ones(6))))
    result, _ = repaired(graph)
    assert [port.get_node().input_value(0).get_node().get_friendly_name() for port in result.after.outputs] == ["y"]


def after(build):
    return model(build(product(quantized((1, 5, 8)))))


def per_position(layer):
    high = np.linspace(1, 2, 5).reshape(1, 5, 1)
    return fake_quantize(layer, -high, high)


def recurrent(layer):
    data = fake_quantize(layer, -1.28, 1.27, name="between")
    state, lengths = f32(np.zeros((1, 1, 4))), i64(5)
    weights = [f32(np.ones(shape)) for shape in ((1, 16, 6), (1, 16, 4), (1, 16))]
    return opset5.lstm_sequence(data, state, state, lengths, *weights, 4, "forward").output(0)


def concatenated(move=lambda data: data):
    data = quantized((1, 5, 8))
    moved = move(data)
    return model(product(data), opset1.concat([moved, moved], 1))


REFUSED = {
    "a Concat beside": (concatenated, "concatenated"),
    "a Concat after a Reshape": (
        lambda: concatenated(lambda data: opset1.reshape(data, i64(1, 40), False)),
        "concatenated",
    ),
    "a Concat after a Relu": (lambda: concatenated(opset1.relu), "concatenated"),
    "an interval per position": (lambda: after(per_position), "per_position"),
    "a recurrent layer": (lambda: after(recurrent), "recurrent"),
    "rank 5": (lambda: model(product(quantized((1, 1, 1, 5, 8)))), "rank"),
    "a vector": (lambda: model(product(quantized((8,)))), "rank"),
    "channels second last": (
        lambda: model(opset1.matmul(quantized((1, 2, 8, 5)), stored(8, 6), True, True)),
        "transposed",
    ),
    "batches of weights": (
        lambda: model(
            opset1.matmul(
                quantized((1, 5, 8)), dequantization(opset1.constant(np.ones((1, 8, 6), np.int8))), False, False
            )
        ),
        "weights_rank",
    ),
    "weights beyond i8": (
        lambda: model(product(quantized((1, 5, 8)), stored(8, 6, True, -120.0))),
        "weights_zero_point",
    ),
}


@pytest.mark.parametrize("build, code", REFUSED.values(), ids=REFUSED)
def test_refusals(build, code):
    result, said = repaired(build())
    assert said == [(Outcome.REJECTED, code)]
    assert "Convolution" not in kinds(result)


def test_a_concat_does_not_take_the_data_away(core, infer):
    """The plugin's own fault: without the refusal the product is off by as much as it is large."""
    graph = concatenated()
    inputs = [np.random.default_rng(2).uniform(0, 2.55, (1, 5, 8)).astype(np.float32)]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT, config=cpu.config(slow_mat_mul=True))
    assert_close(list(compiled(inputs).values()), infer(graph, inputs), 0)


def test_beside_one_whose_weights_stand_first(core):
    """That one stays in float without VNNI, and asks no type of the data: as i8, no kernel of the convolution would take it."""
    data = fake_quantize(parameter((1, 5, 8)), -1.28, 1.27)
    graph = model(product(data), opset1.matmul(stored(8, 6), data, False, True))
    lowered = ovlpt.transform(graph, config=cpu.config(slow_mat_mul=True), core=core)
    (layer,) = (node for node in lowered.get_ops() if node.get_type_name() == "Convolution")
    assert layer.input_value(1).get_element_type().get_type_name() == "i8"


def shared(shape, move=lambda data: data):
    data = quantized(shape)
    return model(product(move(data)), product(move(data), stored(8, 4)))


@pytest.mark.parametrize(
    "times, build",
    [
        (0, lambda: shared((-1, 8))),
        (0, lambda: shared((-1, 5, 8), lambda data: opset1.reshape(data, i64(-1, 1, 8), False))),
        (1, lambda: model(product(quantized((-1, 8))))),
        (2, lambda: shared((5, 8))),
        (2, lambda: shared((-1, 5, 8))),
    ],
)
def test_open_sizes_that_several_read(core, infer, times, build):
    """The plugin's own fault: without the refusal the second product is off by as much as it is large."""
    graph = build()
    _, said = repaired(graph)
    assert [code for outcome, code in said if outcome is Outcome.TRANSFORMED] == ["as_convolution"] * times
    shape = [5 if size.is_dynamic else size.get_length() for size in graph.inputs[0].get_partial_shape()]
    inputs = [np.random.default_rng(2).uniform(0, 2.55, shape).astype(np.float32)]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT, config=cpu.config(slow_mat_mul=True))
    assert_close(list(compiled(inputs).values()), infer(graph, inputs), 0)


def floats():
    return model(product(parameter((1, 5, 8))))


def float_weights():
    return model(product(quantized((1, 5, 8)), f32(np.ones((6, 8)))))


def two_tensors():
    return model(opset1.matmul(quantized((1, 5, 8)), fake_quantize(parameter((1, 8, 6), "z"), 0, 2.55), False, False))


def per_channel():
    return model(product(quantized((1, 5, 8), np.zeros((1, 1, 8)), np.arange(1, 9).reshape(1, 1, 8))))


@pytest.mark.parametrize("weights", [stored, after_fake_quantize])
def test_weights_of_one_value(weights):
    """A constant of one value has no shape that a kernel could be."""
    result, said = repaired(model(product(quantized((1, 5, 1)), weights(1, 1))))
    assert said == [(Outcome.REJECTED, "weights_rank")]
    assert "MatMul" in kinds(result)


@pytest.mark.parametrize("build", [floats, float_weights, two_tensors, per_channel])
def test_no_concern(build):
    assert repaired(build())[1] == []


@pytest.mark.parametrize("params", [Params(), Params(mat_mul_as_convolution=True, native_only=True)])
def test_off(params):
    result, said = repaired(model(product(quantized((1, 5, 8)))), params)
    assert said == []
    assert "MatMul" in kinds(result)


def test_only_where_a_plugin_asks_for_it():
    others = cpu.config(), cpu.config(signed_activations=True), gpu.config(), gpu.config(systolic=True), arm.config()
    assert cpu.config(slow_mat_mul=True).params.mat_mul_as_convolution
    assert not any(config.params.mat_mul_as_convolution for config in others)


@pytest.mark.parametrize(
    "rows, inputs, outputs, chosen", [(5, 8, 6, True), (-1, 8, 6, False), (-1, 120, 480, False), (-1, 192, 768, True)]
)
def test_copies_that_take_what_few_channels_save(rows, inputs, outputs, chosen):
    graph = model(product(quantized((2, rows, inputs)), stored(inputs, outputs)))
    plugin = cpu.config(slow_mat_mul=True)
    found = [node.get_type_name() for node in ovlpt.transform(graph, config=plugin).get_ops()]
    assert ("Convolution" if chosen else "MatMul") in found


def test_the_plugin_is_asked_for_its_kernel():
    limited = "ONEDNN_MAX_CPU_ISA" in os.environ
    if limited or not {"avx512f", "avx_vnni"} & cpu_flags():
        pytest.skip("needs a CPU with AVX512 or VNNI, not limited to less")
    assert not this_cpu.multiplies_slowly()
