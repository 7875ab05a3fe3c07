"""Values of constants."""

from __future__ import annotations

import warnings

import numpy as np

from ovlpt.graph.constants import constant, numbers_of


def test_what_float32_does_not_hold_is_infinite():
    """Without a warning: files have masks of the least number of f64."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers = numbers_of(constant(np.array([np.finfo(np.float64).min, 1]), "f64"))
    assert numbers.tolist() == [-np.inf, 1]
