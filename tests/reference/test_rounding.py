from fractions import Fraction

import numpy as np
import pytest

from ovlpt.reference.rounding import multiply_add, round_half_away, round_half_even, round_half_up


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_three_ways_to_break_a_tie(dtype):
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4, -0.6], dtype)
    assert round_half_away(x).tolist() == [-3, -2, -1, 1, 2, 3, 0, -1]
    assert round_half_even(x).tolist() == [-2, -2, 0, 0, 2, 2, 0, -1]
    assert round_half_up(x).tolist() == [-2, -1, 0, 1, 2, 3, 0, -1]
    assert round_half_away(x).dtype == round_half_up(x).dtype == dtype


def test_just_below_a_tie_is_not_lifted_over_it():
    below = np.nextafter(np.float32(0.5), np.float32(0))
    assert round_half_away(below) == round_half_up(below) == 0
    assert np.floor(below + np.float32(0.5)) == 1, "the naive form fails here"


def nearest(value: Fraction) -> np.float32:
    """The float32 nearest to an exact value, ties to even, by looking at the neighbours."""
    guess = np.float32(float(value))
    around = np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))
    return min(around, key=lambda f: (abs(Fraction(float(f)) - value), int(f.view(np.int32)) & 1))


def test_multiply_add_rounds_once():
    rng = np.random.default_rng(0)
    count = 4000
    # products of about half an ulp of the addend: where rounding twice goes wrong
    a = np.float32(2**-24) * (1 + rng.integers(-3, 4, count).astype(np.float32) * np.float32(2**-23))
    b = 1 + rng.integers(-3, 4, count).astype(np.float32) * np.float32(2**-23)
    c = 1 + rng.integers(0, 2**23, count).astype(np.float32) * np.float32(2**-23)
    a, b, c = (np.concatenate([v, rng.normal(size=500).astype(np.float32)]) for v in (a, b, c))
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    exact = [nearest(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in triples]
    assert (multiply_add(a, b, c) == exact).all()
    twice = (a.astype(np.float64) * b + c).astype(np.float32)
    assert (twice != exact).sum() > 100, "the data does not tell one rounding from two"


def test_multiply_add_of_numbers_and_infinities():
    assert multiply_add(2, 3, 1) == 7
    assert multiply_add(np.inf, 1, 1) == np.inf
    assert np.isnan(multiply_add(np.nan, 1, 1))
