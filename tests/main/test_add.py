import numpy as np
import pytest

from ovlpt import LowPrecision, Params
from ovlpt.openvino_api import Manager, opset1
from tests.conftest import Transformed
from tests.graphs import f32, fake_quantize, model, parameter


def test_a_constant_beside_a_zero_point_of_integers_in_native_only():
    """As in ONNX files. The native pass subtracts both, one after the other."""
    stored = opset1.fake_quantize(parameter((1, 4)), f32(-1), f32(1.55), f32(0), f32(255), 256)
    zero_point = opset1.convert(opset1.constant(np.array(100, np.uint8)), "f32")
    data = opset1.subtract(opset1.convert(opset1.convert(stored, "u8"), "f32"), zero_point)
    result = Transformed(model(opset1.add(opset1.multiply(data, f32(0.01)), f32(0.5))), Params(native_only=True))
    result.assert_numbers()
    chain = [node for node in result.after.get_ordered_ops() if node.get_type_name() != "Constant"]
    kinds = ["Parameter", "FakeQuantize", "Convert", "Subtract", "Subtract", "Multiply", "Result"]
    assert [node.get_type_name() for node in chain] == kinds
    assert [float(node.input_value(1).get_node().data) for node in chain[3:5]] == [100, -50]


def test_a_constant_beside_one_in_f32_that_scales_f16_in_native_only():
    """The native pass subtracts in the type of the data."""
    x, ends = parameter((12,), precision=np.float16), np.linspace(0.5, 1, 12).astype(np.float16)
    scaled = opset1.multiply(opset1.constant(ends), x)
    turned = opset1.multiply(scaled, opset1.constant(np.float16(-1)))
    result = Transformed(model(opset1.add(opset1.constant(ends), turned), scaled), Params(native_only=True))
    (subtract,) = (node for node in result.after.get_ops() if node.get_type_name() == "Subtract")
    assert subtract.get_output_element_type(0).get_type_name() == "f16"


@pytest.mark.parametrize(
    "other, full",
    [
        ((1, 8, 1, 1), "other"),  # of 1x1 space: the larger one is empty, as OpenVINO's guide says
        ((1, 1, 4, 4), "data"),  # its volumes decide nothing else, in the native library and here
        ((1, 8, 1, 4), "data"),
        ((1, 8, 4, 4), "data"),
    ],
)
def test_which_of_two_volumes_keeps_its_dequantization(other, full):
    data, small = (
        fake_quantize(parameter(shape, name), 0.0, high, name=name)
        for shape, name, high in (((1, 8, 4, 4), "data", 2.55), (other, "other", 5.1))
    )
    for reads in ([data, small], [small, data]) if full == "other" else ([data, small],):
        graph = model(opset1.relu(opset1.add(*reads)))
        manager = Manager()
        manager.register_pass(LowPrecision())
        manager.run_passes(graph)
        add = next(node for node in graph.get_ops() if node.get_type_name() == "Add")
        empty = [
            value.get_node().get_friendly_name()
            for value in add.input_values()
            if value.get_element_type().get_type_name() == "u8"
        ]
        assert empty == [{"data": "other", "other": "data"}[full]]
