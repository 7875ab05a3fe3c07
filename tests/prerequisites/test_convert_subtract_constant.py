from ovlpt.graph.text import to_text
from ovlpt.openvino_api import Manager
from ovlpt.prerequisites.convert_subtract_constant import ConvertSubtractConstant
from tests.graphs import dequantization, integers, model, opset1, parameter


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
