import numpy as np

from ovlpt import Params
from ovlpt.openvino_api import opset1
from tests.conftest import Transformed
from tests.graphs import dequantization, f32, model, parameter, quantized

_SHAPE = (2, 4, 4, 4)


def test_per_channel_zero_point_stays_in_native_only(assert_rejected):
    assert_rejected(quantized("PRelu", "channel", 3), "PRelu", "zero_point", Params(native_only=True))


def test_scale_and_shift_of_a_layer_stay(assert_rejected):
    graph = model(opset1.prelu(dequantization(parameter(_SHAPE), 0.5, 3.4), f32([0.1])))
    assert_rejected(graph, "PRelu", "zero_point")


def test_per_channel_zero_point():
    """The scale passes, the zero point does not."""
    result = Transformed(quantized("PRelu", "channel", 3))
    activation = next(node for node in result.after.get_ops() if node.get_type_name() == "PRelu")
    subtract = activation.input_value(0).get_node()
    assert subtract.get_type_name() == "Subtract"
    assert subtract.input_value(0).get_node().get_friendly_name() == "x"
    (after,) = activation.output(0).get_target_inputs()
    assert after.get_node().get_type_name() == "Multiply"
    result.assert_numbers()


def test_a_fractional_zero_point():
    result = Transformed(quantized("PRelu", "tensor", 3.4))
    assert result.transformed("PRelu")
    result.assert_numbers()


def test_half_precision():
    data = parameter(_SHAPE, precision=np.float16)
    ends = [opset1.constant(np.float16(end)) for end in (-1, 1.55, -1, 1.55)]
    slope = opset1.constant(np.full(4, 0.1, np.float16))
    result = Transformed(model(opset1.prelu(opset1.fake_quantize(data, *ends, 256), slope)))
    assert result.transformed("PRelu")


def test_unsigned_data_stays_as_it_is(assert_transformed):
    data = dequantization(parameter(_SHAPE, precision=np.uint8), 0.5)
    assert_transformed(
        model(opset1.max_pool(opset1.prelu(data, f32([0.1])), [1, 1], [0, 0], [0, 0], [2, 2])),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,3,3] = MaxPool(x) {kernel=[2, 2]}
        y: f32[2,4,3,3] = Multiply(y_original, 0.5)
        """,
    )


def test_per_channel(assert_transformed):
    assert_transformed(
        quantized("PRelu", "channel", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = PRelu(x, [0.1,0.2,0.3,0.4])
        y: f32[2,4,4,4] = Multiply(y_original, [0.5,1,1.5,2])
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("PRelu", "space", 3), "PRelu", "not_per_channel")
