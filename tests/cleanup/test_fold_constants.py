from __future__ import annotations

import numpy as np

import ovlpt
from ovlpt.attributes import AttributeTable, DisableCleanup
from ovlpt.cleanup.fold_constants import FoldConstants
from ovlpt.graph.constants import is_constant_path
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import dequantization, f32, fake_quantize, i64, integers, model, parameter, weights


def network():
    constant = opset1.add(f32([1.0, 2.0, 3.0]), f32(1.0))
    constant.set_friendly_name("sum")
    return model(opset1.relu(opset1.add(parameter((1, 3)), constant))), constant


def test_an_operation_on_constants_is_a_constant_of_its_name():
    graph, _ = network()
    run_pass(graph, FoldConstants())
    folded = next(node for node in graph.get_ops() if node.get_friendly_name() == "sum")
    assert folded.get_type_name() == "Constant"
    assert np.array_equal(folded.data, [2, 3, 4])


def test_what_is_marked_stays():
    graph, constant = network()
    attributes = AttributeTable()
    attributes.set(constant, DisableCleanup(True))
    run_pass(graph, FoldConstants(attributes=attributes))
    assert [node.get_type_name() for node in graph.get_ops()].count("Add") == 2


def test_what_is_quantized_of_constants_that_are_made_is_one_as_well():
    """A class token as exporters quantize it, at a known number of images: it was quantized in each inference, twice."""
    token = opset1.broadcast(dequantization(integers((1, 1, 8)), 0.3), i64(2, 1, 8))
    joined = opset1.concat([fake_quantize(token, -64, 63.5), fake_quantize(parameter((2, 4, 8)), -64, 63.5)], 1)
    layer = opset1.matmul(fake_quantize(joined, -64, 63.5, name="joined"), weights((8, 16), 0.1), False, False)
    transformed = ovlpt.transform(model(layer), "CPU")
    quantized = [node for node in transformed.get_ops() if node.get_type_name() == "FakeQuantize"]
    assert not any(is_constant_path(node.input_value(0).get_node()) for node in quantized)
