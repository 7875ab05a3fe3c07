"""What callbacks may ask, and that asking changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt import predicates
from ovlpt.graph.text import to_text
from ovlpt.openvino_api import Model, opset1
from tests.graphs import f32, fake_quantize, model, opset8, parameter, weights

SHAPE = (1, 3, 4, 4)


def qdq(low: str = "u8", levels: int = 256):
    quantize = opset1.fake_quantize(parameter(SHAPE), f32(0), f32(1), f32(0), f32(255), levels)
    subtract = opset1.subtract(opset1.convert(opset1.convert(quantize, low), "f32"), f32(3))
    return opset1.multiply(subtract, f32(0.1)), subtract


@pytest.mark.parametrize(
    ("shape", "constant", "answer"),
    [
        (SHAPE, (1, 3, 1, 1), True),
        ((1, 3, 2, 4, 4), (1, 3, 1, 1, 1), True),
        ((1, 3, 4), (1, 3, 1), False),
        ((1, 3), (1, 3), False),
    ],
)
def test_a_multiply_that_could_be_a_group_convolution(shape, constant, answer):
    node = opset1.multiply(parameter(shape), f32(np.ones(constant)))
    assert predicates.can_be_transformed_to_group_convolution(node) is answer


def test_a_product_of_activations_is_no_group_convolution():
    node = opset1.multiply(parameter(SHAPE), parameter(SHAPE, "other"))
    assert not predicates.can_be_transformed_to_group_convolution(node)
    assert not predicates.is_dynamic_or_scalar(node)


@pytest.mark.parametrize(("constant", "answer"), [((), True), ((1, 1, 1, 1), True), ((1, 3, 1, 1), False)])
def test_dynamic_or_scalar(constant, answer):
    assert predicates.is_dynamic_or_scalar(opset1.multiply(parameter(SHAPE), f32(np.ones(constant)))) is answer


def test_a_pair_that_lpt_takes_itself():
    multiply, subtract = qdq()
    assert predicates.are_quantize_and_dequantize_supported_for_multiply(multiply)
    assert predicates.are_quantize_and_dequantize_supported_for_subtract(subtract)


def test_a_pair_of_other_levels_is_not_taken():
    multiply, subtract = qdq(levels=77)
    assert not predicates.are_quantize_and_dequantize_supported_for_multiply(multiply)
    assert not predicates.are_quantize_and_dequantize_supported_for_subtract(subtract)


def test_a_subtract_with_two_consumers_is_not_taken():
    _, subtract = qdq()
    other = opset1.multiply(subtract, f32(0.2))
    assert len(subtract.output(0).get_target_inputs()) == 2
    assert predicates.are_quantize_and_dequantize_supported_for_multiply(other)
    assert not predicates.are_quantize_and_dequantize_supported_for_subtract(subtract)


def test_dequantized_weights_are_taken_and_a_plain_product_is_not():
    assert predicates.are_quantize_and_dequantize_supported_for_multiply(weights((3, 3, 1, 1), 0.1))
    product = opset1.multiply(parameter(SHAPE), f32(0.1))
    assert not predicates.are_quantize_and_dequantize_supported_for_multiply(product)


def quantized_body(levels: int = 256) -> Model:
    x, inner, other = parameter((2,)), parameter((2,), "inner"), parameter((2,), "other")
    condition = opset1.parameter([1], np.bool_)
    then, otherwise = model(fake_quantize(inner, 0.0, 1.0, levels)), model(opset1.relu(other))
    node = opset8.if_op(condition)
    node.set_then_body(then)
    node.set_else_body(otherwise)
    node.set_input(x.output(0), inner, other)
    return Model([opset1.result(node.set_output(then.results[0], otherwise.results[0]))], [condition, x], "net")


def test_a_quantized_model():
    quantized = model(opset1.relu(fake_quantize(parameter(SHAPE), 0.0, 2.55)))
    assert predicates.is_function_quantized(quantized)
    assert predicates.is_function_quantized(quantized, {255, 256})
    assert not predicates.is_function_quantized(quantized, {16})
    assert not predicates.is_function_quantized(model(opset1.relu(parameter(SHAPE))))
    assert predicates.is_function_quantized(quantized_body(), {16})  # all levels count inside a body
    assert not predicates.is_function_quantized(quantized_body(levels=77))


def test_intervals_that_are_computed_do_not_count():
    ends = [parameter((), name) for name in "abcd"]
    assert not predicates.is_function_quantized(model(opset1.fake_quantize(parameter(SHAPE), *ends, 256)))


@pytest.mark.parametrize("name", ["is_asymmetric_quantization", "is_asymmetric_on_weights"])
def test_asymmetric(name):
    predicate = getattr(predicates, name)

    def convolution(low: float, zero_point: float | None):
        data = opset1.subtract(opset1.convert(parameter(SHAPE, precision=np.uint8), "f32"), f32(low))
        kernel = weights((4, 3, 1, 1), 0.1, zero_point)
        return opset1.convolution(opset1.multiply(data, f32(0.1)), kernel, [1, 1], [0, 0], [0, 0], [1, 1])

    node = convolution(5.0, 0.3)  # a zero point of the weights that rounds to 0 is none
    graph = model(node)
    before = to_text(graph)
    assert predicate(node) is (name == "is_asymmetric_quantization")
    assert predicate(convolution(5.0, 7.0))
    assert to_text(graph) == before


def test_nothing_changes_the_graph():
    multiply, subtract = qdq()
    graph = model(multiply)
    before = to_text(graph)
    for node in (multiply, subtract):
        predicates.can_be_transformed_to_group_convolution(node)
        predicates.is_dynamic_or_scalar(node)
        predicates.is_asymmetric_quantization(node)
        predicates.marked_as_bias(node)
    predicates.are_quantize_and_dequantize_supported_for_multiply(multiply)
    predicates.are_quantize_and_dequantize_supported_for_subtract(subtract)
    predicates.is_function_quantized(graph)
    assert to_text(graph) == before
