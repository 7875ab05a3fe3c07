import numpy as np

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT
from tests.graphs import quantized
from tests.networks import const, model, parameter
from tests.networks import quantized as fake_quantized


def test_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("NormalizeL2", "channel", 3), "NormalizeL2", "zero_point")


def test_per_channel_stays(assert_rejected):
    assert_rejected(quantized("NormalizeL2", "channel", None), "NormalizeL2", "per_channel")


def test_per_tensor(assert_transformed):
    assert_transformed(
        quantized("NormalizeL2", "tensor", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = NormalizeL2(x, 1:i64) {eps=3.999999886872274e-09, eps_mode=add}
        y: f32[2,4,4,4] = Multiply(y_original, 1)
        """,
    )


def test_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("NormalizeL2", "space", 3), "NormalizeL2", "not_per_channel")


def test_all_per_tensor(assert_transformed):
    assert_transformed(
        quantized("NormalizeL2 all", "tensor", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = NormalizeL2(x, [1,2,3]:i64) {eps=3.999999886872274e-09, eps_mode=add}
        y: f32[2,4,4,4] = Multiply(y_original, 1)
        """,
    )


def test_an_axis_counted_from_the_end(core):
    """As TFLite's L2_NORMALIZATION has it."""
    x = parameter([2, 32])
    net = model(opset1.normalize_l2(fake_quantized(x, 0.0, 2.55), const([-1], "i64"), 1e-6, "max"), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (2, 32)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    np.testing.assert_allclose(compiled(inputs)[0], simulate(net, core)(inputs)[0], atol=1e-5)
