"""U8 and I8 forms, zero points, adjusted ranges and quantize-only recognition."""

from fractions import Fraction

import numpy as np
import pytest

from ovlpt.fake_quantize.forms import FakeQuantize, Form, adjust, quantize_only, zero_point
from ovlpt.fake_quantize.values import rational, values
from ovlpt.trace import InputError, Rejected


def random_quantizer(rng, levels):
    """A quantizer of rationals and points on and off its ties."""
    low, ol = (Fraction(int(rng.integers(-60, 40)), 8) for _ in range(2))
    width, height = (Fraction(int(rng.integers(1, 80)), 8) for _ in range(2))
    quantizer = FakeQuantize(*(values([v]) for v in (low, low + width, ol, ol + height)), levels)
    step = width / (levels - 1)
    ties = [low + step * Fraction(int(n), 2) for n in rng.integers(-3, 2 * levels + 3, 20)]
    others = [Fraction(int(n), 64) for n in rng.integers(-800, 800, 20)]
    return quantizer, np.array(ties + others, object)[:, None]


@pytest.mark.parametrize("levels", [2, 3, 4, 6, 16, 255, 256])
def test_the_u8_form_is_fake_quantize_in_the_reals(levels):
    rng = np.random.default_rng(levels)
    for _ in range(40):
        quantizer, x = random_quantizer(rng, levels)
        form = quantizer.form("u8")
        assert np.all(form(x) == quantizer(x))
        assert form.quantize(x).min() >= 0
        assert form.quantize(x).max() <= levels - 1


@pytest.mark.parametrize("levels", [4, 16, 256])
def test_the_i8_form_is_fake_quantize_in_the_reals(levels):
    rng = np.random.default_rng(levels)
    for _ in range(40):
        quantizer, x = random_quantizer(rng, levels)
        form = quantizer.form("i8")
        assert np.all(form(x) == quantizer(x))
        assert (form.low, form.high) == (-levels // 2, levels // 2 - 1)


@pytest.mark.parametrize("levels", [2, 6, 255])
def test_the_i8_form_needs_levels_divisible_by_4(levels):
    quantizer, _ = random_quantizer(np.random.default_rng(0), levels)
    with pytest.raises(Rejected) as rejected:
        quantizer.form("i8")
    assert rejected.value.reason.code == "levels_not_divisible_by_4"


@pytest.mark.parametrize("levels", [2, 6])
def test_without_that_condition_ties_come_out_wrong(levels):
    quantizer = FakeQuantize(*(values([Fraction(v)]) for v in (0, levels - 1, 0, levels - 1)), levels)
    half, one = Fraction(levels, 2), values([Fraction(1)])
    form = Form(one, values([-half]), -levels // 2, levels // 2 - 1, one, values([-half]))
    tie = rational([[0.5]])
    assert quantizer(tie) != form(tie)


def test_float32_forms_agree_off_ties():
    rng = np.random.default_rng(0)
    quantizer = FakeQuantize([-1.0, -2.0], [1.5, 0.7], [-1.0, 0.0], [1.5, 3.0], 256)
    x = rng.uniform(-3, 3, (1000, 2)).astype(np.float32)
    for precision in ("u8", "i8"):
        np.testing.assert_allclose(quantizer.form(precision)(x), quantizer(x), atol=1e-5)


def test_form_of_a_constant_output():
    with pytest.raises(Rejected, match="one point"):
        FakeQuantize(0, 1, 2, 2, 256).form("u8")


def test_channels_on_an_axis():
    quantizer = FakeQuantize([0, 0], [1, 2], [0, 0], [1, 2], 2)
    x = np.full((1, 2, 3), 0.6, np.float32)
    assert quantizer(x, axis=1)[0].tolist() == [[1, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    "low, high, levels, expected",
    [
        (0, 2.55, 256, [0]),
        (-12.8, 12.7, 256, [128]),
        (-10, 15.5, 256, [100]),
        (-1, 1, 256, None),
        (-1, 1, 255, [127]),
        ([-12.8, -1.0], [12.7, 1.55], 256, [128, 100]),
        ([-12.8, -1.0], [12.7, 1.0], 256, None),
        (1, 1, 256, None),
    ],
)
def test_zero_points(low, high, levels, expected):
    found = zero_point(values(low), values(high), levels)
    assert (found if found is None else found.tolist()) == expected


def test_a_zero_point_is_recognized_in_float32():
    """-1.0078740157480315 * ih gives 128 up to float32 only: exactly in about three of four cases."""
    high = np.random.default_rng(0).uniform(0.1, 10, 2000).astype(np.float32)
    low = (high * np.float32(-1 / (1 - 2 / 256))).astype(np.float32)
    quantizer = FakeQuantize(low, high, low, high, 256)
    assert not np.all(quantizer.input_shift == 128)
    assert np.all(quantizer.input_zero_point == 128)
    assert np.all(quantizer.output_zero_point == 128)


def test_a_fractional_zero_point_is_not():
    high = np.random.default_rng(0).uniform(0.1, 10, 200).astype(np.float32)
    assert all(zero_point(values(-h), values(h * 1.0001), 256) is None for h in high)


def test_adjust_covers_a_symmetric_range_as_described():
    adjusted = adjust(-1, 1, 256, cover=True)
    assert adjusted.zero_point == 128
    np.testing.assert_allclose([adjusted.low[0], adjusted.high[0]], [-1.0078740157480315, 1], rtol=1e-7)
    np.testing.assert_allclose(adjusted.moved, 0.0078740157, rtol=1e-5)


@pytest.mark.parametrize("cover", [False, True])
@pytest.mark.parametrize("levels", [16, 255, 256])
def test_adjusted_ranges_have_integer_zero_points_near_by(levels, cover):
    rng = np.random.default_rng(levels)
    low, high = -rng.uniform(0.1, 5, 300), rng.uniform(0.1, 5, 300)
    adjusted = adjust(low, high, levels, cover=cover)
    found = zero_point(adjusted.low, adjusted.high, levels)
    assert np.array_equal(found, adjusted.zero_point)
    assert np.all((found >= 0) & (found <= levels - 1))
    step = (high - low) / (levels - 1)
    if cover:
        assert np.all(adjusted.low <= low + 1e-6)
        assert np.all(adjusted.high >= high - 1e-6)
    else:
        assert np.all(adjusted.moved <= step / 2 + 1e-6)
    ends = np.maximum(np.abs(adjusted.low - low), np.abs(adjusted.high - high))
    np.testing.assert_allclose(adjusted.moved, ends, atol=1e-6)
    x = np.linspace(low, high, 3000)
    quantized = FakeQuantize(adjusted.low, adjusted.high, adjusted.low, adjusted.high, levels)(x)
    assert np.all(np.abs(quantized - x).max(axis=0) <= adjusted.error + 1e-5)


def test_no_other_zero_point_covers_with_less():
    rng = np.random.default_rng(0)
    low, high = -rng.uniform(0.1, 5, 200), rng.uniform(0.1, 5, 200)
    adjusted = adjust(low, high, 16, cover=True)
    step = (adjusted.high - adjusted.low).astype(np.float64) / 15
    for zero in range(16):
        with np.errstate(divide="ignore"):
            assert np.all(np.maximum(-low / np.float64(zero), high / np.float64(15 - zero)) >= step * (1 - 1e-6))


def test_adjust_extends_a_range_without_zero():
    adjusted = adjust([2, -3], [3, -1], 256)
    assert adjusted.low.tolist() == [0, -3]
    assert adjusted.high.tolist() == [3, 0]
    assert adjusted.zero_point.tolist() == [0, 255]


QUANTIZE_ONLY = {
    "u8": (FakeQuantize(0, 25.5, 0, 255, 256), "u8", 10),
    "i8": (FakeQuantize(-12.8, 12.7, -128, 127, 256), "i8", 10),
    "u8 per channel": (FakeQuantize([0, 0], [25.5, 51], 0, 255, 256), "u8", [10, 5]),
}


@pytest.mark.parametrize("name", QUANTIZE_ONLY)
def test_quantize_only_is_a_scale_and_a_store(name):
    quantizer, precision, scale = QUANTIZE_ONLY[name]
    recognized = quantize_only(quantizer, precision)
    np.testing.assert_allclose(recognized.scale, values(scale), rtol=1e-6)
    x = np.random.default_rng(0).uniform(-60, 60, (3000, 2)).astype(np.float32)
    low, high = (0, 255) if precision == "u8" else (-128, 127)
    np.testing.assert_allclose(np.clip(np.rint(x * recognized.scale), low, high), quantizer(x), atol=1)
    assert np.mean(np.clip(np.rint(x * recognized.scale), low, high) != quantizer(x)) < 1e-3


@pytest.mark.parametrize(
    "quantizer, precision, code",
    [
        (FakeQuantize(0, 1.5, 0, 15, 16), "u8", "levels_not_256"),
        (FakeQuantize(-1.6, 1.5, -8, 7, 16), "i8", "levels_not_256"),
        (FakeQuantize(-12.7, 12.7, -127, 127, 255), "i8", "levels_not_divisible_by_4"),
        (FakeQuantize(-1, 1, 0, 255, 256), "u8", "input_zero_point_not_integer"),
        (FakeQuantize(-12.8, 12.7, 0, 255, 256), "u8", "input_zero_point"),
        (FakeQuantize(0, 25.5, -128, 127, 256), "i8", "input_zero_point"),
        (FakeQuantize(0, 25.5, 0, 25.5, 256), "u8", "output_scale_not_one"),
        (FakeQuantize(-12.8, 12.7, 0, 255, 256), "i8", "output_low"),
        (FakeQuantize(0, 25.5, -128, 127, 256), "u8", "output_low"),
    ],
)
def test_not_quantize_only(quantizer, precision, code):
    with pytest.raises(Rejected) as rejected:
        quantize_only(quantizer, precision)
    assert rejected.value.reason.code == code


def test_unusable_parameters():
    with pytest.raises(InputError, match=r"2, 3. channels"):
        FakeQuantize([0, 0], [1, 1, 1], 0, 1, 256)
    with pytest.raises(InputError, match="input_low = 1"):
        FakeQuantize(1, 0, 0, 1, 256)
    with pytest.raises(InputError, match="'u4'"):
        FakeQuantize(0, 1, 0, 1, 256).form("u4")


def test_text():
    quantizer = FakeQuantize(-10, 15.5, 0, 255, 256)
    assert str(quantizer) == "fake_quantize(-10…15.5 -> 0…255, 256 levels)"
    assert str(quantizer.form("u8")) == "q = clamp(round(x / 0.1 + 100), 0, 255); y = (q - 0) * 1"
    assert str(quantizer.form("i8")) == "q = clamp(round(x / 0.1 + -28), -128, 127); y = (q - -128) * 1"


def test_in_i8_the_zero_point_of_a_symmetric_range_is_0():
    form = FakeQuantize(-12.8, 12.7, -12.8, 12.7, 256).form("i8")
    assert str(form) == "q = clamp(round(x / 0.1 + 0), -128, 127); y = (q - 0) * 0.1"


def test_where_both_lower_ends_are_0_the_zero_points_are_0_in_u8():
    form = FakeQuantize(0, 25.5, 0, 51, 256).form("u8")
    assert str(form) == "q = clamp(round(x / 0.1 + 0), 0, 255); y = (q - 0) * 0.2"


def test_symmetric():
    assert FakeQuantize(-1, 1, -1, 1, 256).symmetric
    assert not FakeQuantize(-1.0078740157480315, 1, -1, 1, 256).symmetric
