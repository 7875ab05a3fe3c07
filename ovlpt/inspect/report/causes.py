"""From facts to one sentence: what keeps the model from being faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ovlpt.inspect.explain import Answer
from ovlpt.inspect.report.layers import Kind, Layer
from ovlpt.reasons import ROWS, Cause

LOST_WORK, LOST_TIME, OVERHEAD = 0.1, 0.25, 0.5  # shares from which on they decide the verdict


def cause_of(answer: Answer, own_settings: bool) -> Cause:
    """What kind of reason keeps an operation in float. Restrictions and callbacks say what a device can execute, unless
    the settings are the caller's own.
    """
    cause = ROWS[answer.root_reason.code].cause
    return Cause.HARDWARE if cause is Cause.SETTINGS and not own_settings else cause


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Float layers that one kind of operation is the reason for, for one reason.

    ``roots``: the operations; ``layers``: indices of the layers, the slowest first.
    """

    operation: str
    cause: Cause
    code: str
    text: str
    help: str
    roots: tuple[str, ...]
    layers: tuple[int, ...]
    milliseconds: float
    time_share: float
    work_share: float

    def to_json(self) -> dict[str, object]:
        return {field: getattr(self, field) for field in self.__slots__} | {"cause": str(self.cause)}


def bottlenecks(layers: Sequence[Layer], own_settings: bool = False) -> list[Bottleneck]:
    """What the float layers are float for, the reason that costs most time first. ``own_settings``: see `cause_of`."""
    groups: dict[tuple[str, str], list[Layer]] = {}
    for layer in layers:
        if layer.kind is Kind.FLOAT and layer.executed and layer.answer is not None:
            key = layer.answer.root.split(" ", 1)[0], layer.answer.root_reason.code
            groups.setdefault(key, []).append(layer)
    time = sum(layer.milliseconds for layer in layers) or 1.0
    work = sum(layer.multiply_accumulates for layer in layers) or 1
    found = []
    for (operation, code), members in groups.items():
        members.sort(key=lambda layer: -layer.milliseconds)
        first, spent = members[0], sum(layer.milliseconds for layer in members)
        cause = cause_of(first.answer, own_settings)
        found.append(
            Bottleneck(
                operation=operation,
                cause=cause,
                code=code,
                text=first.answer.root_reason.text,
                help=_first_help(members) or _help(operation, cause),
                roots=tuple(dict.fromkeys(layer.answer.root.split(" ", 1)[1] for layer in members)),
                layers=tuple(layer.index for layer in members),
                milliseconds=spent,
                time_share=spent / time,
                work_share=sum(layer.multiply_accumulates for layer in members) / work,
            )
        )
    return sorted(found, key=lambda each: (-each.milliseconds, -each.work_share))


def _first_help(members: Sequence[Layer]) -> str | None:
    """Of the slowest layer, or of one with the same root."""
    helps = {layer.answer.root: layer.answer.help for layer in reversed(members) if layer.answer.help}
    return helps.get(members[0].answer.root) or next(iter(helps.values()), None)


def _help(operation: str, cause: Cause) -> str:
    match cause:
        case Cause.PLACEMENT:
            return "quantize what it reads, if int8 is wanted here"
        case Cause.SETTINGS:
            return "change the settings"
        case Cause.HARDWARE:
            return "another shape or attribute, or another device"
    return f"no quantization changes it; a network without {operation} here would be faster"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the verdict rests on. Shares are of the layers' time and of the multiply-accumulates, 0 to 1. Where times mean
    nothing, on a virtual GPU, they are 0, and ``timed`` is false.
    """

    device: str
    has_int8: bool  # the device's capabilities name int8
    saturates: bool  # its int8 kernels keep sums of two products in 16 bits: an x86 CPU without VNNI
    int8_time_share: float
    int8_work_share: float  # 1 where there is no work
    milliseconds: float  # of the fastest inference
    overhead: float  # milliseconds of it that calling that many layers takes at least
    layers: int
    timed: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    cause: Cause
    text: str

    def to_json(self) -> dict[str, str]:
        return {"cause": str(self.cause), "text": self.text}


def verdict(facts: Facts, found: Sequence[Bottleneck]) -> Verdict:
    """The first that holds: no int8 on the device; a network that is too small; work, then time, lost in float; no VNNI;
    nothing.
    """
    overhead = facts.overhead / facts.milliseconds if facts.milliseconds else 0.0
    if not facts.has_int8:
        return Verdict(
            Cause.HARDWARE,
            f"The hardware: {facts.device} has no int8, so the network runs in float and quantization only adds to it.",
        )
    if overhead >= OVERHEAD:
        return Verdict(
            Cause.TOO_SMALL,
            f"The network is too small: calling {_count(facts.layers, 'layer')} takes about {overhead:.0%} of the "
            f"{facts.milliseconds:.3f} ms of an inference, and int8 shortens only the rest.",
        )
    lost_work = 1 - facts.int8_work_share
    if lost_work >= LOST_WORK and any(each.work_share for each in found):
        cause, worst = _heaviest(found, attrgetter("work_share"))
        return Verdict(
            cause,
            f"{_OPENING[cause]} {lost_work:.0%} of the multiply-accumulates run in float, {_blame(worst, worst.work_share / lost_work)}.",
        )
    lost_time = 1 - facts.int8_time_share
    if facts.timed and lost_time >= LOST_TIME and found:
        cause, worst = _heaviest(found, attrgetter("milliseconds"))
        return Verdict(
            cause,
            f"{_OPENING[cause]} {lost_time:.0%} of the time is spent outside int8, {_blame(worst, worst.time_share / lost_time)}.",
        )
    done = f"{facts.int8_work_share:.0%} of the multiply-accumulates run in int8"
    if facts.saturates:
        return Verdict(
            Cause.HARDWARE,
            f"The hardware: {done}, but this CPU has no VNNI, the instructions that make int8 "
            "several times as fast as float.",
        )
    time = f"{facts.int8_time_share:.0%} of the time is spent there" if facts.timed else "times are not known"
    return Verdict(Cause.NOTHING, f"Nothing stands in the way: {done}, and {time}.")


_OPENING = {
    Cause.GRAPH: "The graph:",
    Cause.PLACEMENT: "The quantization:",
    Cause.SETTINGS: "The settings:",
    Cause.HARDWARE: "The device:",
}


def _heaviest(found: Iterable[Bottleneck], weight: Callable[[Bottleneck], float]) -> tuple[Cause, Bottleneck]:
    """The cause with the greatest weight in all, and its greatest bottleneck."""
    causes: dict[Cause, list[Bottleneck]] = {}
    for each in found:
        causes.setdefault(each.cause, []).append(each)
    cause = max(causes, key=lambda cause: sum(map(weight, causes[cause])))
    return cause, max(causes[cause], key=weight)


def _blame(bottleneck: Bottleneck, part: float) -> str:
    """``part``: of what is lost, that the bottleneck takes."""
    much = "" if part > 0.95 else "mostly " if part > 0.5 else "first of all "
    others = len(bottleneck.roots) - 1
    more = f" and {_count(others, 'other')}" if others else ""
    return f"{much}because of {bottleneck.operation} {bottleneck.roots[0]}{more}: {bottleneck.text}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
