"""The affine quantization of a tensor: ``real = scale * (integer - zero_point)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.trace import InputError

DTYPES: dict[str, np.dtype] = {"u8": np.dtype(np.uint8), "i8": np.dtype(np.int8), "i16": np.dtype(np.int16)}


@dataclass(frozen=True, eq=False, init=False)
class Quantization:
    """Scale, zero point and precision of a tensor.

    ``scale``: float32, positive; a number (per tensor) or an array [C] (per channel). The file formats of all
    three frameworks store float32; TFLite widens it to double where it computes multipliers. ``zero_point``:
    an integer of the precision, or an array [C]. ``precision``: "u8", "i8" or "i16". ``axis``: the dimension
    that C belongs to, counted from the front.

    Raises `InputError` for an unknown precision, a scale that is not positive and finite, a zero point out of
    range.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    precision: str
    axis: int

    def __init__(self, scale: ArrayLike, zero_point: ArrayLike = 0, precision: str = "u8", axis: int = 1) -> None:
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "axis", axis)
        scale, zero_point = np.asarray(scale, np.float32), np.asarray(zero_point, np.int64)
        if self.precision not in DTYPES:
            raise InputError(f"The precision {self.precision!r} is unknown: use one of {', '.join(DTYPES)}.")
        if not (np.isfinite(scale) & (scale > 0)).all():
            raise InputError("A scale is not positive and finite: give float32 scales above zero.")
        if scale.ndim > 1 or zero_point.ndim > 1:
            raise InputError("A scale or zero point has several dimensions: give a number or one value per channel.")
        if ((zero_point < self.low) | (zero_point > self.high)).any():
            raise InputError(f"A zero point is outside {self.precision}: give integers in [{self.low}, {self.high}].")
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "zero_point", zero_point)

    @property
    def dtype(self) -> np.dtype:
        """The numpy type that stores the integers."""
        return DTYPES[self.precision]

    @property
    def low(self) -> int:
        """The least integer of the precision."""
        return int(np.iinfo(self.dtype).min)

    @property
    def high(self) -> int:
        """The greatest integer of the precision."""
        return int(np.iinfo(self.dtype).max)

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return self.scale.size > 1

    def aligned(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Scale (float32) and zero point (int64), shaped to broadcast against a tensor of this rank.

        Raises `InputError` for values per channel where the tensor has no such axis.
        """
        scale, zero_point = (value.reshape(()) if value.size == 1 else value for value in (self.scale, self.zero_point))
        if not scale.ndim and not zero_point.ndim:
            return scale, zero_point
        if not 0 <= self.axis < rank:
            raise InputError(
                f"There is a scale or zero point for each channel of axis {self.axis}, and the tensor has {rank} axes: "
                "name one of them as the axis, or give one number."
            )
        shape = [-1 if axis == self.axis else 1 for axis in range(rank)]
        return (
            scale.reshape(shape) if scale.ndim else scale,
            zero_point.reshape(shape) if zero_point.ndim else zero_point,
        )

    def same_as(self, other: Quantization) -> bool:
        """Whether both describe the same reals by the same integers."""
        return (
            self.precision == other.precision
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )

    def store(self, values: np.ndarray) -> np.ndarray:
        """Saturate integers (of any numeric type) to the precision."""
        return np.clip(values, self.low, self.high).astype(self.dtype)

    def centered(self, q: ArrayLike) -> np.ndarray:
        """``q - zero_point`` in int64."""
        q = np.asarray(q)
        if q.dtype != self.dtype:
            raise InputError(f"A tensor of {q.dtype} is described as {self.precision}: give an array of {self.dtype}.")
        return q.astype(np.int64) - self.aligned(q.ndim)[1]


# which activations each framework's operators take
ACTIVATIONS = {"caffe2": ("u8",), "torch": ("u8",)}


def require_activations(operator: str, method: str, *quantizations: Quantization) -> None:
    """Raise `InputError` unless all are per tensor and of one precision that the framework has."""
    allowed = ACTIVATIONS.get(method.partition("-")[0], ("u8", "i8"))
    precisions = {quantization.precision for quantization in quantizations}
    if len(precisions) > 1 or not precisions <= set(allowed):
        raise InputError(
            f"{operator} with the method {method} does not take {' and '.join(sorted(precisions))} tensors: "
            f"use {' or '.join(allowed)}, the same for inputs and output."
        )
    if any(quantization.per_channel for quantization in quantizations):
        raise InputError(f"{operator} takes one scale per tensor: give a number as the scale.")
