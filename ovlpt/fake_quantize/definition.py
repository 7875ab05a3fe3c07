"""FakeQuantize-1, the one definition of it in this package.

    y = ol                                                          x <= min(il, ih)
    y = oh                                                          x >  max(il, ih)
    y = round((x - il) / (ih - il) * (L - 1)) / (L - 1) * (oh - ol) + ol      otherwise

Every operation is rounded to float32 in this order and ties go to even.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.trace import InputError

_BLOCK = 1 << 17
"""Elements worked on at a time: a block stays in the cache through all eight passes over it."""


def fake_quantize(
    x: ArrayLike,
    input_low: ArrayLike,
    input_high: ArrayLike,
    output_low: ArrayLike,
    output_high: ArrayLike,
    levels: int,
) -> np.ndarray:
    """Quantize ``x`` to ``levels`` steps of [input_low, input_high] and map them to [output_low,
    output_high].

    All arguments broadcast against each other by numpy's rules; the result is a new float32 array of the
    broadcast shape, bit for bit that of OpenVINO's reference kernel for f32, whatever the order of the
    bounds. NaN stays NaN. Other floating types are converted to float32 first, as the plugins do with f16 and
    bf16 models.

    Source: OpenVINO operation specification, FakeQuantize-1.
    """
    given = [np.asarray(v, np.float32) for v in (x, input_low, input_high, output_low, output_high)]
    shape = np.broadcast_shapes(*(v.shape for v in given))
    data, il, ih, ol, oh = (v.reshape((1,) * (len(shape) - v.ndim) + v.shape) for v in given)
    result = np.empty(shape, np.float32)
    with np.errstate(all="ignore"):
        evaluate = _by_clipping if _clipping_suffices(il, ih, ol, oh, levels) else _by_selecting
        _in_blocks(evaluate, np.float32(levels - 1), result, (data, il, ih, ol, oh))
    return result


def check_parameters(
    input_low: ArrayLike, input_high: ArrayLike, output_low: ArrayLike, output_high: ArrayLike, levels: int
) -> None:
    """Raise `InputError` unless a quantizer can be made of these: finite bounds, levels >= 2, input_low <
    input_high.

    OpenVINO accepts all of it: with levels 0 or 1 it divides by zero, and where input_low >= input_high its
    reference kernel and its CPU plugin return different numbers. output_low > output_high is legal and a
    falling ramp.
    """
    if int(levels) != levels or levels < 2:
        raise InputError(f"FakeQuantize has levels = {levels}; give a whole number of at least 2")
    names = ("input_low", "input_high", "output_low", "output_high")
    for name, bound in zip(names, (input_low, input_high, output_low, output_high), strict=True):
        if not np.all(np.isfinite(np.asarray(bound, np.float64))):
            raise InputError(f"FakeQuantize has a {name} that is not finite; give finite bounds")
    low, high = np.broadcast_arrays(input_low, input_high)
    if not np.all(low < high):
        at = np.unravel_index(np.argmin(low < high), low.shape)
        raise InputError(
            f"FakeQuantize has input_low = {low[at]} and input_high = {high[at]}; give input_low < input_high"
        )


def _in_blocks(evaluate, steps: np.float32, result: np.ndarray, operands: tuple[np.ndarray, ...]) -> None:
    """Halve along the first long axis until a block is small; contiguous arrays stay contiguous."""
    if result.size <= _BLOCK:
        evaluate(steps, result, *operands)
        return
    axis = next(i for i, length in enumerate(result.shape) if length > 1)
    middle = result.shape[axis] // 2
    for half in (slice(None, middle), slice(middle, None)):
        at = (slice(None),) * axis + (half,)
        _in_blocks(evaluate, steps, result[at], tuple(v[at] if v.shape[axis] > 1 else v for v in operands))


def _by_clipping(steps, out, x, il, ih, ol, oh) -> None:
    np.maximum(x, il, out=out)
    np.minimum(out, ih, out=out)
    _ramp(steps, out, out, il, ih, ol, oh)


def _by_selecting(steps, out, x, il, ih, ol, oh) -> None:
    _ramp(steps, out, x, il, ih, ol, oh)
    np.copyto(out, oh, where=x > np.maximum(il, ih))
    np.copyto(out, ol, where=x <= np.minimum(il, ih))


def _ramp(steps, out, x, il, ih, ol, oh) -> None:
    np.subtract(x, il, out=out)
    np.divide(out, ih - il, out=out)
    np.multiply(out, steps, out=out)
    np.rint(out, out=out)
    np.divide(out, steps, out=out)
    np.multiply(out, oh - ol, out=out)
    np.add(out, ol, out=out)


def _clipping_suffices(il, ih, ol, oh, levels: int) -> bool:
    """Clipping x to [il, ih] gives the same bits where the ramp's own ends are exactly ol and oh."""
    return bool(
        levels >= 2
        and np.all(il < ih)
        and np.all(np.isfinite(ih - il))
        and np.all((oh - ol) + ol == oh)
        and not np.any((ol == 0) & np.signbit(ol))
        and not np.any((oh == 0) & np.signbit(oh))
    )
