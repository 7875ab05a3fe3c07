import numpy as np
import pytest

from ovlpt.graph.dequantization import dequantization_above
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import dequantization, f32, model, parameter


def data(name: str, scale=0.5, zero_point=None, precision: type = np.uint8):
    return dequantization(parameter((1, 4, 2, 2), name, precision), scale, zero_point, f"dq_{name}")


@pytest.mark.parametrize("zero_point", [None, 3])
@pytest.mark.parametrize("port", [0, 1])
def test_a_constant_joins_the_scale(zero_point, port):
    factors = np.linspace(1, 4, 4).reshape(1, 4, 1, 1)
    inputs = [data("a", 0.5, zero_point)]
    inputs.insert(port, f32(factors))
    result = Transformed(model(opset1.multiply(*inputs)))
    kinds = [node.get_type_name() for node in result.after.get_ordered_ops() if node.get_type_name() != "Constant"]
    shift = [] if zero_point is None else ["Subtract"]
    assert kinds in (
        ["Parameter", *shift, "Multiply", "Result"],
        ["Parameter", "Convert", *shift, "Multiply", "Result"],
    )
    found = dequantization_above(result.after.get_results()[0], 0)
    np.testing.assert_allclose(found.scale, 0.5 * factors, rtol=1e-6)
    assert (None if found.zero_point is None else float(found.zero_point.flat[0])) == zero_point
    result.assert_numbers()


def test_two_scales_join(assert_transformed):
    """The zero point stays with the branch that computes in float."""
    assert_transformed(
        model(opset1.multiply(data("a", 0.5, 3), data("b", 0.25))),
        """
        b: u8[1,4,2,2] = Parameter
        a: u8[1,4,2,2] = Parameter
        y/FullBranch/DequantizationSubtract: f32[1,4,2,2] = Subtract(a, 3)
        y/FullBranch/DequantizationMultiply: f32[1,4,2,2] = Multiply(y/FullBranch/DequantizationSubtract, 0.125)
        y: f32[1,4,2,2] = Multiply(y/FullBranch/DequantizationMultiply, b)
        """,
    )


def test_a_zero_point_on_both_inputs_stays(assert_rejected):
    assert_rejected(model(opset1.multiply(data("a", 0.5, 3), data("b", 0.25, 7))), "MultiplyPartial", "zero_point")


@pytest.mark.parametrize("port", [0, 1])
def test_floats_beside_quantized_data_stay(assert_rejected, port):
    inputs = [data("a")]
    inputs.insert(port, parameter((1, 4, 2, 2), "b"))
    assert_rejected(model(opset1.multiply(*inputs)), "MultiplyPartial", "not_quantized")


def test_a_shared_dequantization_keeps_its_scale_for_the_other_reader():
    shared = data("a", 0.5, 3)
    result = Transformed(model(opset1.multiply(shared, f32(3)), opset1.sigmoid(shared)))
    assert result.transformed("MultiplyPartial")
    result.assert_numbers()
