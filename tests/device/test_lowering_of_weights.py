"""Stored weights of layers that stay in float, and of those whose weights are special."""

from __future__ import annotations

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt.graph.constants import constant
from ovlpt.graph.weights import folded_constant
from ovlpt.inspect.float_model import simulate, without_fake_quantize
from ovlpt.openvino_api import opset1, opset6
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.lowered import FORMS, compiled_in, compiled_in_each, drop_in, weighted
from tests.networks import (
    const,
    convolution,
    encoder,
    int8_weights,
    model,
    one_convolution,
    parameter,
    quantized,
)


def test_a_scale_after_integer_weights(core, infer):
    """ConvolutionMultiplyFusion and MatMulMultiplyFusion would multiply i8 weights by f32."""
    for net in (one_convolution(), encoder(False)):
        inputs = inputs_of(net)
        lowered = ovlpt.transform(net, core=core, serializable=False)
        assert "Clamp" not in [node.get_type_name() for node in lowered.get_ops()]
        layers = ovlpt.execution_types(core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"}))
        assert all(layer.is_int8 for layer in weighted(layers))
        assert_close(infer(lowered, inputs), infer(net, inputs, "YES"), level=np.inf, share=1e-3)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_of_a_float_layer_of_open_sizes(by_form, form, kernel):
    """Restored when the model runs in several streams, they were wrong, those of size 1 with the plugin's own LPT, too."""
    x = parameter([-1, 8, 6, 6])
    normalized = opset6.mvn(quantized(x, 0, 2.55), const([2, 3], "i64"), True, 1e-3, "inside_sqrt")
    net = model([convolution(x, 8, kernel), normalized], x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 8, 6, 6)).astype(np.float32)]
    assert_close([by_form(net, inputs, form, PERFORMANCE_HINT="THROUGHPUT")], [by_form(net, inputs)])


@pytest.mark.parametrize("case", ["weights first", "a vector"])
@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_of_a_float_matmul(by_form, form, case):
    """As above."""
    x = parameter([8] if case == "a vector" else [-1, 8])
    weights = int8_weights([8, 12], 1)
    operands = (x, weights, False, False) if case == "a vector" else (weights, x, True, True)
    product = opset1.matmul(*operands)
    y = parameter([-1, 6], name="y")
    normalized = opset6.mvn(quantized(y, 0, 2.55), const([1], "i64"), True, 1e-3, "inside_sqrt")
    net = model([product, normalized], [x, y])
    data = np.random.default_rng(0).uniform(-1, 1.5, (1, 8)).astype(np.float32)
    inputs = [data[0] if case == "a vector" else data, data[:, :6]]
    assert_close([by_form(net, inputs, form, PERFORMANCE_HINT="THROUGHPUT")], [by_form(net, inputs)])


@pytest.mark.parametrize("serializable", [False, True])
def test_integer_weights_of_a_float_matmul_of_what_becomes_a_vector(core, infer, serializable):
    """As above, where a model of open rank is given one once it is transformed."""
    x = opset1.parameter(openvino.PartialShape.dynamic(), np.float32, "x")
    y = parameter([-1, 6], name="y")
    normalized = opset6.mvn(quantized(y, 0, 2.55), const([1], "i64"), True, 1e-3, "inside_sqrt")
    net = model([opset1.matmul(x, int8_weights([8, 12], 1), False, False), normalized], [x, y])
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    for each in (net, lowered):
        each.reshape({each.input(0): openvino.PartialShape([-1]), each.input(1): openvino.PartialShape([-1, 6])})
    data = np.random.default_rng(0).uniform(-1, 1.5, (1, 8)).astype(np.float32)
    inputs = [data[0], data[:, :6]]
    expected = infer(net, inputs, "NO")
    for _ in range(4):
        assert_close(infer(lowered, inputs, "NO", PERFORMANCE_HINT="THROUGHPUT"), expected)


@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_of_a_float_matmul_of_constants(by_form, form):
    """The first step of an unrolled recurrence, whose state is a constant. The plugin throws, with its own LPT, too."""
    x, state = parameter([3, 12]), np.random.default_rng(0).uniform(-1, 1, (3, 8)).astype(np.float32)
    weights = int8_weights([12, 8])
    y = parameter([3, 6], name="y")
    normalized = opset6.mvn(quantized(y, 0, 2.55), const([1], "i64"), True, 1e-3, "inside_sqrt")
    net = model([opset1.add(opset1.matmul(const(state), weights, False, True), x), normalized], [x, y])
    inputs = inputs_of(net)
    expected = state @ folded_constant(weights.output(0)).T + inputs[0]
    assert_close([by_form(net, inputs, form)], [expected])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows, columns", [(1, 4), (2, 8), (3, 5), (12, 1)])
def test_few_integer_weights_of_a_float_matmul(by_form, form, rows, columns):
    """As above, of each third compilation, where sizes are fixed, too: the plugin compresses no such matrix."""
    x = parameter([-1, 10, rows])
    product = opset1.matmul(x, int8_weights([columns, rows], 1), False, True)
    net = model(quantized(product, -3, 3), x)
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 10, rows)).astype(np.float32)]
    expected = by_form(net, inputs)
    for _ in range(8):
        assert_close([by_form(net, inputs, form, PERFORMANCE_HINT="THROUGHPUT")], [expected], level=0.03, share=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("transposed", [False, True])
def test_integer_weights_of_a_float_matmul_scaled_by_rows(by_form, form, transposed):
    """The plugin takes such scales for those of columns; with its own LPT, too."""
    x = parameter([3, 32])
    weights = int8_weights([48, 32], 1) if transposed else int8_weights([32, 48])
    net = model(opset1.matmul(quantized(x, 0, 2.55), weights, False, transposed), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (3, 32)).astype(np.float32)]
    values = folded_constant(weights.output(0)).astype(np.float64)
    expected = np.round(inputs[0] / 0.01) * 0.01 @ (values.T if transposed else values)
    assert_close([by_form(net, inputs, form)], [expected], level=0.02, share=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(), (1, 1)], ids=["scalar", "of rank 2"])
@pytest.mark.parametrize("rows", [1, 3])
def test_integer_weights_of_a_float_matmul_with_one_scale(by_form, form, rows, shape):
    """Before 2025.0 the plugin reads as many scales as there are columns, with its own LPT, too."""
    x, rng = parameter([rows, 32]), np.random.default_rng(0)
    stored = rng.integers(-63, 64, (48, 32))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(np.full(shape, 0.02)))
    net = model(opset1.matmul(opset1.sigmoid(quantized(x, 0, 2.55)), weights, False, True), x)
    inputs = [rng.uniform(0, 2.55, (rows, 32)).astype(np.float32)]
    expected = 1 / (1 + np.exp(-np.round(inputs[0] / 0.01) * 0.01)) @ (stored.T * 0.02)
    found = by_form(net, inputs, form)  # it quantizes the data dynamically
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def test_integer_weights_of_a_float_matmul_where_floats_are_f16(core):
    """As above, of any size where sizes are dynamic."""
    x = parameter([-1, 10, 16])
    net = model(quantized(opset1.matmul(x, int8_weights([8, 16], 1), False, True), -3, 3), x)
    lowered = ovlpt.transform(net, core=core, serializable=False, precision="f16")
    (product,) = (node for node in lowered.get_ops() if node.get_type_name() == "MatMul")
    assert product.input_value(1).get_node().get_type_name() == "Constant"


@pytest.mark.parametrize("zero_point", [40, 215])
def test_a_product_by_u8_weights_with_a_zero_point_beyond_i8(core, zero_point):
    """As ONNX Runtime quantizes weights to u8; kernels read i8 ones, which are 128 less, as the zero point then is."""
    x, rng = parameter([1, 16, 192]), np.random.default_rng(0)
    stored = const(rng.integers(64, 192, (192, 32)), "u8")
    weights = opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), const(zero_point)), const(0.01))
    net = model(opset1.relu(opset1.matmul(quantized(x, -1.28, 1.27), weights, False, False)), x)
    compiled, inputs = ovlpt.compile_model(net, "CPU", EXACT, core=core), inputs_of(net)
    assert [layer.is_int8 for layer in weighted(ovlpt.execution_types(compiled, inputs))] == [True]
    truth = core.compile_model(net, "CPU", TRUTH)(inputs)
    assert_close(list(compiled(inputs).values()), list(truth.values()))


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
def test_weights_of_a_strided_layer_that_stays_in_float(core, how):
    """Restored by the plugin; with several streams the layer then read other numbers, once in twenty times."""
    x, ones, twos = parameter([1, 4, 3, 4, 8]), [1, 1, 1], [2, 2, 2]
    stored = const(np.random.default_rng(0).integers(-60, 61, (16, 4, *ones)), "i8")
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(0.03))
    layer = opset1.convolution(x, weights, twos, ones, ones, ones)
    found = how(model([layer, quantized(x, -1, 1.5)], x), core=core)
    (lowered,) = (node for node in found.get_ops() if node.get_type_name() == "GroupConvolution")
    assert lowered.input_value(1).get_node().get_type_name() == "Constant"


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
def test_weights_of_a_float_product_of_transposed_data(core, how):
    """Restored by the plugin; with several streams the layer read other numbers, once in four times."""
    x = parameter([-1, 8, -1, -1])
    weights = opset1.multiply(opset1.convert(const([[-60, 7, 60]], "i8"), "f32"), const(0.03))
    product = opset1.matmul(x, weights, True, False)
    product.set_friendly_name("product")
    found = how(model([product, quantized(x, -1, 1.5)], x), core=core)
    (lowered,) = (node for node in found.get_ops() if node.get_friendly_name() == "product")
    assert lowered.input_value(1).get_node().get_type_name() == "Constant"


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("block", [1, 2, 4, 8])
@pytest.mark.parametrize("precision", ["u8", "i8"])
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_blocks_of_few_weights_of_a_float_product(core, how, transposed, precision, block):
    """The plugin keeps those of four and more compressed, and restored others; with several streams the layer read other
    numbers, once in ten times. With the plugin's own LPT, too.
    """
    random, x = np.random.default_rng(0), parameter([2, 5, 64])
    low, high = {"u8": (64, 192), "i8": (-64, 64)}[precision]
    blocks = [8, 64 // block, block] if transposed else [64 // block, block, 8]
    scales = [8, 64 // block, 1] if transposed else [64 // block, 1, 8]
    stored = opset1.convert(const(random.integers(low, high, blocks), precision), "f32")
    centred = opset1.subtract(stored, const((low + high) // 2))
    weights = opset1.multiply(centred, const(random.uniform(0.5, 1.5, scales) / (high - low)))
    weights = opset1.reshape(weights, const([8, 64] if transposed else [64, 8], "i64"), False)
    product = opset1.matmul(x, weights, False, transposed)
    product.set_friendly_name("product")
    found = how(model([product, quantized(x, -1, 1.5)], x), core=core)
    (lowered,) = (node for node in found.get_ops() if node.get_friendly_name() == "product")
    assert (lowered.input_value(1).get_node().get_type_name() == "Constant") == (block < 4)


@pytest.mark.parametrize("shape", [(6, 12), (1, 6, 12), (1, 1, 6, 12), (1, 1, 1, 6, 12)])
def test_integer_weights_of_a_product_in_float(core, infer, shape):
    """The plugin keeps them compressed, and throws where they have more than three axes."""
    x = parameter([2, 3, 2, 4, 6])
    net = model(opset1.matmul(x, int8_weights(shape, axis=len(shape) - 1), False, False), x)
    inputs, values = inputs_of(net), folded_constant(net.get_results()[0].input_value(0).get_node().input_value(1))
    (found,) = infer(drop_in(net, core), inputs)
    assert np.abs(found - inputs[0] @ values).max() < 0.05  # 2024.6 quantizes the data of compressed weights


@pytest.mark.parametrize("sizes", [(1, 20, 30), (-1, -1, -1)], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("streams", [1, 3])
def test_fake_quantized_weights_of_a_layer_in_float_have_the_simulations_bits(core, sizes, streams):
    """Computed by the reference, they differed in their last bits, which decided more ties than with the plugin's own LPT."""
    x, random = parameter([sizes[0], 16, *sizes[1:]]), np.random.default_rng(0)
    floats, end = const(random.uniform(-2, 2, (16, 1, 1, 5, 5))), random.uniform(0.2, 4, (16, 1, 1, 1, 5))
    weights = opset1.fake_quantize(floats, const(-end), const(end), const(-1.08 * end), const(1.08 * end), 255)
    net = model(opset1.group_convolution(quantized(x, -0.3, 0.9), weights, [1, 1], [2, 2], [2, 2], [1, 1]), x)
    inputs = [random.uniform(-0.3, 0.9, (1, 16, 20, 30)).astype(np.float32)]
    truth, properties = simulate(net, core)(inputs)[0], {**EXACT, "NUM_STREAMS": str(streams)}
    stock = core.compile_model(net, "CPU", properties)(inputs)[0]
    found = ovlpt.compile_model(net, core=core, properties=properties)(inputs)[0]
    assert np.square(found - truth).mean() <= 1.1 * np.square(stock - truth).mean()


@pytest.mark.parametrize("shape", [(12,), (4, 12, 5), (1, 4, 12, 5)], ids=["a vector", "matrices", "heads"])
def test_integer_weights_that_no_kernel_reads_compressed(core, infer, shape):
    """The plugin would restore them in layers of their own, in some runs after they were read."""
    x = parameter([-1, 4, -1, 12])
    scales = const(np.full((1,) * len(shape), 0.01, np.float32))
    integers = np.random.default_rng(0).integers(-60, 61, shape).astype(np.int8)
    weights = opset1.multiply(opset1.convert(opset1.constant(integers), "f32"), scales)
    other = opset1.matmul(quantized(x, 0, 2.55), int8_weights([12, 3], 1), False, False)
    net = drop_in(model([opset1.matmul(x, weights, False, False), other], x), core)
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 4, 3, 12)).astype(np.float32)]
    factors = [node.input_value(1) for node in net.get_ops() if node.get_type_name() == "MatMul"]
    (real,) = (value.get_node() for value in factors if value.get_element_type().is_real())
    assert real.get_type_name() == "Constant"
    found = infer(net, inputs)[0]
    assert np.abs(found - inputs[0] @ (integers * 0.01)).max() < 0.05


def four_bits(precision, shape, groups=1):
    """Integers of 4 bits, u4 around 8, with a scale for each output channel, or for each of its ``groups``."""
    values = np.random.default_rng(0).integers(0, 16, shape).astype(np.float32)
    if precision == "i4":
        values -= 8
    stored = opset1.convert(constant(values.reshape(shape[0], groups, -1), precision), "f32")
    if precision == "u4":
        stored = opset1.subtract(stored, const(8.0))
    scale = const(np.linspace(0.01, 0.02, shape[0] * groups).reshape(shape[0], groups, 1))
    return opset1.reshape(opset1.multiply(stored, scale), const(shape, "i64"), False)


def layer_of_4_bits(kind, precision, groups=1, quantizes=True):
    x = parameter([-1, 16, 6, 6] if kind == "convolution" else [-1, 64])
    data = quantized(x, -1.28, 1.27) if quantizes else x
    if kind == "convolution":
        weights = four_bits(precision, [8, 16, 3, 3], groups)
        return model(opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)
    return model(opset1.matmul(data, four_bits(precision, [8, 64], groups), False, True), x)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["i4", "u4"])
@pytest.mark.parametrize("kind", ["convolution", "matmul"])
def test_weights_of_4_bits_of_a_layer_of_quantized_data(core, by_form, tmp_path, kind, precision, form):
    """Each is a number of i8 as well; the plugin's own LPT leaves the layer in float."""
    net = layer_of_4_bits(kind, precision)
    inputs = [
        np.random.default_rng(1).uniform(
            -1.2, 1.2, [3, *[each.get_length() for each in list(net.inputs[0].partial_shape)[1:]]]
        )
    ]
    inputs = [each.astype(np.float32) for each in inputs]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)])
    assert [each.is_int8 for each in weighted(ovlpt.execution_types(compiled_in(form, net, core, tmp_path)))] == [True]


@pytest.mark.parametrize("case", [{"quantizes": False}, {"groups": 4}], ids=lambda case: next(iter(case)))
@pytest.mark.parametrize("precision", ["i4", "u4"])
def test_weights_of_4_bits_of_a_layer_in_float_stay_as_they_are(core, precision, case):
    net = layer_of_4_bits("matmul", precision, **case)
    if not case.get("quantizes", True):
        data = quantized(net.get_parameters()[0], 0, 1)  # else there is nothing to transform
        net.add_results([opset1.result(convolution(opset1.reshape(data, const([-1, 64, 1, 1], "i64"), False), 64))])
    stored = [each for each in ovlpt.transform(net, core=core).get_ops() if each.get_type_name() == "Constant"]
    assert precision in [each.get_element_type().get_type_name() for each in stored]


@pytest.mark.filterwarnings("ignore:.*compressed weights only")
@pytest.mark.parametrize("is_quantized", [False, True], ids=["passes unchanged", "quantized elsewhere"])
@pytest.mark.parametrize("case", ["split", "turned", "strided", "padded"])
def test_a_pointwise_convolution_beside_a_transpose(core, case, is_quantized):
    """OpenVINO makes a MatMul of one with compressed weights, of a Split's first output, and without strides and pads."""
    x = parameter([2, 16, 6, 6])
    stride, pad, last = 1 + (case == "strided"), int(case == "padded"), const([0, 2, 3, 1], "i64")
    data, channels = opset1.relu(x), 16
    if case in ("split", "strided"):
        data, channels = opset1.split(data, const(1, "i64"), 2).output(1), 8
    elif case == "turned":
        half = opset1.split(opset1.transpose(data, last), const(3, "i64"), 2).output(1)
        data, channels = opset1.transpose(half, const([0, 3, 1, 2], "i64")), 8
    weights = int8_weights([8, channels, 1, 1])
    layer = opset1.convolution(data, weights, [stride] * 2, [pad] * 2, [pad] * 2, [1, 1])
    results = [opset1.transpose(layer, last)]
    net = model([*results, convolution(quantized(x, -1.28, 1.27), 8)] if is_quantized else results, x)
    inputs = inputs_of(net)
    values = np.pad(np.maximum(inputs[0], 0)[:, -channels:], [(0, 0)] * 2 + [(pad, pad)] * 2)[:, :, ::stride, ::stride]
    expected = np.einsum("nchw,oc->nhwo", values, folded_constant(weights.output(0))[..., 0, 0])
    np.testing.assert_allclose(ovlpt.compile_model(net, core=core, properties=EXACT)(inputs)[0], expected, atol=1e-5)
    np.testing.assert_allclose(
        core.compile_model(without_fake_quantize(net), "CPU", EXACT)(inputs)[0], expected, atol=1e-5
    )


FLOAT_LAYERS = {
    "weights of u8": "do not fit i8",
    "weights of u8 with a zero point": "do not fit i8",
    "data of i8": "its data are i8 with a zero point",
}


def float_layer(case: str, size: int = 2, groups: int = 1):
    """One with integer weights that is quantized, and a layer in int8 after it."""
    x = parameter([size, 8, 8, 8])
    if case == "data of i8":
        x = opset1.parameter([size, 8, 8, 8], np.int8, "x")
        data = opset1.multiply(opset1.subtract(opset1.convert(x, "f32"), const(8)), const(0.0117))
    else:
        data = quantized(x, -1, 1.55)
    shape = (8, 8, 3, 3) if groups == 1 else (8, 1, 1, 3, 3)
    ends, stored_as = ((-63, 64), "i8") if case == "data of i8" else ((0, 256), "u8")
    stored = const(np.random.default_rng(0).integers(*ends, shape), stored_as)
    real = opset1.convert(stored, "f32")
    real = opset1.subtract(real, opset1.convert(const(0, "u8"), "f32")) if case.endswith("point") else real
    kind = opset1.convolution if groups == 1 else opset1.group_convolution
    layer = kind(data, opset1.multiply(real, const(0.002)), [1, 1], [1, 1], [1, 1], [1, 1])
    return model(convolution(quantized(layer, -1, 1.55), 8, 1), x)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("size", [2, -1])
@pytest.mark.parametrize("case", FLOAT_LAYERS)
def test_integer_weights_of_a_layer_in_float_whose_result_is_quantized(core, tmp_path, case, size, groups, precision):
    """They were read as they are stored, by a kernel that is not there, with the plugin's own LPT, too: u8, and in bf16 i8."""
    net = float_layer(case, size, groups)
    given = np.random.default_rng(1).uniform(-1, 1.5, (2, 8, 8, 8))
    inputs = [(100 * given).astype(np.int8) if case == "data of i8" else given.astype(np.float32)]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)[0]
    for form, compiled in compiled_in_each(net, core, tmp_path, INFERENCE_PRECISION_HINT=precision):
        off = np.abs(compiled(inputs)[0] - expected).max() / np.abs(expected).max()
        assert off < (1e-5 if precision == "f32" else 0.02), form


@pytest.mark.parametrize("case", FLOAT_LAYERS)
def test_why_a_layer_with_integer_weights_runs_in_float(core, case):
    """It could read integers, it was said, and the plugin had no kernel."""
    answers = [answer for answer in ovlpt.explain(float_layer(case), core=core) if answer.operation == "Convolution"]
    assert FLOAT_LAYERS[case] in str(answers[0].reason)
