"""Ranges with a fractional zero point, before and after they are adjusted."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ovlpt.openvino_api import RELEASE, opset1
from tests.networks import int8_weights, model, parameter, quantized
from tools.adjusted_ranges import fractional, length, measured, nearest, untuned_digits, with_ranges


def test_without_the_quantizer_it_says_what_it_needs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nncf", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        untuned_digits()
    sys.excepthook(missing.type, missing.value, None)
    assert capsys.readouterr() == ("", "this needs the package nncf: pip install -e '.[zoo]'\n")


def layers(low: float, high: float):
    """Two MatMuls with an activation of both signs between them; of rank 5, so that none runs as a convolution."""
    x = parameter([1, 1, 1, 4, 32])
    first = opset1.matmul(quantized(x, 0, 2.55), int8_weights([64, 32]), False, True)
    second = opset1.matmul(quantized(first, low, high), int8_weights([16, 64], seed=1), False, True)
    return model(second, x)


@pytest.mark.skipif(RELEASE < (2025, 0), reason="2024.6 has no post-operations in a product of rank 5")
def test_a_symmetric_range_adjusted_makes_the_chain_shorter():
    symmetric = layers(-2.0, 2.0)
    adjusted = with_ranges(symmetric, nearest)
    assert len(fractional(symmetric)) == 1
    assert not fractional(adjusted)
    (few, long), (more, short) = length(symmetric), length(adjusted)
    assert more >= few
    assert short < long


def test_ranges_as_they_were_measured():
    widened = layers(-2.0 * 256 / 254, 2.0)
    assert not fractional(widened)
    (back,) = fractional(with_ranges(widened, measured))
    np.testing.assert_allclose((back.input_low, back.input_high), ([-2.0], [2.0]))
    assert not fractional(widened)  # the caller's stays
