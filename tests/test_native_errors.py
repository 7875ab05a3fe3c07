"""Where the native library's numbers are off: ``native_only`` repeats them, the default does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, Model, Node, opset1
from tests.conftest import EXACT, Transformed, assert_close
from tests.graphs import (
    CASES,
    dequantization,
    f32,
    fake_quantize,
    i64,
    integers,
    interpolate,
    model,
    opset6,
    parameter,
    weights,
)

_SHAPE = (2, 4, 4, 4)


def after_zero_point(name: str) -> Model:
    """A case of the table after an interval from -64 to 191 steps."""
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


def of_255_levels() -> Model:
    """In u8: the native pass spreads 255 levels over 256 values, and they lie between integers."""
    data = fake_quantize(parameter(_SHAPE), 0.0, 2.54, 255)
    return model(opset1.convolution(data, weights([3, 4, 1, 1], 0.02), [1, 1], [0, 0], [0, 0], [1, 1]))


def equal_branches() -> Model:
    """Two tensors that have one scale already."""
    branches = [fake_quantize(parameter(_SHAPE, name), 0.0, 2.54, 255, name=f"fq{name}") for name in "ab"]
    kernel = weights([3, 8, 1, 1], 0.02)
    return model(opset1.convolution(opset1.concat(branches, 1), kernel, [1, 1], [0, 0], [0, 0], [1, 1]))


GRAPHS = {
    "an average of padding under a zero point": lambda: after_zero_point("AvgPool padded"),
    "padding into the batch under a zero point": lambda: after_zero_point("SpaceToBatch padded"),
    "the eps of NormalizeL2": lambda: small(lambda x: opset1.normalize_l2(x, i64(1), 1e-2, "add")),
    "the eps of NormalizeL2, max": lambda: small(lambda x: opset1.normalize_l2(x, i64(1, 2, 3), 1e-2, "max")),
    "a fractional zero point of weights": rounded_weights,
    "255 levels": of_255_levels,
    "255 levels of tensors that meet": equal_branches,
}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_the_default_is_right_where_native_is_not(build):
    Transformed(build()).assert_numbers(1e-5)
    with pytest.raises(AssertionError):
        Transformed(build(), Params(native_only=True)).assert_numbers(1e-4)


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
    "few entries": {"ellipsis_mask": [1, 0]},
}


def sliced(masks: dict[str, list[int]]) -> Model:
    count = max(map(len, masks.values()))
    masked = {"begin_mask": [0] * count, "end_mask": [0] * count} | masks
    bounds = i64(*(0, 1, 1, 0)[:count]), i64(*(2, 3, 4, 2)[:count]), i64(*[1] * count)
    pooled = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel_shape": [1, 1]}
    return per_channel(lambda x: opset1.relu(opset1.strided_slice(opset1.max_pool(x, **pooled), *bounds, **masked)))


@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
def test_masks_of_a_slice(masks):
    """Scales follow their channels whatever the masks make of the axes."""
    Transformed(sliced(masks)).assert_numbers(1e-5)


def test_masks_that_the_native_library_takes_for_others(core, infer):
    """It takes the entry of a slice for the axis with the same number."""
    with pytest.raises(RuntimeError, match="Argument shapes are inconsistent"):
        core.compile_model(sliced(MASKS["new axis"]), "CPU")
    graph, inputs = sliced(MASKS["few entries"]), [np.full(_SHAPE, 0.7, np.float32)]
    (right,) = infer(graph, inputs)
    (native,) = infer(graph, inputs, "YES")
    assert not np.allclose(native, right, atol=0.05)  # it reads what was in memory before, which may be no number


@pytest.mark.parametrize("zero_point", [3.0, 100.4])
def test_the_predicate_that_changes_weights(core, infer, zero_point):
    """The native ``isAsymmetricOnWeights`` rewrites the weights that it is asked about; the layer, in float, is wrong."""
    data = fake_quantize(parameter(_SHAPE), 0.0, 2.55)
    kernel = dequantization(integers([4, 3, 2, 2], np.uint8), 0.01, zero_point, "w")
    graph = model(opset1.convolution_backprop_data(data, kernel, [2, 2], pads_begin=[0, 0], pads_end=[0, 0]))
    inputs = [np.random.default_rng(0).uniform(0, 2.5, _SHAPE).astype(np.float32)]
    (right,) = infer(graph, inputs)
    (native,) = infer(graph, inputs, "YES")
    ours = ovlpt.compile_model(graph, core=core, properties=EXACT)(inputs)[0]
    assert np.abs(native - right).max() > 0.05 * np.abs(right).max()
    assert_close([ours], [right])


def test_tensors_in_quantize_dequantize_form_that_meet(core, infer):
    """Of u8 and i8 data: the native library takes the stored integers for the values on which it puts them together."""

    def quantized(name: str, low: type, zero_point: float) -> Node:
        first = np.iinfo(low).min
        ends = np.float32([first, first + 255])
        reals = (ends - zero_point) * np.float32(0.01)
        stored = opset1.fake_quantize(parameter(_SHAPE, name), *map(f32, (*reals, *ends)), 256)
        return dequantization(opset1.convert(stored, low), 0.01, zero_point or None, f"{name}_dq")

    joined = opset1.concat([quantized("a", np.uint8, 128.0), quantized("b", np.int8, 0.0)], 1)
    small = opset1.multiply(opset1.convert(opset1.constant(np.full((3, 8, 1, 1), 7, np.int8)), "f32"), f32(0.01))
    graph = model(opset1.convolution(joined, small, [1, 1], [0, 0], [0, 0], [1, 1]))
    inputs = [np.random.default_rng(seed).uniform(-1.2, 1.2, _SHAPE).astype(np.float32) for seed in (0, 1)]
    (right,) = infer(graph, inputs)
    (native,) = infer(graph, inputs, "YES")
    ours = ovlpt.compile_model(graph, core=core, properties=EXACT)(inputs)[0]
    assert np.abs(native - right).max() > 0.1 * np.abs(right).max()
    assert_close([ours], [right])


def test_resized_channels_under_a_scale_per_channel():
    """The native pass puts four scales after eight channels, and fails."""

    def build():
        return per_channel(lambda x: interpolate(x, (0, 1)))

    Transformed(build()).assert_numbers(1e-5)
    with pytest.raises(RuntimeError, match="Argument shapes are inconsistent"):
        Transformed(build(), Params(native_only=True))
