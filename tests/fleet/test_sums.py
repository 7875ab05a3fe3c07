"""Sums of floats: exact, whatever the order."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from ovlpt.fleet.sums import ExactSum
from ovlpt.inspect.noise import Noise

RNG = np.random.default_rng(5)
VALUES = (RNG.standard_normal(200) * 2.0 ** RNG.integers(-1074, 900, 200)).tolist()


def total(values) -> ExactSum:
    made = ExactSum()
    for value in values:
        made.add(value)
    return made


def test_a_sum_is_the_nearest_float_to_the_exact_one():
    assert float(total(VALUES)) == float(sum(map(Fraction, VALUES)))
    assert float(total([5e-324, 1e308, -1e308])) == 5e-324


def test_any_order_and_grouping_gives_the_same_integer():
    whole = total(VALUES).to_plain()
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(VALUES).tolist()
        merged = ExactSum()
        for start in range(0, len(shuffled), 7):
            merged.merge(ExactSum.from_plain(json.loads(json.dumps(total(shuffled[start : start + 7]).to_plain()))))
        assert merged.to_plain() == whole


@pytest.mark.parametrize(("values", "expected"), [([1, math.inf], math.inf), ([1e308, 1e308], math.inf)])
def test_beyond_the_largest_float(values, expected):
    plain = json.loads(json.dumps(total(map(float, values)).to_plain()))
    assert float(ExactSum.from_plain(plain)) == expected


def test_what_is_no_number_stays():
    assert math.isnan(float(ExactSum.from_plain(total([1.0, math.nan, 2.0]).to_plain())))


def test_noise_of_parts_is_the_noise_of_the_whole():
    reference, value = RNG.standard_normal((2, 6, 50)).astype(np.float32)
    whole, parts = Noise(), Noise()
    for row in range(6):
        whole.add(reference[row], value[row])
    for row in (4, 1, 5, 0, 2, 3):
        part = Noise()
        part.add(reference[row], value[row])
        parts.merge(Noise.from_plain(part.to_plain()))
    assert parts.to_plain() == whole.to_plain()
    assert parts.sqnr == whole.sqnr
