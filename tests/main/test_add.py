import numpy as np

from ovlpt import Params
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import f32, model, parameter


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
