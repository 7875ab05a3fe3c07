"""Parts of the result of a MatMul, which the pass gives dequantizations of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt.openvino_api import Node, NodeFactory, opset1
from tests.conftest import assert_close, inputs_of
from tests.lowered import FORMS
from tests.networks import const, model, parameter, quantized


def index(value: int | list[int]) -> Node:
    return const(value, "i64")


def split(product: Node) -> list[Node]:
    return NodeFactory("opset1").create("VariadicSplit", [product, index(2), index([8, 4, 12])]).outputs()


def halves(product: Node) -> list[Node]:
    return NodeFactory("opset1").create("Split", [product, index(-1)], {"num_splits": 2}).outputs()


def rows(product: Node) -> list[Node]:
    return [NodeFactory("opset8").create("Gather", [product, index(at), index(1)]).output(0) for at in (2, 0)]


def columns(product: Node) -> list[Node]:
    chosen = [index([23, 1, 7]), index([2, 3])]
    return [NodeFactory("opset8").create("Gather", [product, each, index(2)]).output(0) for each in chosen]


def turned(product: Node) -> list[Node]:
    turned = opset1.transpose(product, index([0, 1, 3, 2]))
    return NodeFactory("opset1").create("Split", [turned, index(2)], {"num_splits": 3}).outputs()


def with_sums(product: Node) -> list[Node]:
    """What is added to a part has become a zero point of one of its readers."""
    found = []
    for row in rows(product):
        found += [opset1.add(row, const(np.linspace(-1, 1, 24).reshape(1, 24))).output(0), row]
    return found


PARTS = (split, halves, rows, columns, turned, with_sums)


def net(parts: Callable[[Node], list[Node]], batch: int, *interval: float):
    x = parameter([batch, 2, 6, 32] if parts is turned else [batch, 6, 32])
    stored = opset1.convert(const(np.random.default_rng(1).integers(-40, 64, (24, 32)), "i8"), "f32")
    weights = opset1.multiply(stored, const(np.linspace(0.005, 0.01, 24).reshape(24, 1)))
    product = opset1.matmul(quantized(x, *(interval or (-1.0, 1.55))), weights, False, True)
    return model([opset1.tanh(each) for each in parts(product)], [x])


@pytest.mark.parametrize("parts", PARTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("batch", [-1, 1], ids=["dynamic", "static"])
def test_the_layer_is_dequantized(parts, batch, core):
    """Up to the zero points all stayed in f32 where floats are bf16, each part in extra layers."""
    config, trace = ovlpt.plugin_config.for_device(core, "CPU"), ovlpt.Trace()
    # CPUs with AVX2 alone would have a convolution
    products = replace(config, params=replace(config.params, mat_mul_as_convolution=False))
    ovlpt.transform(net(parts, batch), core=core, config=products, trace=trace)
    lowered = {event.transformation for event in trace if event.outcome == "lowered"}
    assert "dequantize_before_parts" in lowered
    assert not lowered & {"keep_product", "keep_sums"}


@pytest.mark.parametrize("parts", PARTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("batch", [-1, 1], ids=["dynamic", "static"])
@pytest.mark.parametrize("form", FORMS)
def test_numbers(parts, batch, form, by_form):
    built = net(parts, batch)
    inputs = inputs_of(net(parts, 1), seed=1)
    assert_close([by_form(built, inputs, form)], [by_form(built, inputs)], level=0.001)


def test_no_zero_point(core):
    """A scale alone is part of what reads each part."""
    trace = ovlpt.Trace()
    ovlpt.transform(net(split, 1, -2.0, 127 / 64), core=core, trace=trace)
    assert not [event for event in trace if event.transformation == "dequantize_before_parts"]


def test_a_part_that_is_an_output(core):
    x = parameter([1, 6, 32])
    product = opset1.matmul(quantized(x, -1.0, 1.55), const(np.ones((32, 24))), False, False)
    first, *others = split(product)
    built = openvino.Model([opset1.result(first), opset1.result(opset1.tanh(others[0]))], [x])
    inputs = inputs_of(built, seed=1)
    compiled = ovlpt.compile_model(built, "CPU", core=core)
    assert [list(port.shape) for port in compiled.outputs] == [[1, 6, 8], [1, 6, 4]]
    assert all(np.isfinite(each).all() for each in compiled(inputs).values())
