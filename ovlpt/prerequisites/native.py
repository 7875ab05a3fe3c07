"""What the native library prepares differently, kept with ``native_only``; each class replaces the one of its name."""

from __future__ import annotations

import numpy as np

from ovlpt.layer_transformation import replacing
from ovlpt.openvino_api import Node, Output
from ovlpt.prerequisites import (
    move_fake_quantize,
    pull_reshape_through_dequantization,
    pull_transpose_through_dequantization,
)


class MoveFakeQuantize(move_fake_quantize.MoveFakeQuantize):
    """Each branch gets a quantization of its own, where it has one, too."""

    def _quantized_alike(self, value: Output, quantize: Node) -> Node | None:
        return None


class PullReshapeThroughDequantization(pull_reshape_through_dequantization.PullReshapeThroughDequantization):
    def _reshaped(self, values: np.ndarray, before: tuple[int, ...], after: tuple[int, ...]) -> np.ndarray | None:
        return _spread(values, before, after)


class PullTransposeThroughDequantization(pull_transpose_through_dequantization.PullTransposeThroughDequantization):
    def _with_rank(self, values: np.ndarray, rank: int) -> np.ndarray:
        """A constant of fewer axes stays, and cannot follow."""
        return values


def _spread(values: np.ndarray, before: tuple[int, ...], after: tuple[int, ...]) -> np.ndarray | None:
    """Axes are taken apart and never joined: each axis of the constant, from the left, stands for the next axes of the
    target whose product is the size of the data there.
    """
    fits = len(after) == values.ndim and all(
        size in (1, target) for size, target in zip(values.shape, after, strict=True)
    )
    if fits:
        return values
    shape, position = list(after), 0
    for size, whole in zip(values.shape, before, strict=False):
        start, product = position, 1
        while position < len(after) and (position == start or product != whole):
            product *= after[position]
            position += 1
        if size != whole:
            shape[start:position] = [1] * (position - start)
    return values.reshape(shape) if np.prod(shape) == values.size else None


NATIVE = replacing(MoveFakeQuantize, PullReshapeThroughDequantization, PullTransposeThroughDequantization)
