"""A GPU in half precision: sums of integers, their scales and biases stay in f32."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import values_of
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.openvino_api import Model, opset1
from ovlpt.operations import WEIGHTED
from tests.gpu_networks import looped, masks_nothing
from tests.networks import (
    const,
    convolution,
    depthwise,
    encoder,
    int8_weights,
    model,
    one_convolution,
    parameter,
    quantized,
    residual,
    shared_zero_point,
)


def gelu_between() -> Model:
    """An activation between the bias and the next quantization, which reads it alone."""
    x = parameter([1, 8, 32])
    first = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([48, 32], seed=1), False, True)
    biased = opset1.add(first, const(np.linspace(-1, 1, 48).reshape(1, 1, 48)))
    return model(opset1.matmul(quantized(opset1.sigmoid(biased), 0, 1), int8_weights([16, 48]), False, True), x)


def pooled() -> Model:
    """The scale follows a pool and a Reshape."""
    x = parameter([1, 16, 8, 8])
    pool = opset1.avg_pool(convolution(quantized(x, 0, 2.55), 16), [2, 2], [0, 0], [0, 0], [2, 2], False)
    return model(opset1.softmax(opset1.reshape(pool, const([1, -1], "i64"), False), 1), x)


def float_branch() -> Model:
    """Float numbers are added in the scale of integers."""
    x, y = parameter([1, 16, 8, 8]), parameter([1, 16, 8, 8], name="y")
    both = opset1.add(quantized(depthwise(quantized(x, 0, 2.55)), -3, 3), opset1.sigmoid(y))
    return model(opset1.tanh(both), [x, y])


def before_float_layer() -> Model:
    x = parameter([1, 16, 8, 8])
    weights = const(np.random.default_rng(0).standard_normal((4, 16, 1, 1)))
    int8 = convolution(quantized(x, 0, 2.55), 16)
    return model(opset1.convolution(int8, weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)


NETWORKS = (
    before_float_layer, encoder, float_branch, gelu_between, one_convolution, pooled, residual, shared_zero_point,
)  # fmt: skip


def in_half(net: Model) -> Model:
    return ovlpt.transform(net, "GPU", ovlpt.plugin_config.gpu.config(), precision="f16")


@pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
def test_no_half_holds_a_sum(build):
    """From each layer down to its scale, or to the quantization that holds it."""
    lowered = in_half(build())
    layers = [node for node in lowered.get_ops() if node.get_type_name() in WEIGHTED and is_relaxed(node)]
    assert layers
    pending, scales = [layer.output(0) for layer in layers], 0
    while pending:
        value = pending.pop()
        assert value.get_element_type().get_type_name() == "f32", value.get_node().get_friendly_name()
        for target in value.get_target_inputs():
            reader = target.get_node()
            others = [each for port, each in enumerate(reader.input_values()) if port != target.get_index()]
            constants = [each.get_element_type().get_type_name() for each in others]
            if reader.get_type_name() in ("Multiply", "FakeQuantize"):
                assert constants == ["f64"] * len(constants), reader.get_friendly_name()
                scales += 1
            elif reader.get_type_name() != "Result":
                pending += reader.outputs()
    assert scales


def test_scale_and_bias_of_a_layer():
    """The shift comes first, in integers, and neither loses bits; the last operation of the layer reports f16."""
    x = parameter([1, 4, 32])
    layer = opset1.matmul(quantized(x, -1.0, 1.55), int8_weights([8, 32]), False, True)
    layer.set_friendly_name("layer")
    lowered = in_half(model(opset1.softmax(layer, 2), x))
    chain, node = [], next(node for node in lowered.get_ops() if node.get_type_name() == "MatMul")
    while node.get_type_name() != "Softmax":
        chain.append((node.get_type_name(), *(each.get_element_type().get_type_name() for each in node.outputs())))
        (target,) = node.output(0).get_target_inputs()
        node = target.get_node()
    assert chain == [
        ("MatMul", "f32"), ("Subtract", "f32"), ("Clamp", "f32"), ("Multiply", "f16"), ("Convert", "f32"),
    ]  # fmt: skip


def test_the_ends_of_an_interval_are_not_rounded():
    """Data may be half precision; ends in half precision would give another level."""
    x = parameter([1, 4, 32])
    net = model(opset1.matmul(quantized(opset1.tanh(x), -0.9, 0.93), int8_weights([8, 32]), False, True), x)
    (quantize,) = (node for node in in_half(net).get_ops() if node.get_type_name() == "FakeQuantize")
    assert [value.get_element_type().get_type_name() for value in quantize.input_values()] == ["f32", *["f64"] * 4]


def test_only_inputs_of_the_model_are_read_in_f32():
    """What a body is given is half precision: a quantization that reads it in f32 was fused into what made it, with numbers
    of another type.
    """

    def kept(net: Model) -> list[bool]:
        quantizes = [node for node in all_nodes(in_half(net)) if node.get_type_name() == "FakeQuantize"]
        return [
            any(key.startswith(("DisablePrecision", "precise")) for key in node.get_rt_info()) for node in quantizes
        ]

    assert kept(one_convolution()) == [True]
    assert kept(looped()) == [True, False]


def test_what_changes_nothing_is_left_out():
    """The plugin leaves it out, too, and what it was to report: two types then met in a MatMul."""
    assert not [node for node in in_half(masks_nothing()).get_ops() if node.get_type_name() == "Add"]


def test_a_residual_branch_in_the_scale_of_integers():
    """Its numbers may be as large as theirs."""
    x, y = parameter([1, 16, 8, 8]), parameter([1, 16, 8, 8], name="y")
    layer = convolution(quantized(x, 0, 2.55), 16)
    net = model(quantized(opset1.add(quantized(layer, -4, 4), opset1.sigmoid(y)), -5, 5), [x, y])
    lowered = in_half(net)
    adds = [node for node in lowered.get_ops() if node.get_type_name() == "Add" and is_relaxed(node)]
    for node in adds:
        assert [each.get_element_type().get_type_name() for each in node.outputs()] == ["f32"]


def two_readers(factor: float, has_output: bool = True) -> Model:
    """A layer before a float layer, and the same times ``factor`` for an output, whose scale stays in f32."""
    x = parameter([1, 16, 8, 8])
    sums = convolution(quantized(x, -2.56, 2.54), 16)
    kernel = const(np.random.default_rng(0).standard_normal((4, 16, 1, 1)))
    layer = opset1.convolution(sums, kernel, [1, 1], [0, 0], [0, 0], [1, 1])
    other = opset1.add(opset1.multiply(sums, const(np.float32(factor))), const(np.ones((1, 16, 1, 1))))
    return model([layer, other] if has_output else layer, x)


def scale_in_half(net: Model) -> np.ndarray:
    """Of the Multiply that leaves the layer in f16."""
    (found,) = (
        node
        for node in in_half(net).get_ops()
        if node.get_type_name() == "Multiply" and node.get_output_element_type(0).get_type_name() == "f16"
    )
    return values_of(found.input_value(1).get_node()).astype(np.float32)


@pytest.mark.parametrize(("factor", "off"), [(1.0, True), (0.25, False)])
def test_only_a_scale_of_the_same_numbers_as_one_in_f32_is_moved_by_its_last_bit(factor, off):
    alone, beside = scale_in_half(two_readers(factor, False)), scale_in_half(two_readers(factor))
    np.testing.assert_array_equal(beside, np.nextafter(alone, np.float32(np.inf)) if off else alone)
