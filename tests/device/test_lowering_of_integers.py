"""Tensors that stay integers, whoever reads them."""

from __future__ import annotations

import numpy as np
import pytest
from ovlpt.plugin_config import cpu, this_cpu

import ovlpt
from ovlpt.device.compile import float_types
from ovlpt.openvino_api import opset1, opset6
from ovlpt.precisions import NUMPY
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.lowered import FORMS, compiled_in, drop_in
from tests.networks import (
    const,
    convolution,
    int8_weights,
    model,
    parameter,
    quantized,
    residual,
)


@pytest.mark.parametrize("native_only", [False, True])
def test_a_scale_after_a_product_of_integers(core, infer, native_only):
    """As ONNX's MatMulInteger is read. The native library takes the Convert into the scale, which MatMulMultiplyFusion
    would then move into the weights: it threw.
    """
    x, rng = parameter([1, 6, 32]), np.random.default_rng(0)
    stored = opset1.convert(opset1.fake_quantize(x, const(0), const(255 / 64), const(0), const(255), 256), "u8")
    centred = opset1.subtract(opset1.convert(stored, "i32"), const(120, "i32"))
    weights = opset1.convert(const(rng.integers(-62, 63, (32, 16)), "i8"), "i32")
    product = opset1.convert(opset1.matmul(centred, weights, False, False), "f32")
    net = model(opset1.multiply(product, const(rng.uniform(1e-4, 2e-4, 16))), x)
    inputs = [rng.uniform(0, 4, (1, 6, 32)).astype(np.float32)]
    found = ovlpt.transform(net, core=core, native_only=native_only)
    assert_close(infer(found, inputs), [core.compile_model(net, "CPU", TRUTH)(inputs)[0]])


def test_integers_plus_a_constant_that_is_0(core, infer):
    """The plugin drops the sum, and with it the type that it reports: it threw."""
    x = parameter([1, 4, 4, 4])
    zeros = quantized(const(np.zeros((1, 4, 1, 1))), 0, 2.55)
    least = opset1.minimum(const(0.0), quantized(x, 0, 2.55))
    net = model(
        opset1.convolution(opset1.add(least, zeros), const(np.ones((6, 4, 1, 1))), [1, 1], *[[0, 0]] * 2, [1, 1]), x
    )
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (1, 4, 4, 4)).astype(np.float32)]
    for lowered in (drop_in(net, core), ovlpt.transform(net, core=core)):
        assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))


def test_a_residual_add_reads_integers_without_a_convert(core):
    lowered = ovlpt.transform(residual(), core=core)
    add = next(
        node
        for node in lowered.get_ops()
        if node.get_type_name() == "Add"
        and "u8" in [str(v.get_element_type().get_type_name()) for v in node.input_values()]
    )
    assert add.get_output_element_type(0).get_type_name() == "f32"
    layers = ovlpt.execution_types(core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"}))
    assert not [
        layer for layer in layers.executed if layer.layer_type in ("Eltwise", "Subgraph") and layer.precision == "f32"
    ][1:]


@pytest.mark.parametrize("low", [-2.0, -1.7, 0.0])
def test_integers_that_a_float_product_of_open_sizes_reads(core, low):
    """The Convert between them is not a layer of its own."""
    x, rng = parameter([-1, 4, 6, 8]), np.random.default_rng(0)
    data = opset1.reshape(quantized(x, low, 2 * 127 / 128), const(np.array([-1, 6, 8]), "i64"), False)
    net = model(
        [
            opset1.matmul(data, const(rng.standard_normal((1, 8, 5))), False, False),
            opset1.matmul(data, int8_weights([4, 8]), False, True),
        ],
        x,
    )
    inputs = [rng.standard_normal((2, 4, 6, 8), np.float32)]
    stock = core.compile_model(net, "CPU", EXACT)
    as_it_is = cpu.config(
        this_cpu.takes_signed_activations(), slow_mat_mul=False
    )  # where a CPU would take a convolution
    compiled = ovlpt.compile_model(net, "CPU", EXACT, as_it_is, core=core)
    counts = [len(ovlpt.execution_types(each, inputs).executed) for each in (compiled, stock)]
    assert counts[0] <= counts[1]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)
    assert_close(list(compiled(inputs).values()), list(expected.values()))


def test_a_gate_of_open_sizes_reads_integers(core):
    """The quantization of the gate, the product with scales by column and the quantization after it are one layer."""
    x = parameter([-1, 8, 8, 16])
    parts = [quantized(x, -1.28, 1.27), quantized(opset1.relu(x), -0.64, 0.635)]
    gate = quantized(opset1.sigmoid(opset1.concat([x, x], 3)), -1.28, 1.27)
    product = opset1.multiply(gate, opset1.concat(parts, 3))
    net = model(convolution(quantized(product, -1.28, 1.27), 8), x)
    inputs = [np.random.default_rng(0).standard_normal((2, 8, 8, 16), np.float32)]
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    counts = [len(ovlpt.execution_types(each, inputs).executed) for each in (compiled, stock)]
    assert counts[0] <= counts[1]
    assert_close(list(compiled(inputs).values()), list(stock(inputs).values()))


ARITHMETIC = {"add": opset1.add, "subtract": opset1.subtract, "multiply": opset1.multiply}


def positions(precision: str, read, before=None):
    """A quantized layer whose data depend on open positions: integers, arithmetic ``before`` with a constant, a scale."""
    place, x = parameter([-1, -1, 1], precision, "place"), parameter([-1, -1, 8])
    integers = before(place, const(3, precision)) if before else place
    added = read(opset1.convert(integers, "f32"), const(np.geomspace(1, 0.03, 8).reshape(1, 1, 8)))
    return model(opset1.matmul(quantized(opset1.add(x, added), -3, 3), int8_weights([8, 8]), False, True), [place, x])


def of_positions(precision: str, batch: int, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    place = rng.integers(3, 40, (batch, length, 1)).astype(NUMPY[precision])
    return [place, rng.standard_normal((batch, length, 8)).astype(np.float32)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["i64", "u8"])
@pytest.mark.parametrize("after", ARITHMETIC)
@pytest.mark.parametrize("before", ARITHMETIC)
def test_integers_and_floats_are_computed_with_constants(by_form, form, precision, after, before):
    """As sizes and positions are; two sums, or two products, would be merged over the Convert between them and throw."""
    net = positions(precision, lambda *operands: opset1.sin(ARITHMETIC[after](*operands)), ARITHMETIC[before])
    inputs = of_positions(precision, 2, 5)
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.05, share=0.02)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, -1])
@pytest.mark.parametrize("levels", [-128, 0], ids=["i8", "u8"])
def test_patches_that_are_moved_to_rows_stay_integers(core, by_form, form, batch, levels):
    """A Convert of theirs would be moved before the Transpose, which is then a layer that moves floats."""
    x = parameter([batch, 3, 16, 16])
    patches = opset1.convolution(quantized(x, 0, 2.55), int8_weights([16, 3, 4, 4]), [4, 4], [0, 0], [0, 0], [1, 1])
    rows = opset1.reshape(quantized(patches, levels / 32, (levels + 255) / 32), const([0, 16, 16], "i64"), True)
    rows = opset1.transpose(rows, const([0, 2, 1], "i64"))
    token = opset1.reduce_mean(x, const([1, 2], "i64"), False)
    joined = opset1.concat([opset1.unsqueeze(token, const([1], "i64")), rows], 1)
    norm = opset6.mvn(joined, const([2], "i64"), True, 1e-6, "inside_sqrt")
    layer = opset1.matmul(quantized(norm, -2, 2), int8_weights([8, 16], seed=1), False, True)
    net = model([layer], x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (1, 3, 16, 16)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.1, share=0.01)
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = ovlpt.compile_model(net, "CPU", EXACT, cpu.config(this_cpu.takes_signed_activations()), core=core)
    executed = [ovlpt.execution_types(each, inputs).executed for each in (compiled, stock)]
    assert len(executed[0]) <= len(executed[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, -1])
@pytest.mark.parametrize("levels", [-128, 0], ids=["i8", "u8"])
def test_a_quantized_tensor_that_is_turned_before_a_sum_stays_in_integers(core, by_form, form, batch, levels):
    """As the positions of BoTNet's attention: its Convert would be moved before the Transpose, a layer more."""
    x = parameter([batch, 8, 6, 6])
    turned = []
    for axis, order, step in ((2, [0, 3, 1, 2], 1 / 32), (3, [0, 2, 1, 3], 1 / 40)):
        line = opset1.reduce_mean(convolution(quantized(x, 0, 2.55), 8, seed=axis), const([axis], "i64"), True)
        repeats = const([6 if at == axis else 1 for at in range(4)], "i64")
        plane = opset1.tile(quantized(line, levels * step, (levels + 255) * step), repeats)
        plane = opset1.transpose(plane, const(order, "i64"))
        turned.append(opset1.reshape(plane, const([0, 6, 8, 6], "i64"), True))
    net = model(opset1.softmax(opset1.add(*turned), 3), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (1, 8, 6, 6)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.05, share=0.01)
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = ovlpt.compile_model(net, "CPU", EXACT, cpu.config(this_cpu.takes_signed_activations()), core=core)
    executed = [ovlpt.execution_types(each, inputs).executed for each in (compiled, stock)]
    assert len(executed[0]) <= len(executed[1])


def test_a_difference_of_open_sizes_reads_integers(core):
    """Of quantized data less their mean, as a normalization over the channels begins; in bf16 a Convert would be a layer."""
    x = parameter([-1, 8, 8, 16])
    data = quantized(convolution(quantized(x, -1.28, 1.27), 8), -2.56, 2.54)
    normal = opset6.mvn(data, const([1], "i64"), True, 1e-6, "inside_sqrt")
    net = model(convolution(quantized(normal, -2.56, 2.54), 8, seed=1), x)
    lowered = ovlpt.transform(net, core=core, serializable=False)
    (scale,) = (
        node.input_value(0).get_node()
        for node in lowered.get_ordered_ops()
        if node.get_type_name() == "Subtract" and node.input_value(1).get_node().get_type_name() == "Multiply"
    )
    assert scale.get_input_element_type(0).get_type_name() == "i8"
    inputs = [np.random.default_rng(0).uniform(-1.28, 1.27, (2, 8, 8, 16)).astype(np.float32)]
    closed = net.clone()
    closed.reshape([2, 8, 8, 16])
    expected = core.compile_model(closed, "CPU", TRUTH)(inputs)
    assert_close(list(ovlpt.compile_model(net, "CPU", EXACT, core=core)(inputs).values()), list(expected.values()))


def test_integers_that_only_a_shift_along_the_last_axis_reads(core, infer):
    """They would be stored, and read again, for nothing."""
    x = parameter([1, 3, 4, 4])
    low, high = (np.float32(ends).reshape(1, 4, 1, 1) for ends in ((-1.3, -2, -1.2, -1.1), (1.5, 1, 1.4, 1.7)))
    weights = const(np.random.default_rng(0).standard_normal((4, 3, 1, 1)))
    layer = opset1.convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    quantize = opset1.fake_quantize(layer, *(const(end) for end in (low, high) * 2), 255)
    net = model(opset1.add(quantize, const(np.linspace(0.5, 2, 4).reshape(1, 1, 1, 4))), x)
    inputs, lowered = inputs_of(net), drop_in(net, core)
    assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))
    executed = ovlpt.execution_types(core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})).executed
    assert {layer.output_precision for layer in executed} == {"f32"}


@pytest.mark.parametrize("low", [-1.28, -1.0], ids=["symmetric", "zero point"])
def test_integers_that_only_a_dequantization_reads(core, infer, low):
    """FakeQuantizeMulFusion would write real values as integers."""
    x = parameter([1, 3, 2, 4])
    high = low + np.array([2.55, 1.5, 0.8], np.float32).reshape(1, 3, 1, 1)
    ends = [const(np.full((1, 3, 1, 1), low)), const(high)]
    net = model(opset1.sigmoid(opset1.fake_quantize(x, *ends, *ends, 256)), x)
    inputs = inputs_of(net)
    lowered = drop_in(net.clone(), core)
    assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))
    quantize = next(node for node in lowered.get_ops() if node.get_type_name() == "FakeQuantize")
    assert quantize.get_output_element_type(0).get_type_name() == "f32"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reduce", [None, opset1.reduce_max])
def test_an_output_of_integers_with_a_scale_of_one(core, tmp_path, form, reduce):
    """Where an int8 layer reads them, too, the scale would be dropped, and the output be of integers."""
    x = parameter([1, 8, 6, 6])
    data = quantized(x, 0, 255)
    read = data if reduce is None else reduce(data, const([2, 3], "i64"), False)
    net = model([read, convolution(data, 8)], x)
    values = np.random.default_rng(0).uniform(-9, 300, (1, 8, 6, 6)).astype(np.float32)
    found = compiled_in(form, net, core, tmp_path / "net.xml", **EXACT)([values])[0]
    expected = np.clip(np.rint(values), 0, 255)
    assert found.dtype == np.float32
    assert (found == (expected if reduce is None else expected.max((2, 3)))).all()


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("form", FORMS)
def test_integers_that_are_padded_along_the_first_axis_of_open_sizes(core, infer, tmp_path, form, precision):
    """The scale of the row that a Pad adds is another one. Its integers are no less read as such; a Convert was a layer."""
    x, y = parameter([4, -1, 8]), parameter([5, -1, 8], name="y")
    padded = opset1.pad(quantized(x, -1.28, 1.27), const([1, 0, 0], "i64"), const([0] * 3, "i64"), "constant", const(1))
    net = model(opset1.maximum(padded, y), [x, y])
    inputs = [np.random.default_rng(0).uniform(-1, 1, (rows, 6, 8)).astype(np.float32) for rows in (4, 5)]
    compiled = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=precision)
    layers = ovlpt.execution_types(compiled, inputs).executed
    assert "Pad" in {layer.layer_type for layer in layers if layer.precision == "i8"}
    assert not [layer for layer in layers if layer.layer_type == "Convert"]
    level = 1e-6 if precision == "f32" else 0.01
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "NO"), level=level, share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, -1])
def test_integers_that_several_scales_repeat_along_the_last_axis(core, by_form, form, batch):
    """As the splines of a Kolmogorov-Arnold network: their Converts became one, in a layer of its own that stores floats."""
    x = parameter([batch, 16])
    data = opset1.unsqueeze(quantized(x, -2.56, 2.54), const([-1], "i64"))
    product = None
    for count, width in ((8, 0.8), (9, 0.5), (10, 0.3)):
        places = const(np.linspace(-1, 1, count).reshape(1, 1, count))
        distance = quantized(opset1.multiply(opset1.subtract(data, places), const(1 / width)), -9.6, 9.525)
        term = opset1.reduce_sum(opset1.tanh(distance), const([-1], "i64"), True)
        product = term if product is None else opset1.multiply(product, term)
    net = model(opset1.reshape(product, const([0, 16], "i64"), True), x)
    inputs = [np.random.default_rng(0).uniform(-2, 2, (1, 16)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)])
    executed = [
        ovlpt.execution_types(each, inputs).executed
        for each in (ovlpt.compile_model(net, "CPU", EXACT, core=core), core.compile_model(net, "CPU", EXACT))
    ]
    assert len(executed[0]) <= len(executed[1])
    reading = [[layer.precision for layer in layers].count("i8") for layers in executed]
    assert reading[0] >= reading[1]


@pytest.mark.parametrize("shift", [True, False], ids=["means", "no means"])
@pytest.mark.parametrize("precision", ["u8", "i8"])
def test_an_image_of_open_sizes_is_normalized_without_a_convert(core, shift, precision):
    """In bf16 the Convert before a scale of three channels that are last was a layer that stock does not have."""
    x = parameter([-1, -1, -1, 3], precision, "image")
    real = opset1.convert(x, "f32")
    if shift:
        real = opset1.subtract(real, const([123.7, 116.3, 103.5]))
    scaled = opset1.transpose(opset1.divide(real, const([58.4, 57.1, 57.4])), const([0, 3, 1, 2], "i64"))
    net = model(convolution(quantized(scaled, -4.48, 4.445), 16), x)
    inputs = [np.random.default_rng(0).integers(0, 128, (2, 9, 12, 3)).astype(NUMPY[precision])]
    expected = list(core.compile_model(net, "CPU", TRUTH)(inputs).values())
    for floats in float_types(core):
        properties = {**EXACT, "INFERENCE_PRECISION_HINT": floats}
        compiled, stock = (
            ovlpt.compile_model(net, "CPU", properties, core=core),
            core.compile_model(net, "CPU", properties),
        )
        counts = [len(ovlpt.execution_types(each, inputs).executed) for each in (compiled, stock)]
        assert counts[0] <= counts[1]
        assert_close(list(compiled(inputs).values()), expected, level=0.02 * np.abs(expected[0]).max(), share=1)


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("size", [-1, 8])
def test_a_zero_point_after_a_shift_of_integers(core, size, native_only):
    """As an activation of integers (QLinearLeakyRelu) is read, rounded down: two sums, of integers and of floats, would be
    merged and throw.
    """
    x = parameter([-1 if size < 0 else 2, 4, size, 8])
    active = opset1.prelu(quantized(x, -4.48, 4.445), const([0.2]))
    integers = opset1.add(opset1.convert(opset1.divide(active, const(0.04)), "u8"), const(40, "u8"))
    real = opset1.multiply(opset1.subtract(opset1.convert(integers, "f32"), const(40)), const(0.04))
    net = model(convolution(quantized(opset1.maximum(real, const(-0.5)), 0, 5.1), 8), x)
    inputs = [np.random.default_rng(0).uniform(0.1, 4, (2, 4, 8, 8)).astype(np.float32)]
    expected = list(core.compile_model(net, "CPU", EXACT)(inputs).values())
    for floats in float_types(core):
        lowered = ovlpt.transform(net, core=core, native_only=native_only)
        compiled = core.compile_model(lowered, "CPU", {**EXACT, "INFERENCE_PRECISION_HINT": floats})
        assert_close(list(compiled(inputs).values()), expected, level=0.1 * np.abs(expected[0]).max(), share=1)
