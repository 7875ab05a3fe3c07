"""Random chains of post-operations, the rules that apply to them, and what contradicts a rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovlpt.fake_quantize import chain as ops
from ovlpt.fake_quantize.chain import FUNCTIONS, Chain, Operation, decompose
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.fake_quantize.simplify import RULES, Exactness, Rewrite, multiply_into_eltwise, simplify
from ovlpt.fake_quantize.values import rational
from ovlpt.trace import Rejected


def random_chain(rng: np.random.Generator, channels: int = 3) -> Chain:
    """Fragments that rules look for, in a random order, with numbers of few bits so that ties occur."""

    def number(low: float, high: float) -> np.ndarray:
        grid = rng.choice([1.0, 0.5, 0.125, 2.0**-7])
        size = channels if rng.integers(2) else 1
        return np.rint(rng.uniform(low, high, size) / grid) * grid

    def scale() -> np.ndarray:
        drawn = number(-2, 4) if rng.integers(2) else rng.choice([0.25, 0.5, 1.0, 2.0, -1.0, 0.3], 1)
        return np.where(drawn == 0, 1.0, drawn)

    def clip() -> Operation:
        low = number(-20, 0)
        return ops.Clip(low, low + np.abs(number(1, 300)) + 1)

    def quantizer() -> tuple[Operation, ...]:
        levels = int(rng.choice([2, 16, 255, 256]))
        low, width = number(-20, 4), (levels - 1) * np.abs(scale())
        ol = np.rint(number(-128, 2)) if rng.integers(2) else number(-20, 4)
        oh = ol + ((levels - 1) if rng.integers(2) else np.abs(number(1, 20)) + 1)
        return decompose(FakeQuantize(low, low + width, ol, oh, levels))

    names = list(FUNCTIONS)
    fragments = (
        quantizer,
        lambda: (*quantizer(), ops.Sum(scale()[:1]), *quantizer()),
        lambda: (ops.Relu(0 if rng.integers(2) else number(-1, 1)), ops.Multiply(scale())),
        lambda: (ops.Sum(scale()[:1]), ops.Multiply(scale())),
        lambda: (ops.Add(number(-9, 9)), ops.Multiply(scale()), ops.Add(number(-9, 9))),
        lambda: (ops.Eltwise(names[rng.integers(len(names))], 0.5, scale()[:1]), ops.Multiply(scale())),
        lambda: (ops.Multiply(1), ops.Add(0)),
        lambda: (ops.Add(rng.choice([-1, 1]) * 2.0**-14), ops.Round(), ops.Clip(-20, number(1, 200)[:1])),
        lambda: (ops.Add(5 + number(-1, 1) * 2.0**-15), ops.Round(), clip()),
        lambda: (clip(), clip()),
        lambda: (clip(), ops.Multiply(scale()), ops.Add(number(-9, 9)), ops.Round()),
        lambda: (ops.Round(), clip(), ops.Add(np.rint(number(-128, 128)))),
        lambda: (ops.Round(), ops.Clip(-200, 300)),
    )
    chosen = rng.integers(len(fragments), size=rng.integers(1, 4))
    operations = [operation for fragment in chosen for operation in fragments[fragment]()]
    return Chain(operations, [None, "u8", "i8"][rng.integers(3)])


def rewrites(chain: Chain) -> Iterator[Rewrite]:
    """Every rule on the chain as it is, then the steps of its simplification."""
    for rule in (*RULES, multiply_into_eltwise):
        try:
            yield rule(chain)
        except Rejected:
            continue
    yield from simplify(chain).rewrites


def wrong(rewrite: Rewrite, rng: np.random.Generator, channels: int = 3) -> str | None:
    """What contradicts the rewrite's exactness, or None.

    It runs in float32 on 200 points a channel, and in rationals on the 8 where float32 differed most.
    """
    inputs = [rng.integers(-400, 400, (200, channels)) / rng.choice([2, 8, 128], (200, channels)) for _ in range(2)]
    inputs[0][::3] = rng.uniform(-40, 40, inputs[0][::3].shape)
    inputs = [points.astype(np.float32) for points in inputs]
    before, after = (chain.run(*inputs) for chain in (rewrite.before, rewrite.after))
    if rewrite.exactness is Exactness.FLOAT32 and not np.array_equal(before, after):
        return f"differs in float32 in {np.sum(before != after)} of {before.size}"
    worst = np.argsort(-np.abs(before - after).max(axis=1), kind="stable")[:8]
    rule = next(rule for rule in (*RULES, multiply_into_eltwise) if rule.name == rewrite.rule)
    exact = rule(rewrite.before.rational())
    inputs = [rational(points[worst]) for points in inputs]
    before, after = (chain.run(*inputs) for chain in (exact.before, exact.after))
    off = np.abs((before - after).astype(np.float64))
    if np.any(off > np.asarray(exact.bound) * (1 + 1e-9) + (1e-9 if np.any(exact.bound) else 0)):
        return f"is off by {off.max():g} in the reals, {np.max(exact.bound):g} allowed"
    return None
