"""What Maximum, Minimum and Select share: inputs that are dequantized alike, or constants of such values."""

import numpy as np
import pytest

from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import dequantization, f32, model, parameter

MASK = np.array([True, False, False, True])
OPERATIONS = {
    "Maximum": opset1.maximum,
    "Minimum": opset1.minimum,
    "Select": lambda x, y: opset1.select(opset1.constant(MASK), x, y),
}
each_operation = pytest.mark.parametrize("name", OPERATIONS)


def data(name: str, scale=0.5, zero_point=None, precision: type = np.uint8):
    return dequantization(parameter((2, 4), name, precision), scale, zero_point, f"dq_{name}")


def kinds(result: Transformed) -> list[str]:
    """Operations with the type of their result, Constants and Results left out."""
    return [
        f"{node.get_type_name()} {node.get_output_element_type(0).get_type_name()}"
        for node in result.after.get_ordered_ops()
        if node.get_type_name() not in ("Constant", "Parameter", "Result")
    ]


@each_operation
@pytest.mark.parametrize("zero_point", [None, 3])
def test_equal_dequantizations_move_after_it(name, zero_point):
    result = Transformed(model(OPERATIONS[name](data("a", 0.5, zero_point), data("b", 0.5, zero_point))))
    shift = [] if zero_point is None else ["Subtract f32"]
    assert kinds(result) == [f"{name} u8", *shift, "Multiply f32"]
    result.assert_numbers()


@each_operation
@pytest.mark.parametrize("other", [(0.25, 3), (0.5, 4), (0.5, None)], ids=["scale", "zero_point", "no_zero_point"])
def test_different_dequantizations_stay(assert_rejected, name, other):
    assert_rejected(model(OPERATIONS[name](data("a", 0.5, 3), data("b", *other))), name, "different_dequantizations")


@each_operation
def test_integers_of_different_types_stay(assert_rejected, name):
    """The same scale maps other integers to the same values."""
    graph = model(OPERATIONS[name](data("a"), data("b", precision=np.int8)))
    assert_rejected(graph, name, "mixed_precisions")


@each_operation
@pytest.mark.parametrize("port", [0, 1])
def test_a_constant_on_the_grid_takes_part(name, port):
    """Zero, -1.5 and 2 are 3, 0 and 7 less the zero point, times the scale."""
    inputs = [data("a", 0.5, 3)]
    inputs.insert(port, f32([0, -1.5, 2, 0]))
    result = Transformed(model(OPERATIONS[name](*inputs)))
    (node,) = (node for node in result.after.get_ops() if node.get_type_name() == name)
    stored = node.input_value(node.get_input_size() - 2 + port).get_node().data
    assert stored.dtype == np.uint8
    assert stored.reshape(-1).tolist() == [3, 0, 7, 3]
    result.assert_numbers()


@each_operation
@pytest.mark.parametrize("value", [0.3, -2.0, 200.0], ids=["between", "below", "above"])
def test_a_constant_off_the_grid_stays(assert_rejected, name, value):
    """Between two integers, or beyond those of the type."""
    assert_rejected(model(OPERATIONS[name](data("a", 0.5, 3), f32(value))), name, "constant_off_grid")


@each_operation
def test_a_constant_beside_a_scale_per_channel_stays(assert_rejected, name):
    graph = model(OPERATIONS[name](data("a", np.array([[0.5, 1, 1.5, 2]])), f32(3)))
    assert_rejected(graph, name, "per_channel")


@each_operation
def test_floats_beside_quantized_data_stay(assert_rejected, name):
    graph = model(OPERATIONS[name](data("a"), parameter((2, 4), "b")))
    assert_rejected(graph, name, "not_quantized")
