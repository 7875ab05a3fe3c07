"""Where the CPU plugin's chain of post-operations does not compute what the model says.

relu(x) * s != relu(x * s)                   s < 0: the plugin moves s into an int8 layer's scale anyway
FakeQuantize(clip(x, l, h)) != one clip      its range and [l, h] apart: the plugin's one clip turns around
round(x) + s != round(x + s)                 s odd and x a tie: round(0.5) + 1 = 1, round(1.5) = 2
"""

from __future__ import annotations

from collections.abc import Iterable

from ovlpt.fake_quantize.chain import Chain, Operation, decompose
from ovlpt.fake_quantize.composer import Step, predict
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.fake_quantize.simplify import Exactness, shift_through_round
from ovlpt.trace import Reason, Rejected


def hazards(steps: Iterable[Step], **layer) -> tuple[Reason, ...]:
    """Every hazard of ``steps`` after a layer; ``layer`` holds the arguments of `Composer`."""
    steps = tuple(steps)
    odd = odd_shift_across_round(steps)
    return (*predict(steps, **layer).hazards, *((odd,) if odd else ()))


def negative_scale_after_relu(steps: Iterable[Step], **layer) -> Reason | None:
    """A negative scale that the plugin moves before a relu or prelu, into the scale of an int8 layer.

    It happens where the relu is the first post-operation of an int8 layer without bias, unless the scale is
    per tensor and the last operation: then it becomes the destination's scale, which is right.
    """
    return _found("negative_scale_after_relu", steps, layer)


def clip_apart_from_range(steps: Iterable[Step], **layer) -> Reason | None:
    """A clip that has no number in common with the range of the FakeQuantize after it.

    The plugin makes one clip of the two, from the larger low to the smaller high, and then sorts its ends.
    """
    return _found("clip_apart_from_range", steps, layer)


def _found(code: str, steps: Iterable[Step], layer: dict) -> Reason | None:
    return next((reason for reason in predict(steps, **layer).hazards if reason.code == code), None)


def odd_shift_across_round(steps: Iterable[Step]) -> Reason | None:
    """An odd integer shift after a round: the plugin moves it before the round, one level off at exact ties."""
    operations: list[Operation] = []
    for step in steps:
        operations.extend(decompose(step) if isinstance(step, FakeQuantize) else (step,))
    chain = Chain(operations)
    for at, operation in enumerate(operations):
        try:
            rewrite = shift_through_round.at(chain, at)
        except Rejected:
            continue
        if rewrite.exactness is Exactness.APPROXIMATE:
            return Reason(
                "odd_shift_across_round",
                f"an odd shift moves through the {operation} at place {at + 1}: ties come out one level off",
            )
    return None
