from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Core
from tests.conftest import EXACT, Transformed, assert_close, inputs_of
from tests.graphs import dequantization, fake_quantize, integers, model, opset1, parameter, quantized


def test_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("GroupConvolution", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y/ZeroPoint: f32[2,4,4,4] = Subtract(x, [3,3,3,3]:u8)
        y_original: f32[2,4,4,4] = GroupConvolution(y/ZeroPoint, i8[4,1,1,3,3]) {pads_begin=[1, 1], pads_end=[1, 1]}
        y: f32[2,4,4,4] = Multiply(y_original, [0.005,0.02,0.045,0.08])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("GroupConvolution", "space", 3), "GroupConvolution", "not_per_channel")


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("channels", [4, 7])
def test_columns_of_a_product_are_no_channels(channels, native_only):
    """The native pass takes the zero point of 4 columns for one of 4 channels, and throws where there are 7."""
    product = opset1.matmul(
        fake_quantize(parameter((1, channels, 7, 8)), -1.0, 1.55), dequantization(integers((8, 4)), 0.02), False, False
    )
    weights = dequantization(integers((channels, 1, 1, 1, 1)), np.full((channels, 1, 1, 1, 1), 0.01))
    graph = model(opset1.group_convolution(product, weights, [1, 1], [0, 0], [0, 0], [1, 1]))
    result = Transformed(graph, Params(update_precisions=False, native_only=native_only))
    if native_only and channels == 4:
        assert result.transformed("GroupConvolution")
    else:
        assert result.reasons("GroupConvolution") == ["not_per_channel"]
        result.assert_numbers()


@pytest.mark.parametrize("space", [(3,), (3, 3), (3, 3, 3)])
def test_a_zero_point_by_output_of_a_group(core, infer, space):
    """The native pass knows it of two axes of space, and throws elsewhere."""
    ones = [1] * len(space)
    weights = dequantization(integers((2, 4, 2, *ones)), 0.01, np.arange(-4, 4).reshape(2, 4, 1, *ones))
    data = fake_quantize(parameter((1, 4, *space)), -1.28, 1.27)
    graph = model(opset1.group_convolution(data, weights, ones, [0] * len(space), [0] * len(space), ones))
    inputs = inputs_of(graph)
    result = ovlpt.transform(graph, core=core, native_only=True)
    assert_close(infer(result, inputs), infer(graph, inputs))


@pytest.mark.parametrize(("largest", "factor"), [(63, 2), (64, 1)])
def test_small_weights_of_signed_volumes_are_doubled(largest, factor):
    """Without VNNI the kernels halve them: what is odd was rounded."""
    weights = np.random.default_rng(0).integers(-largest, largest + 1, (4, 2, 1, 3, 3, 3))
    weights[0, 0, 0, 0, 0] = largest, 1, -1
    data = fake_quantize(parameter((1, 4, 5, 5, 5)), -1.28, 1.27)
    ones = [1] * 3
    layer = opset1.group_convolution(
        data, dequantization(opset1.constant(weights.astype(np.int8)), 0.01), ones, ones, ones, ones
    )
    result = Transformed(model(layer))
    (after,) = (node for node in result.after.get_ops() if node.get_type_name() == "GroupConvolution")
    np.testing.assert_array_equal(after.input_value(1).get_node().data, factor * weights)
    result.assert_numbers()
    if factor > 1:
        inputs = inputs_of(result.before)
        compiled = ovlpt.compile_model(result.before, properties=EXACT)(inputs)[0]
        assert_close([compiled], [simulate(result.before, Core())(inputs)[0]])
