from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.cleanup import native
from ovlpt.cleanup.multiply_to_group_convolution import MultiplyToGroupConvolutionTransformation
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed, run_pass
from tests.graphs import dequantization, f32, model, parameter

RESTRICTION = ovlpt.PrecisionsRestriction.create("GroupConvolution", {0: ["u8"], 1: ["i8"]})


@pytest.mark.parametrize(
    ("element_type", "shape", "becomes"),
    [
        (np.uint8, (1, 4, 1, 1), True),
        (np.int8, (1, 4, 1, 1), False),  # the restriction forbids it
        (np.uint8, (1, 1, 6, 1), False),  # a scale that is not that of channels
    ],
)
def test_a_scale_of_channels(element_type, shape, becomes):
    data = opset1.convert(parameter((1, 4, 6, 6), precision=element_type), "f32")
    graph = model(opset1.multiply(data, f32(np.ones(shape))))
    run_pass(graph, MultiplyToGroupConvolutionTransformation(restrictions=(RESTRICTION,)))
    assert ("GroupConvolution" in {node.get_type_name() for node in graph.get_ops()}) is becomes


@pytest.mark.parametrize("kind", ["multiply", "add"])
def test_the_scale_of_a_product_stays_natively(kind):
    """As in the native library, which makes a layer of that of a sum."""
    x, y = parameter((1, 4, 6, 6), name="x"), parameter((1, 4, 6, 6), name="y")
    scaled = opset1.multiply(getattr(opset1, kind)(x, y), f32(np.ones((1, 4, 1, 1))))
    result = Transformed(model(scaled), ovlpt.Params(native_only=True), pass_config=ovlpt.PassConfig())
    assert ("GroupConvolution" in {node.get_type_name() for node in result.after.get_ops()}) is (kind == "add")


@pytest.mark.parametrize(
    "kind", [MultiplyToGroupConvolutionTransformation, native.MultiplyToGroupConvolutionTransformation]
)
def test_the_scale_of_weights_that_a_layer_in_float_reads(kind):
    """With floats in f16 the plugin throws on a layer of constants. The native library makes one."""
    stored = opset1.constant(np.ones((4, 4, 3, 3), np.int8))
    weights = opset1.multiply(opset1.convert(stored, "f32"), f32(np.ones((4, 1, 1, 1))))
    graph = model(opset1.convolution(parameter((1, 4, 6, 6)), weights, [1, 1], [0, 0], [0, 0], [1, 1]))
    run_pass(graph, kind())
    is_native = kind is native.MultiplyToGroupConvolutionTransformation
    assert ("GroupConvolution" in {node.get_type_name() for node in graph.get_ops()}) is is_native


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "kind", [MultiplyToGroupConvolutionTransformation, native.MultiplyToGroupConvolutionTransformation]
)
def test_a_factor_after_a_scale_by_column(kind, first):
    """The native library loses the scale."""
    scaled = dequantization(parameter((1, 4, 6, 4), precision=np.uint8), np.linspace(1, 2, 4).reshape(1, 1, 1, 4))
    factor = f32(np.ones((1, 4, 1, 1)))
    graph = model(opset1.multiply(factor, scaled) if first else opset1.multiply(scaled, factor))
    run_pass(graph, kind(restrictions=(RESTRICTION,)))
    is_native = kind is native.MultiplyToGroupConvolutionTransformation
    assert ("GroupConvolution" in {node.get_type_name() for node in graph.get_ops()}) is is_native
