import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT
from tests.graphs import f32, model, parameter, quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("DepthToSpace", "channel", 3), "DepthToSpace", "per_channel")


def test_per_tensor_zero_point(assert_transformed):
    assert_transformed(
        quantized("DepthToSpace", "tensor", 3),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: u8[2,1,8,8] = DepthToSpace(x) {block_size=2, mode=blocks_first}
        y/DequantizationSubtract: f32[2,1,8,8] = Subtract(y_original, 3)
        y: f32[2,1,8,8] = Multiply(y/DequantizationSubtract, 0.5)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("DepthToSpace", "space", 3), "DepthToSpace", "not_per_channel")


@pytest.mark.parametrize("low", [0, -1], ids=["symmetric", "zero_point"])
def test_equal_numbers_for_each_channel_are_one(core, low):
    """The result has fewer channels: it threw."""
    ends = [f32(np.full((1, 16, 1, 1), end)) for end in (low, low + 2.55)]
    data = opset1.fake_quantize(parameter((-1, 16, 3, 3)), *ends, *ends, 256)
    net = model(opset1.depth_to_space(data, "blocks_first", 2))
    values = np.random.default_rng(0).uniform(low, low + 2.5, (2, 16, 3, 3)).astype(np.float32)
    (found,) = ovlpt.compile_model(net, "CPU", EXACT, core=core)([values]).values()
    assert np.allclose(found, simulate(net, core)([values])[0], atol=1e-6)
