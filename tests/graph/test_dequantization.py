from __future__ import annotations

import numpy as np
import pytest

from ovlpt.graph.dequantization import dequantization_below, read_dequantization, write_dequantization
from ovlpt.openvino_api import opset1
from tests.networks import const, parameter, quantized


def chain(convert=True, zero_point=None, scale=None, shape=(1, 4, 2, 2)):
    data = parameter(shape, "u8" if convert else "f32")
    node = opset1.convert(data, "f32") if convert else data
    if zero_point is not None:
        node = opset1.subtract(node, zero_point)
    if scale is not None:
        node = opset1.multiply(node, scale)
    return data, node


@pytest.mark.parametrize("convert", [True, False])
@pytest.mark.parametrize("zero_point", [None, 3.0])
@pytest.mark.parametrize("scale", [None, 0.5])
def test_what_is_there_is_read(convert, zero_point, scale):
    data, node = chain(
        convert, None if zero_point is None else const(zero_point), None if scale is None else const(scale)
    )
    found = read_dequantization(node.output(0))
    assert found.data.get_node().get_friendly_name() == data.get_friendly_name()
    assert found.empty is (zero_point is None and scale is None)
    assert (found.convert is not None) is convert
    assert (None if found.zero_point is None else float(found.zero_point)) == zero_point
    assert (None if found.scale is None else float(found.scale)) == scale


def test_constants_on_either_side_and_after_a_convert():
    data = parameter([1, 4, 2, 2], "u8")
    zero_point = opset1.convert(const(np.full((1, 4, 1, 1), 7), "u8"), "f32")
    node = opset1.multiply(const(0.5), opset1.subtract(opset1.convert(data, "f32"), zero_point))
    found = read_dequantization(node.output(0))
    assert found.zero_point_precision == "u8"
    assert found.zero_point.tolist() == np.full((1, 4, 1, 1), 7.0).tolist()
    assert float(found.scale) == 0.5


def test_a_constant_that_enlarges_the_data_is_no_scale():
    _, node = chain(scale=const(np.ones((1, 4, 2, 2))), shape=(1, 4, 1, 1))
    assert read_dequantization(node.output(0)).empty


def test_integer_arithmetic_is_no_dequantization():
    data = opset1.parameter([1, 4], np.int64)
    node = opset1.multiply(data, opset1.constant(np.int64(2)))
    assert read_dequantization(node.output(0)).empty


@pytest.mark.parametrize("stored", ["f32", "u8"])
def test_a_constant_less_data_is_no_zero_point(stored):
    """Its sign would turn; the scale after it can be read."""
    quantize = quantized(parameter([1, 4, 2, 2]), 0, 255)
    left = const(np.full((1, 4, 1, 1), 7), stored)
    difference = opset1.subtract(left if stored == "f32" else opset1.convert(left, "f32"), quantize)
    found = read_dequantization(opset1.multiply(difference, const(0.5)).output(0))
    assert found.subtract is None
    assert found.data == difference.output(0)
    assert float(found.scale) == 0.5
    assert dequantization_below(quantize).empty


def test_written_and_read_again():
    data = parameter([1, 4, 2, 2], "u8")
    scale, zero_point = np.full((1, 4, 1, 1), 0.25, np.float32), np.float32(5)
    output, nodes = write_dequantization(data.output(0), "fq", scale, zero_point)
    assert [node.get_friendly_name() for node in nodes] == [
        "fq/DequantizationConvert", "fq/DequantizationSubtract", "fq/DequantizationMultiply",
    ]  # fmt: skip
    found = read_dequantization(output)
    assert np.array_equal(found.scale, scale)
    assert found.zero_point == zero_point


def test_arithmetic_in_f32_with_a_result_in_f16():
    data = parameter([1, 4], "u8")
    output, _ = write_dequantization(data.output(0), "fq", np.float32(0.5), precision="f32", output_precision="f16")
    assert output.get_element_type().get_type_name() == "f16"
    assert read_dequantization(output).precision == "f32"


def test_below_a_fake_quantize():
    quantize = quantized(parameter([1, 4]), 0, 255)
    low = opset1.convert(opset1.convert(quantize, "u8"), "f32")
    opset1.multiply(opset1.subtract(low, const(2.0)), const(0.5))
    assert dequantization_below(quantize).convert is not None
    assert dequantization_below(quantized(parameter([1, 4]), 0, 255), convert_is_mandatory=True).empty
