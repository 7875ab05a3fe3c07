import itertools

import numpy as np
import pytest

from ovlpt.reference import convolution_accumulator, matrix_accumulator, transposed_accumulator
from ovlpt.trace import InputError


def naive(x, w, strides, pads_begin, pads_end, dilations, groups):
    """Convolution by its definition, position by position."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads_begin, pads_end, strict=True)])
    extent = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
    space = [(n - e) // s + 1 for n, e, s in zip(x.shape[2:], extent, strides, strict=True)]
    y = np.zeros((len(x), len(w), *space), np.int64)
    inputs, outputs = w.shape[1], len(w) // groups
    for position in np.ndindex(*space):
        window = tuple(
            slice(p * s, p * s + e, d) for p, s, e, d in zip(position, strides, extent, dilations, strict=True)
        )
        for channel in range(len(w)):
            group = channel // outputs
            patch = x[(slice(None), slice(group * inputs, (group + 1) * inputs), *window)]
            y[(slice(None), channel, *position)] = (patch * w[channel]).reshape(len(x), -1).sum(1)
    assert rank == len(space)
    return y


GEOMETRY = list(
    itertools.product(
        [(1, 1), (2, 3)],
        [((0, 0), (0, 0)), ((1, 2), (2, 0))],
        [(1, 1), (2, 1)],
        [(1, 4), (2, 3), (6, 2), (6, 1)],
    )
)


@pytest.mark.parametrize("strides, pads, dilations, grouping", GEOMETRY)
def test_convolution_by_its_definition(strides, pads, dilations, grouping):
    groups, multiple = grouping
    rng = np.random.default_rng(groups)
    x = rng.integers(-255, 256, (2, 6, 9, 8))
    w = rng.integers(-255, 256, (groups * multiple, 6 // groups, 3, 2))
    expected = naive(x, w, strides, *pads, dilations, groups)
    result = convolution_accumulator(
        x, w, strides=strides, pads_begin=pads[0], pads_end=pads[1], dilations=dilations, groups=groups
    )
    assert result.dtype == np.int64
    assert (result == expected).all()


@pytest.mark.parametrize("rank", [1, 3])
def test_other_numbers_of_spatial_dimensions(rank):
    rng = np.random.default_rng(rank)
    x, w = rng.integers(-9, 9, (1, 2, *(5,) * rank)), rng.integers(-9, 9, (3, 2, *(2,) * rank))
    one, pad = (1,) * rank, (1,) * rank
    assert (convolution_accumulator(x, w, pads_begin=pad) == naive(x, w, one, pad, pad, one, 1)).all()


@pytest.mark.parametrize("strides, pad, dilation, extra, groups", [(1, 0, 1, 0, 1), (2, 1, 1, 1, 1), (3, 2, 2, 0, 2)])
def test_transposed_convolution_is_the_transpose(strides, pad, dilation, extra, groups):
    """<conv(u), v> == <u, transposed(v)> for every u and v is what transposed means."""
    rng = np.random.default_rng(strides)
    v = rng.integers(-50, 50, (1, 4, 5, 4))
    w = rng.integers(-50, 50, (4, 6 // groups, 3, 3))
    window = {
        "strides": [strides] * 2,
        "pads_begin": [pad] * 2,
        "dilations": [dilation] * 2,
        "groups": groups,
    }
    y = transposed_accumulator(v, w, output_padding=[extra] * 2, **window)
    side = [(n - 1) * strides - 2 * pad + dilation * 2 + 1 + extra for n in v.shape[2:]]
    assert y.shape == (1, 6, *side)
    u = rng.integers(-50, 50, y.shape)
    assert (convolution_accumulator(u, w, **window) * v).sum() == (u * y).sum()


@pytest.mark.parametrize("depth", [100, 300, 600, 5000])
def test_sums_are_exact_at_the_extremes(depth):
    """All products of one sign: a float32 sum beyond 2^24 would be wrong."""
    rng = np.random.default_rng(depth)
    w, columns = rng.integers(220, 256, (2, depth)), rng.integers(220, 256, (depth, 3))
    assert (matrix_accumulator(w, columns, 255) == w @ columns).all()
    inexact = (w.astype(np.float32) @ columns.astype(np.float32)).astype(np.int64)
    assert depth < 600 or (inexact != w @ columns).any(), "the data does not need the pieces"


def test_sixteen_bit_inputs():
    rng = np.random.default_rng(0)
    x, w = rng.integers(-32768, 32768, (1, 3, 6, 6)), rng.integers(-128, 128, (4, 3, 3, 3))
    one, zero = (1, 1), (0, 0)
    assert (convolution_accumulator(x, w) == naive(x, w, one, zero, zero, one, 1)).all()


@pytest.mark.parametrize(
    "x, w, options, culprit",
    [
        ((1, 4, 5, 5), (3, 3, 3, 3), {}, "groups do not fit"),
        ((1, 4, 5, 5), (3, 2, 3, 3), {"groups": 2}, "groups do not fit"),
        ((1, 4, 5, 5), (3, 4, 3), {}, "rank 3"),
        ((1, 4, 5, 5), (3, 4, 7, 3), {}, "does not fit"),
        ((1, 4, 5, 5), (3, 4, 3, 3), {"strides": [1]}, "one per spatial dimension"),
    ],
)
def test_what_does_not_fit_is_named(x, w, options, culprit):
    with pytest.raises(InputError, match=culprit):
        convolution_accumulator(np.zeros(x, int), np.zeros(w, int), **options)
