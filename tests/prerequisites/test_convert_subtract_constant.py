import numpy as np
import pytest

import ovlpt
from ovlpt.graph.text import to_text
from ovlpt.openvino_api import Manager
from ovlpt.prerequisites.convert_subtract_constant import ConvertSubtractConstant
from tests.conftest import EXACT, inputs_of, run_pass
from tests.graphs import dequantization, fake_quantize, integers, model, opset1, parameter


def text(zero_point) -> str:
    weights = dequantization(integers((5, 4)), 0.5, zero_point, "w")
    graph = model(opset1.matmul(parameter((2, 4)), weights, False, True))
    manager = Manager()
    manager.register_pass(ConvertSubtractConstant())
    manager.run_passes(graph)
    return to_text(graph)


def test_rounded_and_stored_in_the_type_of_the_weights():
    assert "Convert(3:i8)" in text(2.6)


def test_a_zero_point_that_rounds_to_zero_goes():
    assert "Subtract" not in text(0.2)


def test_one_that_does_not_fit_stays():
    assert "Convert(" in text(300.0)
    assert "300)" in text(300.0)


@pytest.mark.parametrize("how, is_exact", [("as it is", True), ("rounded", False), ("stock", False)])
def test_what_it_costs_to_round_the_zero_point_of_weights(infer, how, is_exact):
    """Why it is not one of the common optimizations. Weights within half of their range, for CPUs without VNNI."""
    kernel = dequantization(opset1.constant(integers((8, 16, 1, 1)).data // 2), 0.01, 2.6, "w")
    data = fake_quantize(parameter((1, 16, 4, 4)), 0.0, 2.55)
    graph = model(opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1]))
    (expected,) = infer(graph, inputs := inputs_of(graph))
    if how == "rounded":
        run_pass(graph, ConvertSubtractConstant())
    ours = how != "stock"
    (found,) = ovlpt.compile_model(graph, "CPU", EXACT)(inputs).values() if ours else infer(graph, inputs, "YES")
    off = np.abs(found - expected).max() / np.abs(expected).max()
    assert off < 1e-3 if is_exact else 0.01 < off < 0.1
