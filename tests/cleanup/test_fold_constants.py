from __future__ import annotations

import numpy as np

from ovlpt.attributes import AttributeTable, DisableCleanup
from ovlpt.cleanup.fold_constants import FoldConstants
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, model, parameter


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
