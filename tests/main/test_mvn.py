import pytest

from ovlpt import Params
from ovlpt.openvino_api import RELAXES_EVERY_OPSET
from tests.graphs import quantized

pytestmark = pytest.mark.skipif(
    not RELAXES_EVERY_OPSET,
    reason="this release cannot relax MVN-6, so a Convert stands before it; the numbers are tested elsewhere",
)


def test_channels_kept_per_channel_zero_point_stays(assert_rejected):
    assert_rejected(quantized("MVN channels kept", "channel", 3), "MVN", "zero_point")


def test_channels_kept_per_channel(assert_transformed):
    assert_transformed(
        quantized("MVN channels kept", "channel", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = MVN(x, [2,3]:i64) {eps=9.999999717180685e-10, eps_mode=INSIDE_SQRT, normalize_variance=True}
        y: f32[2,4,4,4] = Multiply(y_original, [1,1,1,1])
        """,
        params=Params(native_only=True),
    )


def test_eps_cannot_follow_a_scale_per_channel(assert_rejected):
    """The native pass keeps eps, which is wrong where the variance is of its order."""
    assert_rejected(quantized("MVN channels kept", "channel", None), "MVN", "per_channel")


def test_channels_kept_along_space_zero_point_stays(assert_rejected):
    assert_rejected(quantized("MVN channels kept", "space", 3), "MVN", "not_per_channel")


def test_all_per_channel_stays(assert_rejected):
    assert_rejected(quantized("MVN all", "channel", None), "MVN", "per_channel")


def test_all_per_tensor(assert_transformed):
    assert_transformed(
        quantized("MVN all", "tensor", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = MVN(x, [1,2,3]:i64) {eps=3.999999886872274e-09, eps_mode=INSIDE_SQRT, normalize_variance=True}
        y: f32[2,4,4,4] = Multiply(y_original, 1)
        """,
    )


def test_last_per_channel(assert_transformed):
    assert_transformed(
        quantized("MVN last", "channel", None),
        """
        x: u8[2,4,4,4] = Parameter
        y_original: f32[2,4,4,4] = MVN(x, 3:i64) {eps=9.999999717180685e-10, eps_mode=INSIDE_SQRT, normalize_variance=False}
        y: f32[2,4,4,4] = Multiply(y_original, [0.5,1,1.5,2])
        """,
    )
