import numpy as np
import pytest

from ovlpt import Params, PrecisionsRestriction
from ovlpt.graph.dequantization import dequantization_above
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import f32, fake_quantize, model, parameter, weights


def layer(data):
    return opset1.convolution(data, weights([3, 4, 1, 1], 0.02), [1, 1], [0, 0], [0, 0], [1, 1])


def data():
    return parameter((1, 4, 2, 2))


def stored(result: Transformed) -> tuple[str, float]:
    """The type of the integers, and the zero point that the layer subtracts from them."""
    (quantize,) = (node for node in result.after.get_ops() if node.get_type_name() == "FakeQuantize")
    (convolution,) = (node for node in result.after.get_ops() if node.get_type_name() == "Convolution")
    subtract = convolution.input_value(0).get_node()
    assert subtract.get_type_name() == "Subtract"
    (zero_point,) = set(subtract.input_value(1).get_node().data.reshape(-1))
    return quantize.get_output_element_type(0).get_type_name(), zero_point


@pytest.mark.parametrize(
    "low, high, levels, precision, scale, zero_point",
    [
        (0.0, 2.55, 256, "u8", 0.01, None),
        (-1.28, 1.27, 256, "i8", 0.01, None),
        (-1.0, 1.55, 256, "u8", 0.01, 100),
        (0.0, 2.54, 255, "u8", 0.01, None),
        (-1.27, 1.27, 255, "i8", 0.01, None),
    ],
)
def test_the_type_and_the_dequantization_follow_from_the_interval(low, high, levels, precision, scale, zero_point):
    quantize = fake_quantize(data(), low, high, levels)
    result = Transformed(model(opset1.max_pool(quantize, [1, 1], [0, 0], [0, 0], [1, 1])))
    (found,) = (dequantization_above(node, 0) for node in result.after.get_ops() if node.get_type_name() == "Result")
    assert found.data_precision == precision
    np.testing.assert_allclose(found.scale, scale, rtol=1e-5)
    assert found.zero_point is None if zero_point is None else np.allclose(found.zero_point, zero_point, rtol=1e-5)
    result.assert_numbers()


def test_an_interval_for_each_channel(assert_transformed):
    high = np.array([2.55, 5.1, 1.275, 0.255]).reshape(1, 4, 1, 1)
    assert_transformed(
        model(opset1.relu(fake_quantize(data(), 0.0, high))),
        """
        x: f32[1,4,2,2] = Parameter
        fq: u8[1,4,2,2] = FakeQuantize(x, 0, [2.55,5.1,1.275,0.255], 0, 255) {levels=256}
        y_original: u8[1,4,2,2] = Relu(fq)
        y: f32[1,4,2,2] = Multiply(y_original, [0.01,0.02,0.005,0.001])
        """,
    )


def test_consumers_decide_where_they_take_one_type_only():
    """The interval asks for i8, and gets a zero point in u8."""
    restrictions = [PrecisionsRestriction.create("Convolution", {0: ["u8"], 1: ["i8"]})]
    result = Transformed(model(layer(fake_quantize(data(), -1.28, 1.27))), precision_restrictions=restrictions)
    assert stored(result) == ("u8", 128)
    result.assert_numbers()


def test_levels_of_no_low_precision_stay(assert_rejected):
    graph = model(layer(fake_quantize(data(), 0.0, 1.0, 1000)))
    assert_rejected(graph, "FakeQuantizeDecomposition", "levels")


def test_a_bound_that_is_computed_stays(assert_rejected):
    high = parameter((1,), "high")
    quantize = opset1.fake_quantize(data(), f32(0), high, f32(0), f32(2.55), 256)
    assert_rejected(model(layer(quantize)), "FakeQuantizeDecomposition", "dynamic_intervals")


def test_consumers_without_a_common_type_forbid_it(assert_rejected):
    restrictions = [
        PrecisionsRestriction.create("Convolution", {0: ["u8"], 1: ["i8"]}),
        PrecisionsRestriction.create("MatMul", {0: ["i8"], 1: ["i8"]}),
    ]
    quantize = fake_quantize(data(), 0.0, 2.55)
    graph = model(layer(quantize), opset1.matmul(quantize, weights([5, 2], 0.02), False, True))
    assert_rejected(graph, "FakeQuantizeDecomposition", "consumer_forbids", precision_restrictions=restrictions)


@pytest.mark.parametrize("precision, low, shift", [("u8", 0.0, 100), ("i8", -128.0, -28)])
def test_a_pair_of_quantize_and_dequantize_becomes_one_quantization(precision, low, shift):
    """As in ONNX files: the Convert goes into the FakeQuantize, and what dequantizes it stays."""
    quantize = opset1.fake_quantize(data(), f32(-1), f32(1.55), f32(low), f32(low + 255), 256)
    real = opset1.convert(opset1.convert(quantize, precision), "f32")
    result = Transformed(model(layer(opset1.multiply(opset1.subtract(real, f32(shift)), f32(0.01)))))
    assert stored(result) == (precision, shift)
    result.assert_numbers()


def test_an_interval_that_is_too_wide_for_a_scale_stays():
    """As that of a quantized mask, which hides with the least number. The native library clips the scale."""
    hidden = opset1.fake_quantize(data(), f32(0), f32(1), f32(np.finfo(np.float32).min), f32(0), 256)
    result = Transformed(model(layer(hidden)))
    assert result.reasons("FakeQuantizeDecomposition") == ["overflow"]
    native = Transformed(model(layer(hidden)), Params(native_only=True))
    assert native.transformed("FakeQuantizeDecomposition")


@pytest.mark.parametrize(("low", "high"), [(-1.1e-7, 1.45e-7), (-4e-7, 2.1e-6), (2e-7, 8e-7), (0.0, 5e-8)])
def test_an_interval_near_to_zero_keeps_its_zero_point(low, high):
    """Ends within 1e-6 count as zero beside wider intervals; alone they are numbers, which a normalization makes large."""
    graph = model(opset1.relu(fake_quantize(parameter((1, 4, 5, 5)), low, high)))
    result = Transformed(graph)
    assert result.transformed("FakeQuantizeDecomposition")
    result.assert_numbers()
