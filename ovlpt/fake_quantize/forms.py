"""FakeQuantize as a quantizer: scales, shifts, and when a plain integer store does the work.

    Si = (ih - il) / (L - 1)    Zi = -il / Si    So = (oh - ol) / (L - 1)    Zo = -ol / So

    U8 form    q = clamp(round(x / Si + Zi),       0,      L - 1)         y = (q - Zo) * So
    I8 form    q = clamp(round(x / Si + Zi - L/2), -L/2, L/2 - 1)         y = (q + L/2 - Zo) * So

The U8 form is FakeQuantize itself, exactly in the reals, for il < ih. The I8 form moves L/2 through the
rounding, which keeps ties only if L/2 is even: L must be divisible by 4 (2, 6 and 255 give other values at
ties, or no integer at all). x -> q is traditional quantization only if Zi is an integer, q -> y traditional
dequantization only if Zo is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.fake_quantize.definition import check_parameters, fake_quantize
from ovlpt.fake_quantize.values import floats, rational, round_half_even, text, values
from ovlpt.trace import InputError, reject_unless


@dataclass(frozen=True, eq=False)
class Form:
    """Quantize and dequantize around ``centre``: 0 in the U8 form, levels / 2 in the I8 form.

    ``scale``, ``shift``, ``output_scale`` and ``output_shift`` are Si, Zi - centre, So and Zo - centre.
    """

    scale: np.ndarray
    shift: np.ndarray
    low: int
    high: int
    output_scale: np.ndarray
    output_shift: np.ndarray

    def quantize(self, x: np.ndarray) -> np.ndarray:
        """``clamp(round(x / Si + Zi - centre), low, high)``; ``x`` has its channels last."""
        rounded = round_half_even(x / self.scale + self.shift)
        return np.minimum(np.maximum(rounded, self.low), self.high)

    def dequantize(self, q: np.ndarray) -> np.ndarray:
        """``(q + centre - Zo) * So``; ``q`` has its channels last."""
        return (q - self.output_shift) * self.output_scale

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.dequantize(self.quantize(x))

    def __str__(self) -> str:
        quantize = f"q = clamp(round(x / {text(self.scale)} + {text(self.shift)}), {self.low}, {self.high})"
        return f"{quantize}; y = (q - {text(self.output_shift)}) * {text(self.output_scale)}"


@dataclass(frozen=True, eq=False)
class FakeQuantize:
    """The parameters of a FakeQuantize with input_low < input_high: float32 (or rational) vectors of length 1
    or C.

    Raises `InputError` where `check_parameters` does, and where the vectors' lengths disagree.
    """

    input_low: np.ndarray
    input_high: np.ndarray
    output_low: np.ndarray
    output_high: np.ndarray
    levels: int

    def __post_init__(self):
        names = ("input_low", "input_high", "output_low", "output_high")
        for name in names:
            object.__setattr__(self, name, values(getattr(self, name)))
        lengths = {bound.size for bound in self.bounds} - {1}
        if len(lengths) > 1:
            raise InputError(
                f"FakeQuantize has bounds of {sorted(lengths)} channels; give one length, or 1 for per tensor"
            )
        check_parameters(*self.bounds, self.levels)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.input_low, self.input_high, self.output_low, self.output_high

    def __call__(self, x: ArrayLike, axis: int = -1) -> np.ndarray:
        """The definition, for an ``x`` with its channels on ``axis``; in rationals if the bounds are."""
        x = np.moveaxis(np.asarray(x), axis, -1)
        if self.input_low.dtype != object:
            return np.moveaxis(fake_quantize(x, *self.bounds, self.levels), -1, axis)
        il, ih, ol, oh = self.bounds
        steps = self.levels - 1
        ramp = round_half_even((x - il) / (ih - il) * steps) / steps * (oh - ol) + ol
        return np.moveaxis(np.where(x <= il, ol, np.where(x > ih, oh, ramp)), -1, axis)

    def rational(self) -> FakeQuantize:
        """The same quantizer with exact numbers."""
        il, ih, ol, oh = map(rational, self.bounds)
        return FakeQuantize(il, ih, ol, oh, self.levels)

    @property
    def input_scale(self) -> np.ndarray:
        """Si, the width of one input step."""
        return (self.input_high - self.input_low) / self._steps

    @property
    def input_shift(self) -> np.ndarray:
        """Zi, the level of the real number 0 (a fraction, in general)."""
        return (0 - self.input_low) * self._steps / (self.input_high - self.input_low)

    @property
    def output_scale(self) -> np.ndarray:
        """So, the width of one output step; 0 where the output is constant, negative where it falls."""
        return (self.output_high - self.output_low) / self._steps

    @property
    def output_shift(self) -> np.ndarray:
        """Zo, the level whose output is 0. Not finite where the output is constant."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (0 - self.output_low) * self._steps / (self.output_high - self.output_low)

    @property
    def _steps(self):
        return self.levels - 1 if self.input_low.dtype == object else np.float32(self.levels - 1)

    @property
    def input_zero_point(self) -> np.ndarray | None:
        """Zi as integers if it is one in every channel, as far as float32 bounds can tell; else None."""
        return zero_point(self.input_low, self.input_high, self.levels)

    @property
    def output_zero_point(self) -> np.ndarray | None:
        """Zo as integers if it is one in every channel, as far as float32 bounds can tell; else None."""
        return zero_point(self.output_low, self.output_high, self.levels)

    @property
    def symmetric(self) -> bool:
        """il = -ih in every channel: Zi is (L - 1) / 2, no integer for an even number of levels."""
        return bool(np.all(self.input_low == -self.input_high))

    def form(self, precision: str) -> Form:
        """The ``"u8"`` or ``"i8"`` form; raises `Rejected` where the I8 form is not this FakeQuantize."""
        half = _half(self.levels, precision)
        reject_unless(
            np.all(self.output_low != self.output_high),
            "constant_output",
            "the output range is one point, so the output scale is 0 and no zero point exists",
        )
        return Form(
            self.input_scale,
            self.input_shift - half,
            -half,
            self.levels - 1 - half,
            self.output_scale,
            self.output_shift - half,
        )

    def __str__(self) -> str:
        il, ih, ol, oh = map(text, self.bounds)
        return f"fake_quantize({il}…{ih} -> {ol}…{oh}, {self.levels} levels)"


def _half(levels: int, precision: str) -> int:
    if precision not in ("u8", "i8"):
        raise InputError(f"precision {precision!r} has no quantizer form; give 'u8' or 'i8'")
    if precision == "u8":
        return 0
    reject_unless(
        levels % 4 == 0,
        "levels_not_divisible_by_4",
        f"{levels} levels are not divisible by 4, and a shift by levels / 2 keeps ties only if it is even",
    )
    return levels // 2


def zero_point(low: np.ndarray, high: np.ndarray, levels: int) -> np.ndarray | None:
    """``-low * (levels - 1) / (high - low)`` if that is an integer in every channel, else None.

    Each bound is only known to half a float32 unit, which moves the quotient by up to (levels - 1) * |low *
    high| / (high - low)² * 2⁻²³; four times that is tolerated, for bounds that were computed in a few float32
    steps, but never more than 1/16. Rational bounds are taken as they are.
    """
    if low.dtype == object:
        exact = -low * (levels - 1) / (high - low)
        return floats(exact).astype(np.int64) if all(number.denominator == 1 for number in exact) else None
    low, high = floats(low), floats(high)
    span = high - low
    if np.any(span == 0):
        return None
    quotient = -low * (levels - 1) / span
    tolerance = np.minimum(4 * (levels - 1) * np.abs(low * high) / span**2 * 2.0**-23, 1 / 16)
    nearest = np.rint(quotient)
    return nearest.astype(np.int64) if np.all(np.abs(quotient - nearest) <= tolerance) else None


@dataclass(frozen=True, eq=False)
class Adjusted:
    """A range with an integer zero point.

    ``moved`` is the farthest an end moved; ``error`` the farthest a value of the old range can now lie from
    its quantized value (half a new step, or what is cut off). Both are in units of the range.
    """

    low: np.ndarray
    high: np.ndarray
    zero_point: np.ndarray
    moved: np.ndarray
    error: np.ndarray


def adjust(low: ArrayLike, high: ArrayLike, levels: int, *, cover: bool = False) -> Adjusted:
    """The nearest range with an integer zero point in 0 … levels - 1.

    A range that does not hold 0 is first extended to it. Then, by default, the range keeps its step and
    shifts to the nearest zero point: no end can move less, and none moves by more than half a step. With
    ``cover=True`` nothing is cut off: the range grows by as little as possible; for ``low == -high`` and even
    levels that pushes ``low`` to ``-high / (1 - 2 / levels)`` with the zero point levels / 2. Raises
    `InputError` as `check_parameters` does.
    """
    check_parameters(low, high, low, high, levels)
    old_low, old_high = floats(values(low)), floats(values(high))
    least, greatest = np.minimum(old_low, 0), np.maximum(old_high, 0)
    steps = levels - 1
    level_of_zero = -least * steps / (greatest - least)
    if cover:
        with np.errstate(divide="ignore", invalid="ignore"):
            lower, upper = (
                np.maximum(np.where(least < 0, -least / zero, 0), np.where(greatest > 0, greatest / (steps - zero), 0))
                for zero in (np.floor(level_of_zero), np.ceil(level_of_zero))
            )
        zero = np.where(lower < upper * (1 - 2.0**-40), np.floor(level_of_zero), np.ceil(level_of_zero))
        step = np.minimum(lower, upper)
    else:
        zero = np.rint(level_of_zero)
        step = (greatest - least) / steps
    new_low, new_high = values(-zero * step), values((steps - zero) * step)
    left, right = floats(new_low) - old_low, old_high - floats(new_high)
    return Adjusted(
        new_low,
        new_high,
        zero.astype(np.int64),
        moved=np.maximum(np.abs(left), np.abs(right)),
        error=np.maximum.reduce([step / 2, left, right]),
    )


@dataclass(frozen=True, eq=False)
class QuantizeOnly:
    """``q = saturate(round(x * scale))`` stored as ``precision``: all that is left of the FakeQuantize."""

    precision: str
    scale: np.ndarray


def quantize_only(parameters: FakeQuantize, precision: str) -> QuantizeOnly:
    """The FakeQuantize as nothing but an output scale before a saturating ``"u8"`` or ``"i8"`` store.

    u8: Zi = 0,   So = 1, Zo = 0          i8: Zi = 128, So = 1, Zo = 128 (output_low = -128)

    Levels must be 256, or the store would not clamp where FakeQuantize does. The scale may be per channel.
    Raises `Rejected` with the first condition that does not hold.
    """
    half = _half(parameters.levels, precision)
    reject_unless(
        parameters.levels == 256,
        "levels_not_256",
        f"{parameters.levels} levels do not fill the range of {precision}, so its store does not clamp",
    )
    zero = parameters.input_zero_point
    reject_unless(
        zero is not None,
        "input_zero_point_not_integer",
        f"the input zero point is {text(parameters.input_shift)}, not an integer",
    )
    reject_unless(
        np.all(zero == half),
        "input_zero_point",
        f"the input zero point is {text(values(zero))}, {precision} needs {half}",
    )
    reject_unless(
        np.all(parameters.output_scale == 1),
        "output_scale_not_one",
        f"the output scale is {text(parameters.output_scale)}, not 1",
    )
    reject_unless(
        np.all(parameters.output_low == -half),
        "output_low",
        f"output_low is {text(parameters.output_low)}, {precision} needs {-half}",
    )
    return QuantizeOnly(precision, 1 / parameters.input_scale)
