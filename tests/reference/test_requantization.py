import numpy as np
import pytest

from ovlpt.reference import Quantization
from ovlpt.reference import requantization as rq

INT_MIN, INT_MAX = -(2**31), 2**31 - 1


def truncated(numerator: int, denominator: int) -> int:
    """C's integer division."""
    return abs(numerator) // denominator * (1 if numerator >= 0 else -1)


def test_high_multiplication_follows_its_definition():
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.integers(INT_MIN, INT_MAX + 1, 3000), [INT_MIN, INT_MIN, 1, -1, 0, INT_MAX]])
    b = np.concatenate([rng.integers(INT_MIN, INT_MAX + 1, 3000), [INT_MIN, INT_MAX, 1 << 30, 1 << 30, 5, INT_MAX]])
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        product = x * y
        nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
        expected.append(INT_MAX if x == y == INT_MIN else truncated(product + nudge, 1 << 31))
    assert rq.saturating_rounding_doubling_high_mul(a, b).tolist() == expected


@pytest.mark.parametrize("exponent", [0, 1, 2, 7, 30, 31])
def test_division_by_a_power_of_two(exponent):
    rng = np.random.default_rng(exponent)
    ties = (rng.integers(-50, 50, 200) * 2 + 1) << max(exponent - 1, 0)
    x = np.concatenate([rng.integers(INT_MIN, INT_MAX, 500), np.clip(ties, INT_MIN, INT_MAX), [INT_MIN, INT_MAX]])
    mask = (1 << exponent) - 1
    away = [(v >> exponent) + ((v & mask) > (mask >> 1) + (v < 0)) for v in x.tolist()]
    assert rq.rounding_divide_by_pot(x, exponent).tolist() == away
    up = [(2 * v + (1 << exponent)) >> (exponent + 1) for v in x.tolist()]
    assert rq.rounding_shift_up(x, exponent).tolist() == up


def test_the_quantized_multiplier_is_normalised():
    multipliers = np.array([0.5, 1.0, 0.75, 3.0, 2.0**-20, 1 - 2.0**-34, 2.0**-40, 0.0, 0.1])
    quantized, shift = rq.quantize_multiplier(multipliers)
    assert quantized.tolist()[:8] == [1 << 30, 1 << 30, 3 << 29, 3 << 29, 1 << 30, 1 << 30, 0, 0]
    assert shift.tolist()[:8] == [0, 1, 0, 2, -19, 1, 0, 0]
    assert quantized[8] * 2.0 ** (shift[8] - 31) == pytest.approx(0.1, rel=2**-31)


def test_the_document_prints_d1_with_twice_the_value():
    rng = np.random.default_rng(1)
    quantized, shift = rq.quantize_multiplier(2.0**-9 * 0.7)
    x, right = rng.integers(-(2**20), 2**20, 1000), -int(shift)
    correct = (x * int(quantized) + (1 << (31 + right - 1))) >> (31 + right)
    printed = (x * int(quantized) + (1 << (31 + right - 1))) >> (31 + right - 1)
    assert (rq.one_step(x, quantized, shift) == correct).all()
    assert np.abs(printed - 2 * correct).max() <= 1


TIES = np.array([-5, -3, -1, 1, 3, 5])  # times 0.5
AWAY, UP, EVEN = [-3, -2, -1, 1, 2, 3], [-2, -1, 0, 1, 2, 3], [-2, -2, 0, 0, 2, 2]
EXACT_TIES = {
    **dict.fromkeys(("D2", "F2", "FF2", "R"), AWAY),
    **dict.fromkeys(("D2u", "F2u", "D1", "F1"), UP),
    "FF": EVEN,
    "FFz": [-3, -1, -1, 1, 1, 3],
}


@pytest.mark.parametrize("rule", rq.RULES)
@pytest.mark.parametrize("power", [1, 8, 22])
def test_exact_ties(rule, power):
    """Accumulators that are odd multiples of half an output step; the zero point is odd."""
    output = Quantization(1, 7, "i8")
    result = rq.RULES[rule](TIES << (power - 1), 0.5, 2.0 ** (1 - power), output)
    # a multiplier of 1/2 or more leaves nothing to the second step, and the first rounds up
    expected = UP if rule in ("D2", "F2", "FF2") and power == 1 else EXACT_TIES[rule]
    assert (result.astype(int) - 7).tolist() == expected


@pytest.mark.parametrize("rule", rq.RULES)
@pytest.mark.parametrize("precision, zero_point", [("u8", 0), ("u8", 255), ("i8", -128), ("i8", 127), ("i8", 3)])
@pytest.mark.parametrize("scale", [2.0**-20, 2.0**-3, 0.9, 1.0, 3.7])
def test_every_rule_is_close_to_the_exact_value_and_saturates(rule, precision, zero_point, scale):
    rng = np.random.default_rng(2)
    output = Quantization(0.25, zero_point, precision)
    multiplier = float(np.float32(0.5)) * float(np.float32(scale)) / 0.25
    accumulator = np.rint(rng.uniform(-600, 600, 400) / multiplier).astype(np.int64)
    exact = np.clip(accumulator * multiplier + zero_point, output.low, output.high)
    result = rq.RULES[rule](accumulator, 0.5, scale, output)
    assert result.dtype == output.dtype
    # two roundings in a row err by up to three quarters of a step, where the second halves
    assert np.abs(result - exact).max() <= (0.75 if "2" in rule else 0.5 + 1e-4)
    assert {output.low, output.high} <= set(result.tolist())


def test_scales_are_double_or_float():
    """D2 and F2 differ in that alone: of one and the same large accumulator they make other integers."""
    rng, wide = np.random.default_rng(4), Quantization(2.0**-13, 0, "i16")
    scales = rng.uniform(0.1, 1, (2, 200)).astype(np.float32)
    differ = 0
    for of_input, of_weights in scales.T:
        exact = np.float64(of_input) * np.float64(of_weights)
        assert rq.double_multiplier(of_input, of_weights, 1) == exact
        assert rq.float_product_multiplier(of_input, of_weights, 1) == np.float32(exact)
        assert rq.float_multiplier(of_input, of_weights, np.float32(0.3)).dtype == np.float32
        accumulator = np.arange(-3000, 3000)
        differ += (
            rq.d2(accumulator, of_input, of_weights, wide) != rq.f2(accumulator, of_input, of_weights, wide)
        ).any()
    assert differ


def test_a_multiplier_per_channel():
    output, scales = Quantization(0.3, 5, "u8"), np.array([0.01, 0.7, 2.0], np.float32)
    accumulator = np.arange(-300, 300, 2).reshape(1, 3, 10, 10)
    for rule in rq.RULES.values():
        whole = rule(accumulator, 0.5, scales.reshape(3, 1, 1), output)
        parts = [rule(accumulator[:, i], 0.5, scale, output) for i, scale in enumerate(scales)]
        assert (whole == np.stack(parts, 1)).all()


def test_the_float_rule_rounds_the_accumulator_above_two_to_the_24():
    output = Quantization(1, 0, "i16")
    assert rq.ff([2**24 + 1], 1, 2.0**-10, output) == 2**14
    accumulator = np.array([(2**24 + 1) * 2 + 1])
    # f32(2^25 + 3) is 2^25 + 4, half a step further than the value itself
    assert rq.ff(accumulator, 1, 2.0**-3, Quantization(2.0**12, 0, "i16")) == 1024
