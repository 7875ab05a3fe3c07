"""Chains run, in float32 and in rationals, and read."""

from fractions import Fraction

import numpy as np
import pytest

from ovlpt.fake_quantize.chain import (
    FUNCTIONS,
    Add,
    Chain,
    Clip,
    Eltwise,
    Multiply,
    Relu,
    Round,
    Sum,
    decompose,
)
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.fake_quantize.values import rational
from ovlpt.trace import InputError

X = np.array([[-3.5, -0.5, 0.5, 1.5, 300.0]], np.float32).T


@pytest.mark.parametrize(
    "operation, expected",
    [
        (Multiply(2), [-7, -1, 1, 3, 600]),
        (Add(-1), [-4.5, -1.5, -0.5, 0.5, 299]),
        (Round(), [-4, 0, 0, 2, 300]),
        (Clip(-1, 1), [-1, -0.5, 0.5, 1, 1]),
        (Relu(), [0, 0, 0.5, 1.5, 300]),
        (Relu(0.5), [-1.75, -0.25, 0.5, 1.5, 300]),
        (Eltwise("abs", scale=2), [7, 1, 1, 3, 600]),
        (Sum(2), [-1.5, 1.5, 2.5, 3.5, 302]),
    ],
)
def test_operations(operation, expected):
    ones = np.ones_like(X)
    result = Chain([operation]).run(X, ones)
    assert result.dtype == np.float32
    assert result[:, 0].tolist() == expected
    assert Chain([operation]).rational().run(rational(X), rational(ones))[:, 0].tolist() == expected


@pytest.mark.parametrize("store, expected", [("u8", [0, 0, 0, 2, 255]), ("i8", [-4, 0, 0, 2, 127])])
def test_a_store_rounds_and_saturates(store, expected):
    assert Chain([], store).run(X)[:, 0].tolist() == expected
    assert Chain([], store).run(rational(X))[:, 0].tolist() == expected


def test_values_per_channel_on_any_axis():
    chain = Chain([Multiply([1, 2, 3]), Add([0, 10, 20])])
    x = np.ones((2, 3, 4, 5), np.float32)
    assert chain.run(x, axis=1)[1, :, 2, 3].tolist() == [1, 12, 23]
    assert chain.run(x, axis=1).shape == x.shape


def test_rational_chains_do_not_round():
    third = Chain([Multiply([Fraction(1, 3)]), Multiply([Fraction(3)])])
    assert third.run(rational([[0.1]])) == Fraction(0.1)


def test_text():
    chain = Chain(
        [
            Relu(),
            Multiply([0.5, 0.25]),
            Add(3),
            Round(),
            Clip(0, 255),
            Relu([0.1, 0.2]),
            Sum(),
            Eltwise("swish", 1),
        ],
        "u8",
    )
    assert str(chain) == (
        "relu · multiply([0.5 … 0.25]) · add(3) · round · clip(0, 255) · prelu([0.1 … 0.2])"
        " · sum(1) · swish(x, 1) · store u8"
    )
    assert str(Chain([])) == "nothing"


@pytest.mark.parametrize("levels", [2, 16, 255, 256])
def test_decompose_is_fake_quantize_in_the_reals(levels):
    rng = np.random.default_rng(levels)
    low, ol = rng.uniform(-5, 0, (2, 3))
    quantizer = FakeQuantize(low, low + 3, ol, ol + np.array([1, 2, -4]), levels).rational()
    steps = np.array([Fraction(int(n), 2) for n in rng.integers(-3, 2 * levels + 3, 40)], object)[:, None]
    x = quantizer.input_low + steps * quantizer.input_scale
    assert np.all(Chain(decompose(quantizer)).run(x) == quantizer(x))


def test_decompose_in_float32_is_one_level_off_at_most():
    quantizer = FakeQuantize(-10, 15.5, 0, 255, 256)
    x = np.random.default_rng(0).uniform(-12, 18, (10000, 1)).astype(np.float32)
    off = np.abs(Chain(decompose(quantizer)).run(x) - quantizer(x))
    assert off.max() <= 1
    assert np.mean(off > 0) < 1e-3


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lipschitz_constants(name):
    x = np.linspace(-8, 8, 4001)[:, None]
    for alpha in (0.5, 1.0, 2.0):
        of, lipschitz = FUNCTIONS[name]
        slopes = np.diff([of(float(v), alpha) for v in x[:, 0]]) / np.diff(x[:, 0])
        assert np.abs(slopes).max() <= lipschitz(alpha) * (1 + 1e-9)
        assert np.abs(slopes).max() >= lipschitz(alpha) * 0.98


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Chain([Multiply([1, 2]), Add([1, 2, 3])]), r"\[2, 3\] channels"),
        (lambda: Chain([], "f16"), "store 'f16' is unknown"),
        (lambda: Eltwise("relu6"), "'relu6' is unknown"),
        (lambda: Chain([Sum()]).run(X), "no summand"),
    ],
)
def test_unusable_chains(make, words):
    with pytest.raises(InputError, match=words):
        make()
