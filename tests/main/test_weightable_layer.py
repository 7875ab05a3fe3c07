"""What convolutions share."""

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.graph.dequantization import dequantization_below
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import dequantization, fake_quantize, integers, model, parameter, quantized, weights

LAYERS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData")
each_layer = pytest.mark.parametrize("name", LAYERS)


def layer_of(graph) -> object:
    (found,) = (node for node in graph.get_ops() if node.get_type_name() in LAYERS)
    return found


@each_layer
@pytest.mark.parametrize("zero_point", [None, 3])
def test_the_scales_of_data_and_weights_are_multiplied(name, zero_point):
    """The zero point is subtracted before the layer, as integers, and the product of the scales follows."""
    before = quantized(name, "tensor", zero_point)
    result = Transformed(before)
    layer = layer_of(result.after)
    assert layer.input_value(1).get_element_type().get_type_name() == "i8"
    source = layer.input_value(0).get_node()
    assert source.get_type_name() == ("Parameter" if zero_point is None else "Subtract")
    if zero_point is not None:
        assert set(source.input_value(1).get_node().data.reshape(-1)) == {zero_point}
        assert source.input_value(1).get_element_type().get_type_name() == "u8"
    weights_scale = layer_of(before).input_value(1).get_node().input_value(1).get_node().data
    after = dequantization_below(layer)
    assert after.zero_point is None
    np.testing.assert_allclose(np.unique(after.scale), np.unique(0.5 * weights_scale), rtol=1e-6)
    result.assert_numbers()


@each_layer
def test_a_layer_that_stays_reads_plain_weights(name):
    """Its data has a scale along space."""
    result = Transformed(quantized(name, "space", None))
    assert result.reasons(name) == ["not_per_channel"]
    weights_input = layer_of(result.after).input_value(1)
    assert weights_input.get_node().get_type_name() == "Constant"
    assert weights_input.get_element_type().get_type_name() == "f32"
    result.assert_numbers()


@each_layer
def test_a_zero_point_beyond_the_type_stays(assert_rejected, name):
    assert_rejected(quantized(name, "tensor", 300), name, "zero_point_range")


def test_data_of_another_type_stays(assert_rejected):
    data = dequantization(parameter((1, 4, 3, 3), precision=np.int32), 0.5)
    assert_rejected(convolution(data, weights([3, 4, 1, 1], 0.02)), "Convolution", "activation_precision")


def test_a_zero_point_of_the_weights_between_integers_stays(assert_rejected):
    kernel = dequantization(integers([3, 4, 1, 1]), 0.02, 2.5)
    data = dequantization(parameter((1, 4, 3, 3), precision=np.uint8), 0.5)
    assert_rejected(convolution(data, kernel), "Convolution", "fractional_zero_point")


def convolution(data, kernel):
    return model(opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1]))


def after_a_fraction(pad: int, groups: int = 0):
    """A zero point of 99.85: no level of the data is zero."""
    data = fake_quantize(parameter((2, 4, 6, 6)), -1.0, 1.554)
    window = [1, 1], [pad, pad], [pad, pad], [1, 1]
    if groups:
        return model(opset1.group_convolution(data, weights([groups, 3, 4 // groups, 2, 2], 0.02), *window))
    return model(opset1.convolution(data, weights([3, 4, 2, 2], 0.02), *window))


@pytest.mark.parametrize("groups", [0, 2])
def test_a_fractional_zero_point_keeps_the_numbers(groups):
    """The native pass rounds it, and every result is shifted."""
    result = Transformed(after_a_fraction(0, groups))
    assert result.transformed("GroupConvolution" if groups else "Convolution")
    result.assert_numbers()
    native = Transformed(after_a_fraction(0, groups), Params(native_only=True))
    with pytest.raises(AssertionError):
        native.assert_numbers(1e-4)


def test_a_fractional_zero_point_under_padding_is_rounded():
    """As in the native library: all results are shifted by less than half a step of the data."""
    result = Transformed(after_a_fraction(1))
    assert result.transformed("Convolution")
    result.assert_numbers(0.01)
