import numpy as np
import pytest

import ovlpt
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, TRUTH, assert_close
from tests.graphs import quantized
from tests.networks import const, int8_weights, model, parameter
from tests.networks import quantized as quantized_by


def test_channels_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Split channels", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,2,4,4], u8[2,2,4,4] = Split(x, 1:i64) {num_splits=2}
        y.1/DequantizationSubtract: f32[2,2,4,4] = Subtract(y_original.1, 3)
        y: f32[2,2,4,4] = Multiply(y.1/DequantizationSubtract, [1.5,2])
        """,
    )


def test_space_per_channel_zero_point(assert_transformed):
    assert_transformed(
        quantized("Split space", "channel", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,4,2,4], u8[2,4,2,4] = Split(x, 2:i64) {num_splits=2}
        y.0/DequantizationSubtract: f32[2,4,2,4] = Subtract(y_original.0, 3)
        y: f32[2,4,2,4] = Multiply(y.0/DequantizationSubtract, [0.5,1,1.5,2])
        """,
    )


def parts_of_open_channels(lengths, weights):
    x, ends = parameter([-1, -1, -1, -1]), const(np.linspace(1, 2, 6).reshape(1, 6, 1, 1))
    low = opset1.constant(np.linspace(-0.5, 0, 6, dtype=np.float32).reshape(1, 6, 1, 1))
    data = opset1.fake_quantize(x, low, ends, low, ends, 256)
    if lengths is None:
        parts = opset1.split(data, const(1, "i64"), 3)
    else:
        parts = opset1.variadic_split(data, const(1, "i64"), const(lengths, "i64"))
    layer = opset1.matmul(data, weights, False, False)
    return model([layer, *(quantized_by(part, -1, 2) for part in parts.outputs())], x)


@pytest.mark.parametrize("lengths", [None, [2, -1], [4, 1, 1]], ids=str)
def test_scales_by_channel_of_data_whose_channels_are_open(core, lengths):
    """It threw: the parts' sizes are open, those of the constants are not.

    The truth has its weights in f32: OpenVINO 2025.1 to 2026.0 take stored integers with a scale by row wrongly, without LPT, too.
    """
    weights = int8_weights([4, 3])
    net, truth = (
        parts_of_open_channels(lengths, each) for each in (weights, const(folded_constant(weights.output(0))))
    )
    inputs = [np.random.default_rng(0).uniform(0, 2, (2, 6, 4, 4)).astype(np.float32)]
    found = ovlpt.compile_model(net, "CPU", EXACT, core=core)(inputs).values()
    assert_close(list(found), list(core.compile_model(truth, "CPU", TRUTH)(inputs).values()))
