"""FakeQuantize-1, the one definition of it in this package."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def fake_quantize(
    x: ArrayLike,
    input_low: ArrayLike,
    input_high: ArrayLike,
    output_low: ArrayLike,
    output_high: ArrayLike,
    levels: int,
) -> np.ndarray:
    """Quantize ``x`` to ``levels`` steps of [input_low, input_high] and map them to [output_low, output_high].

    All arguments broadcast against each other by numpy's rules; the result is float32 of the broadcast shape.
    Every operation is rounded to float32 in the order of the specification, ties go to even, so the result is bit for
    bit that of OpenVINO's reference kernel. NaN stays NaN.

    Source: OpenVINO operation specification, FakeQuantize-1.
    """
    x, il, ih, ol, oh = (np.asarray(value, np.float32) for value in (x, input_low, input_high, output_low, output_high))
    steps = np.float32(levels - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inside = np.rint((x - il) / (ih - il) * steps) / steps * (oh - ol) + ol
    result = np.where(x <= np.minimum(il, ih), ol, np.where(x > np.maximum(il, ih), oh, inside))
    return result.astype(np.float32, copy=False)
