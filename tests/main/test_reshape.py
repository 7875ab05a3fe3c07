import numpy as np
import pytest

from ovlpt import Params, transform
from ovlpt.openvino_api import opset1
from ovlpt.operations.values import blocks_of
from tests import networks
from tests.conftest import assert_close, inputs_of
from tests.graphs import quantized
from tests.lowered import drop_in

NATIVE = Params(native_only=True)


def test_flat_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Reshape flat", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,64] = Reshape(x, [0,-1]:i64) {special_zero=True}
        y/DequantizationSubtract: f32[2,64] = Subtract(y_original, 3)
        y: f32[2,64] = Multiply(y/DequantizationSubtract, f32[1,64])
        """,
    )


def test_flat_along_space_zero_point_stays_in_native_only(assert_rejected):
    assert_rejected(quantized("Reshape flat", "space", 3), "Reshape", "not_per_channel", NATIVE)


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Reshape space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,16] = Reshape(x, [0,0,16]:i64) {special_zero=True}
        y/DequantizationSubtract: f32[2,4,16] = Subtract(y_original, 3)
        y: f32[2,4,16] = Multiply(y/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def test_groups_per_channel_zero_point_stays_in_native_only(assert_rejected):
    assert_rejected(quantized("Reshape groups", "channel", 3), "Reshape", "channels_merge", NATIVE)


def test_groups_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("Reshape groups", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,2,2,4,4] = Reshape(x, i64[5]) {special_zero=True}
        y/DequantizationSubtract: f32[2,2,2,4,4] = Subtract(y_original, 3)
        y: f32[2,2,2,4,4] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_flat_along_space_zero_point(assert_transformed):
    assert_transformed(
        quantized("Reshape flat", "space", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,64] = Reshape(x, [0,-1]:i64) {special_zero=True}
        y/DequantizationSubtract: f32[2,64] = Subtract(y_original, 3)
        y: f32[2,64] = Multiply(y/DequantizationSubtract, f32[1,64])
        """,
    )


def test_groups_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("Reshape groups", "channel", 3), "Reshape", "channel_moves")


@pytest.mark.parametrize(
    "before, after, blocks",
    [
        ((2, 3, 4), (6, 4), [((0, 1), (0,)), ((2,), (1,))]),
        ((1, 64, 8), (1, 8, 8, 8), [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]),
        ((None, 4, 6), (None, 24), [((0,), (0,)), ((1, 2), (1,))]),
        ((4, 6), (6, 4), [((0, 1), (0, 1))]),
        ((2, 3), (2, 3, 1, 1), [((0,), (0,)), ((1,), (1, 2, 3))]),
        ((None, 4), (None, 2), None),
        ((None, None, 4), (None, 4), None),
        ((None, 4), (4, None), None),
    ],
)
def test_axes_that_hold_the_same_elements(before, after, blocks):
    found = blocks_of(before, after)
    assert blocks == (None if found is None else [(tuple(axes), tuple(others)) for axes, others in found])


@pytest.mark.parametrize("columns", [4, 8])
def test_a_scale_per_column_before_an_axis_more(core, infer, columns):
    """After a MatMul the channels lie last. The native library throws, or reads them as if they did not."""
    x = networks.parameter([1, 8, 5])
    weights = networks.int8_weights([columns, 5])
    product = opset1.matmul(networks.quantized(x, -2.56, 2.54), weights, False, True)
    net = networks.model(opset1.reshape(product, networks.const([1, 8, columns, 1], "i64"), False), x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("rows", [16, 64])
def test_heads_that_become_images_of_a_dynamic_batch(core, infer, rows):
    """``[?,2,64,8]`` as ``[?,4,rows,8]`` or with other sizes has two heads in one image or each in an image of its own: no
    channel is left to follow. The native library takes every dynamic batch for the same: wrong numbers, or an exception.
    """
    x = networks.parameter([-1, 2, 64, 8])
    by_head = [np.array([low, high], np.float32).reshape(1, 2, 1, 1) for low, high in ((-1.28, -0.32), (1.27, 2.5))]
    quantized_x = opset1.fake_quantize(x, *map(networks.const, by_head * 2), 256)
    images = opset1.reshape(quantized_x, networks.const([-1, 4, rows, 8], "i64"), False)
    net = networks.model(opset1.relu(images), x)
    inputs = [np.random.default_rng(0).uniform(-2, 3, (2, 2, 64, 8)).astype(np.float32)]
    for lowered in (drop_in(net, core), transform(net, core=core)):
        assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))
