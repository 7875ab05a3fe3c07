"""Quotients of integers after a reduction; the truth is numpy's, as OpenVINO's float networks are wrong, too."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate, without_fake_quantize
from ovlpt.openvino_api import NodeFactory, opset1
from tests.conftest import EXACT
from tests.networks import const, model, parameter, quantized

MASKS = np.array([[1] * count + [0] * (7 - count) for count in (1, 2, 3, 4, 5, 6, 7)])


def reduced(kind, value):
    return NodeFactory("opset1").create(kind, [value, const([1], "i64")], {"keep_dims": False})


def integer(value):
    return const(value, "i64")


COMPUTED = {
    "half": (lambda total: opset1.divide(total, integer(2)), lambda total: total // 2),
    "a third of less": (
        lambda total: opset1.divide(opset1.subtract(total, integer(5)), integer(3)),
        lambda total: (total - 5) // 3,
    ),
    "twice": (
        lambda total: opset1.floor(opset1.divide(opset1.floor(opset1.divide(total, integer(2))), integer(2))),
        lambda total: total // 2 // 2,
    ),
    "of a number": (lambda total: opset1.divide(integer(20), total), lambda total: 20 // total),
    "of both": (
        lambda total: opset1.divide(opset1.multiply(total, integer(5)), total),
        lambda total: total * 5 // total,
    ),
    "in 32 bits": (
        lambda total: opset1.convert(opset1.divide(opset1.convert(total, "i32"), const(2, "i32")), "i64"),
        lambda total: total // 2,
    ),
}


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMax"])
@pytest.mark.parametrize("computed", COMPUTED)
@pytest.mark.parametrize("is_open", [True, False])
def test_numbers(core, is_open, computed, kind):
    """Lengths that a mask tells were rounded to the nearest integer."""
    mask, x = parameter([-1, -1] if is_open else MASKS.shape, "i64", name="mask"), parameter([1, 4])
    build, truth = COMPUTED[computed]
    numbered = opset1.multiply(mask, integer(np.arange(1, 8))) if kind == "ReduceMax" else mask
    length = build(reduced(kind, numbered))
    net = model([length, opset1.relu(quantized(x, -1, 127 / 128))], [mask, x])
    lowered = ovlpt.transform(net, core=core)
    for compiled in (
        ovlpt.compile_model(net, "CPU", EXACT, core=core),
        core.compile_model(lowered, "CPU", {**EXACT, **ovlpt.lpt_properties(lowered, "CPU")}),
        core.compile_model(without_fake_quantize(net), "CPU", EXACT),
        simulate(net, core),
    ):
        found = compiled([MASKS, np.zeros((1, 4), np.float32)])[0]
        np.testing.assert_array_equal(found, truth(MASKS.sum(1)))


def test_sizes_of_data_are_left(core):
    """They are no reductions of data."""
    x = parameter([-1, 4])
    half = opset1.divide(opset1.shape_of(x), integer(2))
    net = model([half, opset1.relu(quantized(x, -1, 127 / 128))], x)
    assert "FloorMod" not in {node.get_type_name() for node in ovlpt.transform(net, core=core).get_ops()}
