"""Sums of two products in 16 bits, against loops over every pair."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.reference.accumulation import convolution_accumulator
from ovlpt.reference.saturation import convolution_saturation_loss, risky_pairs, saturation_loss

rng = np.random.default_rng(0)


def in_pairs(products) -> int:
    """The products' sum as ``vpmaddubsw`` makes it."""
    products = [int(product) for product in products] + [0] * (len(products) % 2)
    return sum(min(max(a + b, -32768), 32767) for a, b in zip(products[::2], products[1::2], strict=True))


def test_which_pairs_can_saturate():
    pairs = [[64, 64], [64, 65], [127, -127], [-64, -64], [-64, -65], [127, 2], [127, 1], [-128, 0]]
    assert risky_pairs(np.array(pairs)).tolist() == [
        [False],
        [True],
        [False],
        [False],
        [True],
        [True],
        [False],
        [False],
    ]


@pytest.mark.parametrize("depth", [8, 7])
def test_a_matrix_product(depth):
    weights, columns = rng.integers(-128, 128, (5, depth)), rng.integers(0, 256, (depth, 6))
    expected = [[in_pairs(row * column) for column in columns.T] for row in weights]
    loss = saturation_loss(weights, columns)
    assert (weights @ columns + loss == expected).all()
    assert loss.any()


@pytest.mark.parametrize(
    "inputs, outputs, groups, zero_point",
    [(4, 3, 1, 0), (3, 3, 1, 7), (6, 4, 2, 0), (4, 4, 2, 200), (4, 8, 4, 3), (4, 4, 4, 5)],
    ids=["even", "odd channels", "odd groups", "even groups", "one channel a group", "depthwise"],
)
def test_a_convolution(inputs, outputs, groups, zero_point):
    x = rng.integers(0, 256, (2, inputs, 4, 5))
    depth = inputs // groups
    w = rng.integers(-128, 128, (outputs, depth, 3, 2))
    zero_points = np.full((1, inputs, 1, 1), zero_point)
    window = {"strides": [1, 2], "pads_begin": [1, 0], "pads_end": [0, 1]}
    exact = convolution_accumulator(x - zero_points, w, groups=groups, **window)
    result = exact + convolution_saturation_loss(x, w, zero_points, groups=groups, **window)

    padded = np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 1)], constant_values=zero_point)
    for n, o, i, j in np.ndindex(result.shape):
        first = o // (outputs // groups) * depth
        window_of = padded[n, first : first + depth, i : i + 3, 2 * j : 2 * j + 2]
        products = np.moveaxis(window_of * w[o], 0, -1).reshape(6, depth)  # positions, then channels
        if groups == 1 and depth % 2:
            products = np.pad(products, [(0, 0), (0, 1)])
        flat = products.ravel()
        total = flat.sum() if depth == 1 and outputs == groups else in_pairs(flat)
        assert result[n, o, i, j] == total - zero_point * w[o].sum()
