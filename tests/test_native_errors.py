"""Where the native library's numbers are off: ``native_only`` repeats them, the default does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, Model, Node, opset1
from tests.conftest import Transformed
from tests.graphs import CASES, dequantization, f32, fake_quantize, i64, interpolate, model, opset6, parameter

_SHAPE = (2, 4, 4, 4)


def behind_zero_point(name: str) -> Model:
    """A case of the table behind an interval from -64 to 191 steps."""
    case = next(case for case in CASES if case.name == name)
    return model(case.build(fake_quantize(parameter(case.shape), -0.64, 1.91)))


def small(build: Callable[[Node], Node]) -> Model:
    """Data so small that an eps of 0.01 counts."""
    return model(build(fake_quantize(parameter(_SHAPE), 0.0, 0.0255)))


def per_channel(build: Callable[[Node], Node]) -> Model:
    high = np.linspace(1, 2.5, 4, dtype=np.float32).reshape(1, 4, 1, 1)
    return model(build(fake_quantize(parameter(_SHAPE), 0 * high, high)))


def rounded_weights() -> Model:
    data = fake_quantize(parameter(_SHAPE), 0.0, 2.55)
    weights = opset1.fake_quantize(
        f32(np.linspace(-1, 1.4, 12).reshape(3, 4, 1, 1)), f32(-1), f32(1.4), f32(-1), f32(1.4), 256
    )
    return model(opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1]))


def turned_round() -> Model:
    """A FakeQuantize of a constant minus the data."""
    data = dequantization(parameter(_SHAPE, precision=np.uint8), 0.02)
    return model(fake_quantize(opset1.subtract(f32(1.0), data), -1.0, 1.55))


GRAPHS = {
    "an average of padding under a zero point": lambda: behind_zero_point("AvgPool padded"),
    "padding into the batch under a zero point": lambda: behind_zero_point("SpaceToBatch padded"),
    "the eps of NormalizeL2": lambda: small(lambda x: opset1.normalize_l2(x, i64(1), 1e-2, "add")),
    "the eps of NormalizeL2, max": lambda: small(lambda x: opset1.normalize_l2(x, i64(1, 2, 3), 1e-2, "max")),
    "a fractional zero point of weights": rounded_weights,
    "a constant minus a tensor": turned_round,
}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_the_default_is_right_where_native_is_not(build):
    Transformed(build()).assert_numbers(1e-5)
    with pytest.raises(AssertionError):
        Transformed(build(), Params(native_only=True)).assert_numbers(1e-3)


@pytest.mark.skipif(not RELAXES_EVERY_OPSET, reason="this release cannot relax MVN-6")
@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
def test_the_eps_of_mvn(mode):
    def build():
        return small(lambda x: opset6.mvn(x, i64(2, 3), True, 1e-2, mode))

    Transformed(build()).assert_numbers(1e-5)
    with pytest.raises(AssertionError):
        Transformed(build(), Params(native_only=True)).assert_numbers(1e-3)


MASKS = {
    "new axis": {"new_axis_mask": [0, 1, 0, 0]},
    "ellipsis": {"ellipsis_mask": [0, 1, 0, 0]},
    "shrunk axis": {"shrink_axis_mask": [0, 1, 0, 0]},
}


@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
def test_masks_of_a_slice(masks):
    """Scales follow their channels whatever the masks make of the axes."""

    def build():
        zero = [0] * 4
        masked = {"begin_mask": zero, "end_mask": zero} | masks
        bounds = i64(0, 1, 0, 0), i64(2, 3, 4, 2), i64(1, 1, 1, 1)
        return per_channel(lambda x: opset1.strided_slice(x, *bounds, **masked))

    Transformed(build()).assert_numbers(1e-5)


def test_resized_channels_under_a_scale_per_channel():
    """The native pass puts four scales behind eight channels, and fails."""

    def build():
        return per_channel(lambda x: interpolate(x, (0, 1)))

    Transformed(build()).assert_numbers(1e-5)
    with pytest.raises(RuntimeError, match="Argument shapes are inconsistent"):
        Transformed(build(), Params(native_only=True))
