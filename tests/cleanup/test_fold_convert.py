from __future__ import annotations

import numpy as np

from ovlpt.cleanup.fold_convert import FoldConvertTransformation
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import model, parameter


def test_a_stored_zero_point_becomes_real():
    zero_point = opset1.convert(opset1.constant(np.array([3, 5], np.uint8)), "f32")
    graph = run_pass(model(opset1.subtract(parameter((1, 2)), zero_point)), FoldConvertTransformation())
    subtract = next(node for node in graph.get_ops() if node.get_type_name() == "Subtract")
    constant = subtract.input_value(1).get_node()
    assert (constant.get_type_name(), constant.get_output_element_type(0).get_type_name()) == ("Constant", "f32")
    assert np.array_equal(constant.data, [3, 5])
