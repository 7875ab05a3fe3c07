"""The definition, bit for bit against OpenVINO's reference kernel."""

import importlib

import numpy as np
import openvino as ov
import pytest

from ovlpt.fake_quantize.definition import check_parameters, fake_quantize
from ovlpt.trace import InputError
from tests.conftest import TRUTH

opset = getattr(ov, "opset13", None) or importlib.import_module("openvino.runtime.opset13")


def reference(x, bounds, levels, dtype=np.float32):
    # the kernel of 2024.6 reads bounds of different shapes wrongly
    operands = [np.asarray(x, dtype), *(np.array(v, dtype) for v in np.broadcast_arrays(*bounds))]
    kind = ov.Type(np.dtype(dtype))
    node = opset.fake_quantize(*(opset.parameter(list(v.shape), kind) for v in operands), levels)
    result = ov.Tensor(kind, node.output(0).get_shape())
    assert node.evaluate([result], [ov.Tensor(v) for v in operands])
    return np.array(result.data)


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    both_nan = np.isnan(actual) & np.isnan(expected)
    bits = f"u{actual.dtype.itemsize}"
    different = (actual.view(bits) != expected.view(bits)) & ~both_nan
    assert not different.any(), f"{different.sum()} of {different.size} differ"


def points(rng, bounds, levels):
    """Random values, exact ties, the ends and their neighbours, and what is not finite."""
    ends = np.concatenate([np.ravel(bounds[0]), np.ravel(bounds[1])])
    low, high = ends.min().astype(np.float64), ends.max().astype(np.float64)
    chosen = np.concatenate(
        [
            rng.uniform(low - 1, high + 1, 100),
            low + (rng.integers(0, levels, 100) + 0.5) * (high - low) / (levels - 1),
            *(np.nextafter(ends, np.float32(end)) for end in (-9, 9)),
            ends,
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-40],
        ]
    )
    with np.errstate(over="ignore"):
        return chosen.astype(np.float32)


BOUNDS = {
    "any order": lambda rng, levels, draw: [draw(), draw(), draw(), draw()],
    "same output": lambda rng, levels, draw: [low := draw() - 9, high := draw(), low, high],
    "integers": lambda rng, levels, draw: [np.float32(v) for v in (0, levels - 1, 0, levels - 1)],
    "exact ties": lambda rng, levels, draw: [np.float32(v) for v in (-(2**-4), (levels - 1) / 8 - 2**-4, -1, 3)],
    "one point": lambda rng, levels, draw: [low := draw(), low, draw(), draw()],
    "constant output": lambda rng, levels, draw: [draw() - 9, draw(), low := draw(), low],
    "negative zeros": lambda rng, levels, draw: [np.float32(-0.0), draw() + 9, np.float32(-0.0), -draw() - 9],
    "rising to -0": lambda rng, levels, draw: [draw() - 9, draw() + 9, draw() - 9, np.float32(-0.0)],
    "huge": lambda rng, levels, draw: [
        np.float32(-3e38),
        np.float32(3e38),
        np.float32(-3e38),
        np.float32(3e38),
    ],
}


@pytest.mark.parametrize("levels", [2, 3, 4, 15, 16, 255, 256, 1000, 65536])
@pytest.mark.parametrize("kind", BOUNDS)
def test_equals_the_reference_kernel_bit_for_bit(kind, levels):
    rng = np.random.default_rng(levels)
    for shape in [(), (1, 3, 1), (3, 1), (1, 3, 250)]:
        bounds = BOUNDS[kind](rng, levels, lambda shape=shape: rng.uniform(-5, 5, shape).astype(np.float32))
        x = np.resize(points(rng, bounds, levels), (2, 3, 250))
        assert_same_bits(fake_quantize(x, *bounds, levels), reference(x, bounds, levels))


@pytest.mark.parametrize("levels", [16, 256])
def test_f16_is_the_float32_result_rounded(levels):
    rng = np.random.default_rng(0)
    x, bounds = rng.uniform(-3, 3, 20000).astype(np.float16), np.array([-2.1, 2.3, -2.1, 2.3], np.float16)
    assert_same_bits(fake_quantize(x, *bounds, levels).astype(np.float16), reference(x, bounds, levels, np.float16))


@pytest.mark.parametrize("bounds_shape", [(), (700, 1), (1, 500), (700, 500)])
@pytest.mark.parametrize("factor", [1, 1.0071], ids=["ends exact", "ends rounded"])
def test_big_arrays_are_worked_on_in_blocks(bounds_shape, factor):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(700, 500)).astype(np.float32)
    low = rng.uniform(-3, -1, bounds_shape).astype(np.float32)
    bounds = (low, -low, low * np.float32(factor), -low * np.float32(factor))
    assert_same_bits(fake_quantize(x, *bounds, 255), reference(x, bounds, 255))


def test_the_result_is_new_and_the_input_untouched():
    x = np.array([0.3, 5.0], np.float32)
    result = fake_quantize(x, 0, 1, 0, 1, 4)
    np.testing.assert_array_equal(result, np.array([1 / 3, 1], np.float32))
    np.testing.assert_array_equal(x, np.array([0.3, 5.0], np.float32))


def test_empty_and_scalar():
    assert fake_quantize(np.zeros((0, 3)), 0, 1, 0, 1, 4).shape == (0, 3)
    assert fake_quantize(0.4, 0, 1, 0, 1, 2) == 0


@pytest.mark.parametrize("levels", [2, 16, 255, 256])
def test_the_cpu_plugin_differs_only_next_to_ties(levels):
    """Its kernel computes x * scale + shift: at a tie, and only there, it may land one level off."""
    rng = np.random.default_rng(levels)
    low, high = np.float32(-1.7), np.float32(2.9)
    x = points(rng, [low, high], levels)[None, :-8]
    parameter = opset.parameter(x.shape, np.float32)
    constants = [opset.constant(v) for v in (low, high, np.float32(0), np.float32(levels - 1))]
    model = ov.Model([opset.result(opset.fake_quantize(parameter, *constants, levels))], [parameter], "fq")
    plugin = ov.Core().compile_model(model, "CPU", TRUTH)({0: x})[0]
    off = np.abs(plugin - fake_quantize(x, low, high, 0, levels - 1, levels))
    ramp = (x.astype(np.float64) - low) / (np.float64(high) - low) * (levels - 1)
    from_tie = np.abs(np.abs(ramp - np.rint(ramp)) - 0.5)
    tie = from_tie < 4 * levels * np.finfo(np.float32).eps
    assert np.all(off[~tie] < 1e-4 * levels)
    assert np.all(off[tie] < 1 + 1e-4 * levels)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ((0, 1, 0, 1, 1), "levels = 1"),
        ((0, 1, 0, 1, 2.5), "levels = 2.5"),
        ((0, np.inf, 0, 1, 256), "input_high that is not finite"),
        ((0, 1, np.nan, 1, 256), "output_low that is not finite"),
        ((1, 1, 0, 1, 256), "input_low = 1 and input_high = 1"),
        (([0, 3], [1, 2], 0, 1, 256), "input_low = 3 and input_high = 2"),
    ],
)
def test_parameters_that_make_no_quantizer(parameters, words):
    with pytest.raises(InputError, match=words):
        check_parameters(*parameters)


def test_a_falling_output_is_legal():
    check_parameters(0, 1, 1, 0, 256)
