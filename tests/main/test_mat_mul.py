import numpy as np
import pytest
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt import Params
from ovlpt.fake_quantize import fake_quantize as quantize
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, TRUTH, Transformed, assert_close, needs_avx2
from tests.graphs import dequantization, f32, fake_quantize, model, parameter, quantized, weights


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("MatMul", "channel", 3),
        """
        x: u8[2,3,4] = Parameter
        y_original: f32[2,3,5] = MatMul(x, i8[5,4]) {transpose_b=True}
        y/DequantizationSubtract: f32[2,3,5] = Subtract(y_original, f32[1,1,5])
        y: f32[2,3,5] = Multiply(y/DequantizationSubtract, [0.005,0.0125,0.02])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("MatMul", "space", 3), "MatMul", "contracted_scale")


def test_2_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("MatMul 2", "tensor", 3),
        """
        x: u8[3,4] = Parameter
        y_original: f32[3,5] = MatMul(x, i8[4,5])
        y/DequantizationSubtract: f32[3,5] = Subtract(y_original, f32[1,5])
        y: f32[3,5] = Multiply(y/DequantizationSubtract, 0.01)
        """,
    )


def test_transposed_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("MatMul transposed", "tensor", 3),
        """
        x: u8[2,4,3] = Parameter
        y_original: f32[2,3,5] = MatMul(x, i8[4,5]) {transpose_a=True}
        y/DequantizationSubtract: f32[2,3,5] = Subtract(y_original, f32[1,1,5])
        y: f32[2,3,5] = Multiply(y/DequantizationSubtract, 0.01)
        """,
    )


def test_of_data_with_a_zero_point(assert_transformed):
    assert_transformed(
        quantized("MatMul of data transposed", "tensor", 3),
        """
        x: u8[2,3,128] = Parameter
        y_original: f32[2,3,3] = MatMul(x, x) {transpose_b=True}
        y/DequantizationSums0: f32[2,3] = ReduceSum(x, 2:i64) {keep_dims=False}
        y/DequantizationSums1: f32[2,3] = Multiply(y/DequantizationSums0, -3)
        y/DequantizationSums2: f32[2,1,3] = Reshape(y/DequantizationSums1, [0,1,-1]:i64) {special_zero=True}
        y/DequantizationSums3: f32[2,3,3] = Add(y_original, y/DequantizationSums2)
        y/DequantizationSums4: f32[2,3] = ReduceSum(x, 2:i64) {keep_dims=False}
        y/DequantizationSums5: f32[2,3] = Multiply(y/DequantizationSums4, -3)
        y/DequantizationSums6: f32[2,3] = Add(y/DequantizationSums5, 1152)
        y/DequantizationSums7: f32[2,3,1] = Reshape(y/DequantizationSums6, [0,-1,1]:i64) {special_zero=True}
        y/DequantizationSums8: f32[2,3,3] = Add(y/DequantizationSums3, y/DequantizationSums7)
        y: f32[2,3,3] = Multiply(y/DequantizationSums8, 0.25)
        """,
    )


@pytest.mark.parametrize(
    "name, code", [("MatMul of short data", "weights_zero_point"), ("MatMul of data", "contracted_scale")]
)
def test_of_data_that_stays(assert_rejected, name, code):
    granularity = "tensor" if "short" in name else "space"
    assert_rejected(quantized(name, granularity, 3), "MatMul", code)


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("axes", [1, 2])
def test_an_interval_of_fewer_axes_along_the_sum(assert_rejected, rank, axes):
    interval = np.linspace(1, 2, 4).reshape((1,) * (axes - 1) + (4,))
    data = fake_quantize(parameter((1, 2, 3, 4)[-rank:]), -interval, interval)
    for second in (weights((4, 5), 0.01), fake_quantize(parameter((4, 5), "y"), -1.28, 1.27, name="fq y")):
        assert_rejected(model(opset1.matmul(data, second, False, False)), "MatMul", "contracted_scale")


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 5)], ids=str)
def test_weights_with_a_scale_along_the_sum(assert_rejected, shape):
    """The weights are to be quantized otherwise, not the data."""
    ends = np.linspace(0.5, 1.27, 4).reshape(4, *(1 for _ in shape[1:]))
    kernel = fake_quantize(f32(np.linspace(-0.5, 0.5, np.prod(shape)).reshape(shape)), -ends, ends, 255, "kernel")
    data = fake_quantize(parameter((1, 2, 3, 4)), 0.0, 2.55)
    assert_rejected(model(opset1.matmul(data, kernel, False, False)), "MatMul", "weights_granularity")


@needs_avx2
def test_an_interval_of_fewer_axes_along_the_rows():
    interval = np.linspace(1, 2, 3)
    data = fake_quantize(parameter((2, 4, 3)), -interval, interval * 127 / 128)
    result = Transformed(model(opset1.matmul(data, weights((4, 5), 0.01), True, False)))
    assert result.transformed("MatMul")
    result.assert_numbers()


VECTORS = {
    "vector @ matrix": ((8,), (8, 4), False),
    "vector @ matrix.T": ((8,), (4, 8), True),
    "vector @ matrices": ((8,), (2, 8, 4), False),
    "vector @ vector": ((8,), (8,), False),
    "matrix @ vector": ((3, 8), (8,), False),
    "matrices @ vector": ((2, 3, 8), (8,), False),
    "images @ vector": ((2, 2, 3, 8), (8,), False),
    "one element": ((1,), (1, 4), False),
}


@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("low", [0.0, -1.0], ids=["symmetric", "zero_point"])
@pytest.mark.parametrize("by_channel", ["tensor", "rows", "columns"])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors(core, infer, name, by_channel, low, serializable):
    """The result of a vector has no rows, that with a vector no columns; nor have scales and zero points."""
    shape, kernel, transposed = VECTORS[name]
    high, scale, rng = np.float32(2.55), np.float32(0.01), np.random.default_rng(0)
    if by_channel == "rows" and len(shape) > 1:
        high = np.linspace(1, 2.5, 3, dtype=np.float32).reshape(3, 1)
    if by_channel == "columns" and len(kernel) > 1:
        scale = np.linspace(0.01, 0.03, 4, dtype=np.float32).reshape((4, 1) if transposed else (1, 4))
    ends = np.float32(low / 2.55) * high, high * np.float32(1 + low / 2.55)
    stored = rng.integers(-60, 61, kernel)
    matrix = opset1.multiply(opset1.convert(opset1.constant(stored.astype(np.int8)), "f32"), f32(scale))
    data = fake_quantize(parameter(shape), *ends)
    graph = model(opset1.matmul(data, matrix, False, transposed))
    values, columns = rng.uniform(-1, 2.5, shape).astype(np.float32), stored * scale
    quantized_values = quantize(values, *ends, *ends, 256)
    expected = quantized_values @ (columns.swapaxes(-1, -2) if transposed and columns.ndim > 1 else columns)
    for native_only in (False, True):
        result = ovlpt.transform(graph, native_only=native_only, core=core, serializable=serializable)
        (product,) = (node for node in result.get_ops() if node.get_type_name() == "MatMul")
        assert {value.get_element_type().get_type_name() for value in product.input_values()} <= {"u8", "i8"}
        (found,) = infer(result, [values])
        assert found.shape == expected.shape
        assert_close([found], [expected.astype(np.float32)])


def test_equal_scales_along_the_summed_axis_in_native_only():
    """As many as no column: the native pass throws."""
    data = dequantization(parameter((1, 8), precision=np.uint8), np.full((1, 8), 0.01))
    ends = np.linspace(1, 2, 4).reshape(4, 1)
    kernel = fake_quantize(f32(np.random.default_rng(0).uniform(-0.9, 0.9, (4, 8))), -ends, ends, 255)
    result = Transformed(model(opset1.matmul(data, kernel, False, True)), Params(native_only=True))
    assert result.transformed("MatMul")
    result.assert_numbers()


def test_weights_first_where_sums_are_cut_off(core):
    """Without VNNI the data is the factor whose range would have to be halved: off by 80 % of the largest, stock was right."""
    generator, x = np.random.default_rng(0), parameter([2, 6, 8])
    stored = generator.integers(-63, 64, (12, 8))
    matrix = opset1.multiply(opset1.convert(opset1.constant(stored.astype(np.int8)), "f32"), f32(0.01))
    graph = model(opset1.matmul(matrix, fake_quantize(x, -2.56, 2.54), False, True))
    values = generator.choice([-2.56, 2.54], (2, 6, 8)).astype(np.float32)
    compiled = ovlpt.compile_model(graph, "CPU", EXACT, cpu.config(slow_mat_mul=True), core=core)
    assert_close([compiled([values])[0]], [(stored * 0.01 @ values.swapaxes(1, 2)).astype(np.float32)])
    lowered = ovlpt.transform(graph, config=cpu.config(slow_mat_mul=True), core=core)
    (product,) = (node for node in lowered.get_ops() if node.get_type_name() == "MatMul")
    assert {value.get_element_type().get_type_name() for value in product.input_values()} == {"f32"}


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_with_positions_out_of_a_quantized_table(core, native_only, axis):
    """As in attention with relative positions that another quantizer quantized twice: it threw."""
    generator = np.random.default_rng(0)
    x = parameter([6 if axis == 0 else 11, 4, 16])
    # so small that CPUs without VNNI, which add two products in 16 bits, do not saturate
    stored = opset1.constant(generator.integers(112, 145, (11, 16)), np.uint8)
    table = opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), f32(128)), f32(0.01))
    indices = generator.integers(0, 11, (6, 5)) if axis == 0 else generator.integers(0, 16, (6, 16))
    taken = opset1.gather(table, opset1.constant(indices, np.int64), opset1.constant(axis, np.int64))
    again = opset1.fake_quantize(taken, f32(-0.64), f32(0.635), f32(-0.64), f32(0.635), 256)
    data = opset1.fake_quantize(x, f32(-1), f32(1.55), f32(-1), f32(1.55), 256)
    net = model(opset1.matmul(data, again, False, True), x)
    inputs = [generator.uniform(-1, 1.5, list(x.get_output_shape(0))).astype(np.float32)]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)[0]
    compiled = ovlpt.compile_model(net, "CPU", EXACT, native_only=native_only, core=core)
    assert_close([compiled(inputs)[0]], [expected], level=0.02, share=1)
    assert all(layer.is_int8 for layer in ovlpt.execution_types(compiled).executed if layer.layer_type == "MatMul")
