"""A layer's post-operations as a chain of basic operations that can be run, read and rewritten.

    x -> multiply -> add -> round -> clip -> relu -> eltwise -> sum -> … -> store

Values are per tensor or per output channel. A chain runs in float32, every operation rounded on its own, or
on exact rationals (`Chain.rational`), where a rule that claims to be exact in the reals must leave every
result as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.fake_quantize.values import Vector, floats, per_tensor, rational, round_half_even, text
from ovlpt.trace import InputError


@dataclass(frozen=True, eq=False)
class Operation:
    """One basic operation; its numbers are vectors of length 1 (per tensor) or C (per channel)."""

    name: ClassVar[str] = ""
    vectors: ClassVar[tuple[str, ...]] = ()

    def __call__(self, x: np.ndarray, summand: np.ndarray | None = None) -> np.ndarray:
        """The result for an ``x`` with its channels last."""
        raise NotImplementedError

    def spread(self, error: np.ndarray) -> np.ndarray:
        """How far apart two results can lie whose arguments lie ``error`` apart."""
        return error

    @property
    def per_tensor(self) -> bool:
        return all(per_tensor(getattr(self, field)) for field in self.vectors)

    def with_vectors(self, change: Callable[[np.ndarray], np.ndarray]) -> Self:
        return replace(self, **{field: change(getattr(self, field)) for field in self.vectors})

    def __str__(self) -> str:
        return f"{self.name}({', '.join(text(getattr(self, field)) for field in self.vectors)})"


@dataclass(frozen=True, eq=False)
class Multiply(Operation):
    """``x * scale``"""

    scale: Vector = Vector()
    name, vectors = "multiply", ("scale",)

    def __call__(self, x, summand=None):
        return x * self.scale

    def spread(self, error):
        return error * np.abs(floats(self.scale))


@dataclass(frozen=True, eq=False)
class Add(Operation):
    """``x + shift``"""

    shift: Vector = Vector()
    name, vectors = "add", ("shift",)

    def __call__(self, x, summand=None):
        return x + self.shift


@dataclass(frozen=True, eq=False)
class Round(Operation):
    """Nearest integer, ties to even."""

    name = "round"

    def __call__(self, x, summand=None):
        return round_half_even(x)

    def spread(self, error):
        return np.where(error > 0, np.floor(error) + 1, 0)

    def __str__(self) -> str:
        return "round"


@dataclass(frozen=True, eq=False)
class Clip(Operation):
    """``min(max(x, low), high)``"""

    low: Vector = Vector()
    high: Vector = Vector()
    name, vectors = "clip", ("low", "high")

    def __call__(self, x, summand=None):
        return np.minimum(np.maximum(x, self.low), self.high)


@dataclass(frozen=True, eq=False)
class Relu(Operation):
    """``x`` where it is positive, ``slope * x`` elsewhere; a slope per channel makes it a PReLU."""

    slope: Vector = Vector(0)
    name, vectors = "relu", ("slope",)

    def __call__(self, x, summand=None):
        return np.where(x > 0, x, x * self.slope)

    def spread(self, error):
        return error * np.maximum(1, np.abs(floats(self.slope)))

    def __str__(self) -> str:
        return "relu" if self.per_tensor and self.slope[0] == 0 else f"prelu({text(self.slope)})"


class Function(NamedTuple):
    """An elementwise function of x and alpha, and its Lipschitz constant for an alpha."""

    of: Callable[[float, float], float]
    lipschitz: Callable[[float], float]


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _softplus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


FUNCTIONS = {
    "sigmoid": Function(lambda x, _: _sigmoid(x), lambda _: 1 / 4),
    "tanh": Function(lambda x, _: math.tanh(x), lambda _: 1),
    "abs": Function(lambda x, _: abs(x), lambda _: 1),
    "elu": Function(lambda x, alpha: x if x > 0 else alpha * math.expm1(x), lambda alpha: max(1, abs(alpha))),
    "gelu_erf": Function(lambda x, _: x * (1 + math.erf(x / math.sqrt(2))) / 2, lambda _: 1.13),
    "swish": Function(lambda x, alpha: x * _sigmoid(alpha * x), lambda _: 1.1),
    "hswish": Function(lambda x, _: x * min(max(x + 3, 0), 6) / 6, lambda _: 1.5),
    "hsigmoid": Function(lambda x, _: min(max(x + 3, 0), 6) / 6, lambda _: 1 / 6),
    "mish": Function(lambda x, _: x * math.tanh(_softplus(x)), lambda _: 1.09),
    "softplus": Function(lambda x, _: _softplus(x), lambda _: 1),
}
"""The other elementwise functions, by name."""


@dataclass(frozen=True, eq=False)
class Eltwise(Operation):
    """``scale * function(x, alpha)``; only oneDNN 2 knows a scale here."""

    function: str
    alpha: float = 0.0
    scale: Vector = Vector(1)
    name, vectors = "eltwise", ("scale",)

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise InputError(f"elementwise function {self.function!r} is unknown; give one of {', '.join(FUNCTIONS)}")

    def __call__(self, x, summand=None):
        of = FUNCTIONS[self.function].of
        exact = x.dtype == object
        number = Fraction if exact else np.float32
        result = np.frompyfunc(lambda v: number(of(float(v), self.alpha)), 1, 1)(x)
        return np.asarray(result, object if exact else np.float32) * self.scale

    def spread(self, error):
        return error * FUNCTIONS[self.function].lipschitz(self.alpha) * np.abs(floats(self.scale))

    def __str__(self) -> str:
        alpha = f", {self.alpha:g}" if self.alpha else ""
        scaled = f" * {text(self.scale)}" if not per_tensor(self.scale) or self.scale[0] != 1 else ""
        return f"{self.function}(x{alpha}){scaled}" if alpha or scaled else self.function


@dataclass(frozen=True, eq=False)
class Sum(Operation):
    """``x + scale * summand``: the other branch of a residual connection joins the layer's."""

    scale: Vector = Vector(1)
    name, vectors = "sum", ("scale",)

    def __call__(self, x, summand=None):
        if summand is None:
            raise InputError("the chain has a sum and no summand to add; give the summand")
        return x + summand * self.scale


STORES = {"u8": (0, 255), "i8": (-128, 127)}
"""Integer types that a kernel stores to: it rounds to even and saturates to these ends."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Operations in order, then a store to u8 or i8 that rounds and saturates (None: to float32)."""

    operations: tuple[Operation, ...]
    store: str | None = None

    def __init__(self, operations: Iterable[Operation], store: str | None = None):
        object.__setattr__(self, "operations", tuple(operations))
        object.__setattr__(self, "store", store)
        if store not in (None, *STORES):
            raise InputError(f"store {store!r} is unknown; give 'u8', 'i8' or None")
        lengths = {getattr(o, field).size for o in self.operations for field in o.vectors} - {1}
        if len(lengths) > 1:
            raise InputError(f"the chain has values of {sorted(lengths)} channels; give one length, or 1 per tensor")

    def run(self, x: ArrayLike, summand: ArrayLike | None = None, axis: int = -1) -> np.ndarray:
        """The chain's result, of the shape of ``x``; ``axis`` is the axis of the channels."""
        x, summand = (v if v is None else np.moveaxis(np.asarray(v), axis, -1) for v in (x, summand))
        for operation in self.operations:
            x = operation(x, summand)
        if self.store:
            x = Clip(*STORES[self.store])(round_half_even(x)) if x.dtype != object else _exact_store(x, self.store)
        return np.moveaxis(x, -1, axis)

    def rational(self) -> Chain:
        """The same chain with exact numbers; run it on an ``x`` of `Fraction` objects."""
        return Chain((operation.with_vectors(rational) for operation in self.operations), self.store)

    def spread(self, error: ArrayLike, start: int) -> np.ndarray:
        """How far apart results can lie if what enters ``operations[start]`` is ``error`` off."""
        apart = np.atleast_1d(np.asarray(error, np.float64))
        for operation in self.operations[start:]:
            apart = operation.spread(apart)
        return Round().spread(apart) if self.store else apart

    def replaced(self, start: int, stop: int, *operations: Operation) -> Chain:
        """The chain with ``operations[start:stop]`` replaced."""
        return Chain((*self.operations[:start], *operations, *self.operations[stop:]), self.store)

    def __len__(self) -> int:
        return len(self.operations)

    def __str__(self) -> str:
        parts = [str(operation) for operation in self.operations]
        return " · ".join([*parts, f"store {self.store}"] if self.store else parts) or "nothing"


def _exact_store(x: np.ndarray, store: str) -> np.ndarray:
    low, high = (np.asarray(Fraction(end), object) for end in STORES[store])
    return np.minimum(np.maximum(round_half_even(x), low), high)


def decompose(parameters: FakeQuantize) -> tuple[Operation, ...]:
    """FakeQuantize as the CPU plugin writes it: crop, scale, round, scale back.

    clip(il, ih) · multiply((L-1) / (ih-il)) · add(-il (L-1) / (ih-il)) · round · multiply((oh-ol) / (L-1)) ·
    add(ol)

    Exact in the reals; in float32 a value next to a tie may fall one level to the other side.
    """
    steps = parameters.levels - 1 if parameters.input_low.dtype == object else np.float32(parameters.levels - 1)
    return (
        Clip(parameters.input_low, parameters.input_high),
        Multiply(steps / (parameters.input_high - parameters.input_low)),
        Add(parameters.input_shift),
        Round(),
        Multiply(parameters.output_scale),
        Add(parameters.output_low),
    )
