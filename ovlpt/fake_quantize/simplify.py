"""Rules that make a chain of basic operations shorter, and what each of them costs.

    clip_after_round        r(clip(x, l, h)) = clip(r(x), r(l), r(h)) for r(x) = round(x * a + b)       a != 0
    per_tensor              equal values in every channel are one value
    nearly_per_tensor       so are shifts before a round that differ by less than 5e-5
    shift_through_round     clip(round(x), l, h) + s = clip(round(x + s), l + s, h + s)      s an even integer
    futile_clip             store(clip(round(x), l, h)) = store(x)               [l, h] holds the stored range
    combined_scale          clip(round(x), l, h) * c + d ~ clip(x * c + d, l * c + d, h * c + d)  before a sum
    small_shift             clip(x + s, l, h) ~ clip(x, l, h)                             |s| < 1e-5 * (h - l)
    merge                   (x * a + b) * c = x * ac + bc
    merge_clips             clip(clip(x, l, h), m, k) = clip(x, max(l, m), min(h, k))       the intervals meet
    multiply_before_relu    relu(x) * s = relu(x * s)                                                   s >= 0
    multiply_before_sum     (x + k * summand) * s = x * s + ks * summand                          s per tensor
    identity                x * 1 = x,  x + 0 = x
    multiply_into_eltwise   (k * f(x)) * s = ks * f(x)                         s per tensor, oneDNN 2 (legacy)

A rule takes a chain and returns a `Rewrite` of the first place where it holds, with its exactness; or it
raises `Rejected` with the reason. Exactness is meant for finite numbers that do not overflow, and takes -0 as
0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Any

import numpy as np

from ovlpt.fake_quantize.chain import STORES, Add, Chain, Clip, Eltwise, Multiply, Operation, Relu, Round, Sum
from ovlpt.fake_quantize.values import floats, per_tensor, text
from ovlpt.trace import Reason, Rejected, reject, reject_unless


class Exactness(StrEnum):
    """What a rewrite may change, from nothing to a bounded error."""

    FLOAT32 = "exact in float32"
    REALS = "exact in the reals, rounded differently in float32"
    APPROXIMATE = "approximate"


@dataclass(frozen=True, eq=False)
class Rewrite:
    """One rule applied to one place.

    ``bound`` is the farthest (per channel, or one number) that a result of ``after`` can lie from that of
    ``before`` in the reals: 0 unless the rule is approximate.
    """

    rule: str
    before: Chain
    after: Chain
    exactness: Exactness
    bound: np.ndarray | float = 0.0

    def __str__(self) -> str:
        off = f", off by {np.max(self.bound):g} at most" if self.exactness is Exactness.APPROXIMATE else ""
        return f"{self.rule} ({self.exactness}{off}): {self.after}"


Place = Callable[[Chain, int], Rewrite]
ABSENT = "absent"


@dataclass(frozen=True)
class Rule:
    """A rewrite tried at every operation of a chain, first to last."""

    name: str
    at: Place

    def __call__(self, chain: Chain) -> Rewrite:
        refusal = Reason(ABSENT, f"the chain has no place for {self.name.replace('_', ' ')}")
        for position in range(len(chain)):
            try:
                return self.at(chain, position)
            except Rejected as rejected:
                if refusal.code == ABSENT:
                    refusal = rejected.reason
        raise Rejected(refusal)


def _match(chain: Chain, at: int, *kinds: type | UnionType | tuple[type]) -> tuple[list[Any], int]:
    """The operations of these kinds from ``at`` on, None for an absent ``(kind,)``, and where they end."""
    found: list[Any] = []
    for kind in kinds:
        if at < len(chain) and isinstance(chain.operations[at], kind):
            found.append(chain.operations[at])
            at += 1
        elif isinstance(kind, tuple):
            found.append(None)
        else:
            reject(ABSENT, "another operation stands here")
    return found, at


def _clip_between(low: np.ndarray, high: np.ndarray) -> Clip:
    return Clip(np.minimum(low, high), np.maximum(low, high))


def _clip_after_round(chain: Chain, at: int) -> Rewrite:
    """What the clip passes is monotone, in float32 as in the reals, so its ends go the same way."""
    (clip,), start = _match(chain, at, Clip)
    stop = start
    while stop < len(chain) and isinstance(chain.operations[stop], Multiply | Add):
        stop += 1
    _match(chain, stop, Round)
    passed = chain.operations[start : stop + 1]
    low, high = clip.low, clip.high
    for operation in passed:
        reject_unless(
            not isinstance(operation, Multiply) or np.all(operation.scale != 0),
            "zero_scale",
            "a scale is 0, so the clip's bounds mean nothing after it",
        )
        with np.errstate(over="ignore"):
            low, high = operation(low), operation(high)
    finite = np.all(np.isfinite(floats(low))) and np.all(np.isfinite(floats(high)))
    reject_unless(finite, "overflow", "the clip's ends overflow when scaled")
    after = chain.replaced(at, stop + 1, *passed, _clip_between(low, high))
    return Rewrite("clip_after_round", chain, after, Exactness.FLOAT32)


def _shrunk(vector: np.ndarray) -> np.ndarray:
    return vector[:1] if np.all(vector == vector[0]) else vector


def _per_tensor(chain: Chain, at: int) -> Rewrite:
    operation = chain.operations[at]
    reject_unless(not operation.per_tensor, ABSENT, f"{operation} is per tensor")
    shrunk = operation.with_vectors(_shrunk)
    reject_unless(
        any(getattr(operation, field).size != getattr(shrunk, field).size for field in operation.vectors),
        "differs_between_channels",
        f"{operation} differs between the channels",
    )
    return Rewrite("per_tensor", chain, chain.replaced(at, at + 1, shrunk), Exactness.FLOAT32)


def _nearly_per_tensor(chain: Chain, at: int) -> Rewrite:
    """A per-channel scale folded into a FakeQuantize leaves its shift per channel by float32 noise only."""
    (add, _), _ = _match(chain, at, Add, Round)
    first = add.shift[:1]
    apart = np.abs(floats(add.shift - first))
    reject_unless(not per_tensor(add.shift), ABSENT, f"{add} is per tensor")
    reject_unless(
        np.all(apart < 5e-5),
        "differs_between_channels",
        f"{add} differs between the channels by {apart.max():g}",
    )
    after = chain.replaced(at, at + 1, Add(first))
    return Rewrite("nearly_per_tensor", chain, after, Exactness.APPROXIMATE, chain.spread(apart, at + 1))


def _shift_through_round(chain: Chain, at: int) -> Rewrite:
    """An even shift keeps ties even; an odd one is off by one there: round(0.5) + 1 = 1, round(1.5) = 2."""
    (_, clip, multiply, add), stop = _match(chain, at, Round, (Clip,), (Multiply,), Add)
    reject_unless(
        multiply is None or np.all(multiply.scale == 1),
        "output_scale_not_one",
        f"{multiply} stands before the shift",
    )
    shift = add.shift
    reject_unless(
        np.all(shift == np.trunc(floats(shift))),
        "shift_not_integer",
        f"the shift {text(shift)} is not an integer",
    )
    before = chain.operations[at - 1] if at else None
    start, total = (at - 1, before.shift + shift) if isinstance(before, Add) else (at, shift)
    clips = () if clip is None else (Clip(clip.low + shift, clip.high + shift),)
    after = chain.replaced(start, stop, Add(total), Round(), *clips)
    odd = floats(shift) % 2
    if not odd.any():
        return Rewrite("shift_through_round", chain, after, Exactness.REALS)
    return Rewrite("shift_through_round", chain, after, Exactness.APPROXIMATE, chain.spread(odd, stop))


def _futile_clip(chain: Chain, at: int) -> Rewrite:
    (_, clip), stop = _match(chain, at, (Round,), (Clip,))
    reject_unless(stop > at, ABSENT, "neither a round nor a clip stands here")
    reject_unless(stop == len(chain), "not_last", f"{chain.operations[at]} is not the last operation")
    reject_unless(chain.store, "no_store", "the result is stored as float, which neither rounds nor saturates")
    low, high = STORES[chain.store]
    reject_unless(
        clip is None or (np.all(clip.low <= low) and np.all(clip.high >= high)),
        "clip_narrower",
        f"{clip} is narrower than the range {low} to {high} of {chain.store}",
    )
    return Rewrite("futile_clip", chain, chain.replaced(at, stop), Exactness.FLOAT32)


def _combined_scale(chain: Chain, at: int) -> Rewrite:
    """The rounding before a residual sum only adds noise: what is after the sum rounds again."""
    (*_, clip, multiply, add, _), stop = _match(chain, at, Round, (Clip,), (Multiply,), (Add,), Sum)
    reject_unless(
        chain.store or any(isinstance(operation, Round) for operation in chain.operations[stop:]),
        "no_second_round",
        "nothing after the sum rounds, so the first rounding is the only one",
    )
    start = at
    before: dict[type, Any] = {}
    for kind in (Add, Multiply):
        if start and isinstance(chain.operations[start - 1], kind):
            start -= 1
            before[kind] = chain.operations[start]
    scale = multiply.scale if multiply else Multiply(1).scale
    shift = add.shift if add else Add(0).shift
    combined: list[Operation] = [
        Multiply(before[Multiply].scale * scale if Multiply in before else scale),
        Add(before[Add].shift * scale + shift if Add in before else shift),
    ]
    if clip:
        combined.append(_clip_between(clip.low * scale + shift, clip.high * scale + shift))
    after = chain.replaced(start, stop - 1, *combined)
    bound = chain.spread(np.abs(floats(scale)) / 2, stop - 1)
    return Rewrite("combined_scale", chain, after, Exactness.APPROXIMATE, bound)


def _small_shift(chain: Chain, at: int) -> Rewrite:
    (add, _, clip), _ = _match(chain, at, Add, (Round,), Clip)
    reject_unless(
        add.per_tensor and clip.per_tensor,
        "per_channel",
        f"{add} or {clip} is per channel, where the plugin keeps it",
    )
    size, width = abs(float(add.shift[0])), float((clip.high - clip.low)[0])
    reject_unless(
        size < 1e-5 * width,
        "shift_not_small",
        f"the shift {size:g} is not negligible against a clip of width {width:g}",
    )
    after = chain.replaced(at, at + 1)
    return Rewrite("small_shift", chain, after, Exactness.APPROXIMATE, chain.spread(size, at + 1))


def _merge(chain: Chain, at: int) -> Rewrite:
    (first, second), stop = _match(chain, at, Multiply | Add, Multiply | Add)
    merged: tuple[Operation, ...]
    match first, second:
        case Multiply(a), Multiply(b):
            merged = (Multiply(a * b),)
        case Add(a), Add(b):
            merged = (Add(a + b),)
        case Add(a), Multiply(b):
            merged = (Multiply(b), Add(a * b))
        case _:
            reject(ABSENT, "a multiply before an add is the form that merge makes")
    return Rewrite("merge", chain, chain.replaced(at, stop, *merged), Exactness.REALS)


def _merge_clips(chain: Chain, at: int) -> Rewrite:
    (first, second), stop = _match(chain, at, Clip, Clip)
    low, high = np.maximum(first.low, second.low), np.minimum(first.high, second.high)
    reject_unless(np.all(low <= high), "intervals_apart", f"{first} and {second} have no number in common")
    return Rewrite("merge_clips", chain, chain.replaced(at, stop, Clip(low, high)), Exactness.FLOAT32)


def _multiply_before_relu(chain: Chain, at: int) -> Rewrite:
    (relu, multiply), stop = _match(chain, at, Relu, Multiply)
    reject_unless(
        np.all(multiply.scale >= 0),
        "negative_scale",
        f"{multiply} has a negative scale, which reverses {relu}",
    )
    exactness = Exactness.REALS if np.any(relu.slope != 0) else Exactness.FLOAT32
    return Rewrite("multiply_before_relu", chain, chain.replaced(at, stop, multiply, relu), exactness)


def _multiply_before_sum(chain: Chain, at: int) -> Rewrite:
    (addend, multiply), stop = _match(chain, at, Sum, Multiply)
    reject_unless(multiply.per_tensor, "per_channel", f"{multiply} is per channel, and a sum takes one scale")
    after = chain.replaced(at, stop, multiply, Sum(addend.scale * multiply.scale))
    return Rewrite("multiply_before_sum", chain, after, Exactness.REALS)


def _identity(chain: Chain, at: int) -> Rewrite:
    (operation,), stop = _match(chain, at, Multiply | Add)
    idle = operation.scale == 1 if isinstance(operation, Multiply) else operation.shift == 0
    reject_unless(np.all(idle), ABSENT, f"{operation} changes the numbers")
    return Rewrite("identity", chain, chain.replaced(at, stop), Exactness.FLOAT32)


def _multiply_into_eltwise(chain: Chain, at: int) -> Rewrite:
    (eltwise, multiply), stop = _match(chain, at, Eltwise, Multiply)
    reject_unless(
        multiply.per_tensor,
        "per_channel",
        f"{multiply} is per channel, and an elementwise function takes one scale",
    )
    after = chain.replaced(at, stop, Eltwise(eltwise.function, eltwise.alpha, eltwise.scale * multiply.scale))
    return Rewrite("multiply_into_eltwise", chain, after, Exactness.REALS)


clip_after_round = Rule("clip_after_round", _clip_after_round)
per_tensor_values = Rule("per_tensor", _per_tensor)
nearly_per_tensor = Rule("nearly_per_tensor", _nearly_per_tensor)
shift_through_round = Rule("shift_through_round", _shift_through_round)
futile_clip = Rule("futile_clip", _futile_clip)
combined_scale = Rule("combined_scale", _combined_scale)
small_shift = Rule("small_shift", _small_shift)
merge = Rule("merge", _merge)
merge_clips = Rule("merge_clips", _merge_clips)
multiply_before_relu = Rule("multiply_before_relu", _multiply_before_relu)
multiply_before_sum = Rule("multiply_before_sum", _multiply_before_sum)
identity = Rule("identity", _identity)
multiply_into_eltwise = Rule("multiply_into_eltwise", _multiply_into_eltwise)

RULES = (
    identity,
    merge_clips,
    clip_after_round,
    nearly_per_tensor,
    per_tensor_values,
    combined_scale,
    shift_through_round,
    small_shift,
    merge,
    multiply_before_relu,
    multiply_before_sum,
    futile_clip,
)
"""In the order of trial. `multiply_into_eltwise` is left out: oneDNN 3 has no such scale."""


@dataclass(frozen=True, eq=False)
class Simplified:
    """The shorter chain, the rewrites that made it, in order, and why the other rules no longer apply."""

    chain: Chain
    rewrites: tuple[Rewrite, ...]
    refused: dict[str, Reason]

    def __str__(self) -> str:
        lines = [str(self.rewrites[0].before), *map(str, self.rewrites)] if self.rewrites else [str(self.chain)]
        return "\n".join([*lines, *(f"not {rule}: {reason}" for rule, reason in self.refused.items())])


def simplify(chain: Chain, rules: Sequence[Rule] = RULES, accept: Exactness = Exactness.APPROXIMATE) -> Simplified:
    """Apply ``rules`` until none applies, first rule first; nothing less exact than ``accept``."""
    order = list(Exactness)
    rewrites: list[Rewrite] = []
    while True:
        refused: dict[str, Reason] = {}
        for rule in rules:
            try:
                rewrite = rule(chain)
                reject_unless(
                    order.index(rewrite.exactness) <= order.index(accept),
                    "not_exact_enough",
                    f"it would be {rewrite.exactness}",
                )
            except Rejected as rejected:
                if rejected.reason.code != ABSENT:
                    refused[rule.name] = rejected.reason
                continue
            rewrites.append(rewrite)
            chain = rewrite.after
            break
        else:
            return Simplified(chain, tuple(rewrites), refused)
