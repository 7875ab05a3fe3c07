"""From facts to one sentence: what keeps the model from being faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from ovlpt.device.layer_types import CONVERTS
from ovlpt.inspect.explain.answers import Answer
from ovlpt.inspect.report.layers import Kind, Layer
from ovlpt.reasons import ROWS, Cause
from ovlpt.trace import Reason

LOST_WORK, LOST_TIME, OVERHEAD = 0.1, 0.25, 0.5  # shares from which on they decide the verdict
LITTLE_OVERHEAD = 0.25  # of a network that is not faster in int8
GAIN = 1.1  # times the speed of float, from which on the verdict says that int8 pays off
UNCLEAR = 1.5  # of the upper end of an interval around 1 to the lower one, from which on it decides nothing
# Products for each value read or written, below which a layer waits for memory: a core multiplies some 30 to 300 pairs of
# int8 in the time in which it reads ten bytes from outside of its caches.
FEW_PRODUCTS = 10


def reason_of(answer: Answer, own_settings: bool) -> tuple[Cause, Reason]:
    """What kind of reason keeps an operation in float, and that reason: the condition of the operation that decides. But
    where an advice is known, or a quantization after that operation is enough, it is the quantization, and the answer's
    own reason. Restrictions and callbacks say what a device can execute, unless the settings are the caller's own.
    """
    if answer.advices or answer.reason.code == "lost_upstream":
        return Cause.PLACEMENT, answer.reason
    cause = ROWS[answer.root_reason.code].cause
    return Cause.HARDWARE if cause is Cause.SETTINGS and not own_settings else cause, answer.root_reason


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Layers outside int8 that one kind of operation is the reason for, for one reason; or int8 layers that wait for memory.

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


class _Obstacle(NamedTuple):
    """What one layer is outside int8 for. ``operation`` and ``root``: type and name of what decides."""

    operation: str
    cause: Cause
    code: str
    root: str
    text: str
    help: str | None = None


def bottlenecks(layers: Sequence[Layer], own_settings: bool = False) -> list[Bottleneck]:
    """What the layers outside int8 are there for, the reason that costs most time first. Every layer that is executed, and
    does not compute in int8, is in one of them; what converts for a float layer is there for the reason of that layer.
    ``own_settings``: see `reason_of`.
    """
    before = [[layers[source] for source in layer.inputs] for layer in layers]
    after: list[list[Layer]] = [[] for _ in layers]
    for layer in layers:
        for source in layer.inputs:
            after[source].append(layer)
    outside = [layer for layer in layers if layer.executed and layer.kind is not Kind.INT8]
    return _grouped([(layer, _obstacle(_decides(layer, before, after), own_settings)) for layer in outside], layers)


def _decides(layer: Layer, before: Sequence[Sequence[Layer]], after: Sequence[Sequence[Layer]]) -> Layer:
    """The layer for whose reason another is outside int8: of a conversion the slowest float layer before or after it, with
    at most conversions in between, and of what only goes on in float after a layer with weights that layer. Most decide
    themselves.
    """
    if _converts(layer):
        near = [*_first_that_compute(layer, before), *_first_that_compute(layer, after)]
    elif not layer.weighted and layer.answer and layer.answer.reason.code in ("float_result", "lost_upstream"):
        near = [each for each in before[layer.index] if each.weighted]
    else:
        return layer
    near = [each for each in near if each.kind is Kind.FLOAT and each.answer]
    return _decides(max(near, key=lambda each: each.milliseconds), before, after) if near else layer


def _converts(layer: Layer) -> bool:
    """Whether it changes a type or a layout, and nothing else."""
    return layer.kind is Kind.BORDER or layer.type in CONVERTS


def _first_that_compute(layer: Layer, beside: Sequence[Sequence[Layer]]) -> Iterator[Layer]:
    """The nearest layers in one direction that are not conversions."""
    for each in beside[layer.index]:
        if _converts(each):
            yield from _first_that_compute(each, beside)
        else:
            yield each


def memory_bound(layers: Sequence[Layer]) -> list[Bottleneck]:
    """The int8 layers with few products for each value that they read or write, by type, the slowest type first."""
    text = "it has fewer than {} products for each value that it reads or writes, and waits for memory in any type"
    code = "few_products"
    return _grouped(
        [
            (layer, _Obstacle(layer.type, ROWS[code].cause, code, layer.name, text.format(FEW_PRODUCTS)))
            for layer in layers
            if layer.executed and layer.kind is Kind.INT8 and layer.multiply_accumulates <= FEW_PRODUCTS * layer.values
        ],
        layers,
    )


def _obstacle(layer: Layer, own_settings: bool) -> _Obstacle:
    if layer.kind is Kind.MOVEMENT:
        return _of_row("data_movement", layer, "it moves values and computes nothing")
    if layer.kind is Kind.BORDER:
        return _of_row("conversion", layer, "it changes the type or the layout of values, and computes nothing")
    if layer.kind is Kind.OTHER:
        return _of_row("not_real", layer, "it computes indices, shapes or masks, which are not quantized numbers")
    answer = layer.answer
    if answer is None:
        return _of_row("unknown", layer, "the plugin added this layer itself, in float")
    operation, root = answer.root.split(" ", 1)
    cause, reason = reason_of(answer, own_settings)
    lost = f"nothing quantizes its result again: {answer.root_reason.text}"  # the root is named beside it
    text = lost if reason.code == "lost_upstream" else reason.text
    return _Obstacle(operation, cause, reason.code, root, text, answer.help)


def _of_row(code: str, layer: Layer, text: str) -> _Obstacle:
    fused = code == "conversion" and layer.type not in CONVERTS  # a quantization that the plugin calls otherwise
    return _Obstacle("FakeQuantize" if fused else layer.type, ROWS[code].cause, code, layer.name, text)


def _grouped(found: Iterable[tuple[Layer, _Obstacle]], layers: Sequence[Layer]) -> list[Bottleneck]:
    groups: dict[tuple[str, Cause, str], list[tuple[Layer, _Obstacle]]] = {}
    for layer, obstacle in found:
        groups.setdefault(obstacle[:3], []).append((layer, obstacle))
    time = sum(layer.milliseconds for layer in layers) or 1.0
    work = sum(layer.multiply_accumulates for layer in layers) or 1
    made = []
    for (operation, cause, code), members in groups.items():
        members.sort(key=lambda member: -member[0].milliseconds)
        spent = sum(layer.milliseconds for layer, _ in members)
        lost = sum(layer.multiply_accumulates - layer.int8_multiply_accumulates for layer, _ in members)
        made.append(
            Bottleneck(
                operation=operation,
                cause=cause,
                code=code,
                text=members[0][1].text,
                help=_first_help([obstacle for _, obstacle in members]) or _help(operation, cause, code),
                roots=tuple(dict.fromkeys(obstacle.root for _, obstacle in members)),
                layers=tuple(layer.index for layer, _ in members),
                milliseconds=spent,
                time_share=spent / time,
                work_share=lost / work,
            )
        )
    return sorted(made, key=lambda each: (-each.milliseconds, -each.work_share))


def _first_help(obstacles: Sequence[_Obstacle]) -> str | None:
    """Of the slowest layer, or of one with the same root."""
    helps = {each.root: each.help for each in reversed(obstacles) if each.help}
    return helps.get(obstacles[0].root) or next(iter(helps.values()), None)


def _help(operation: str, cause: Cause, code: str) -> str:
    """What would help where the answer does not say it."""
    if ROWS[code].help:
        return ROWS[code].help
    match cause:
        case Cause.PLACEMENT:
            return "quantize what it reads, if int8 is wanted here"
        case Cause.SETTINGS:
            return "change the settings"
        case Cause.HARDWARE:
            return "another shape or attribute, or another device"
    if code == "no_rule":
        return f"{operation} itself stays in float; what reads it can be int8 again after a FakeQuantize"
    return f"a network in which {operation} has another form, or is not used here"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the verdict rests on. Shares are of the layers' time and of the multiply-accumulates, 0 to 1. Where times mean
    nothing, on a virtual GPU, they are 0, and ``timed`` is false.
    """

    device: str
    has_int8: bool  # the device's capabilities name int8
    saturates: bool  # its int8 kernels keep sums of two products in 16 bits: an x86 CPU without VNNI
    int8_time_share: float  # of layers that compute; moving values does not count
    int8_work_share: float  # 1 where there is no work
    milliseconds: float  # of the fastest inference
    overhead: float  # milliseconds of it that calling that many layers takes at least
    layers: int
    timed: bool = True
    latency: float = 0.0  # milliseconds, median
    float_latency: float = 0.0
    float_precision: str = "f32"  # in which the device computes the float network by default
    speed: float = 1.0  # of int8, as a multiple of that of the float network
    speed_interval: tuple[float, float] = (1.0, 1.0)  # 95 %

    @property
    def float_name(self) -> str:
        return "float" if self.float_precision == "f32" else f"float in {self.float_precision}"

    @property
    def is_unclear(self) -> bool:
        """Whether the measurement leaves open which of the two networks is faster: other work was on the machine."""
        low, high = self.speed_interval
        return self.timed and low <= 1 <= high and high > UNCLEAR * low

    @property
    def is_faster(self) -> bool:
        """Whether int8 is, as far as it is known; the point estimate alone does not say it."""
        return not self.timed or self.is_unclear or (self.speed >= GAIN and self.speed_interval[0] > 1)

    @property
    def overhead_share(self) -> float:
        return self.overhead / self.milliseconds if self.milliseconds else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    cause: Cause
    text: str

    def to_json(self) -> dict[str, str]:
        return {"cause": str(self.cause), "text": self.text}


def verdict(facts: Facts, found: Sequence[Bottleneck], memory: Sequence[Bottleneck] = ()) -> Verdict:
    """The measured ratio to the float network, and what decides it, the first that holds: no int8 on the device; a network
    that is too small; the cause that takes most time outside int8 (where int8 is not faster, waiting for memory is one),
    then most work; no VNNI; for a network that is not faster, what remains; and otherwise that all is well.

    ``found``: `bottlenecks`; ``memory``: `memory_bound`.
    """
    cause, text = _decision(facts, found, memory)
    return Verdict(cause, " ".join(filter(None, (_opening(facts), text))))


def _opening(facts: Facts) -> str:
    """The measured ratio in a sentence; empty where nothing was measured."""
    if not facts.timed:
        return ""
    low, high = facts.speed_interval
    if facts.is_unclear:
        return (
            f"Whether int8 is faster than {facts.float_name} is not clear: {facts.speed:.2f} times its speed, 95 % "
            f"interval {low:.2f} to {high:.2f}, {facts.latency:.3g} ms per inference; measure again on an idle machine."
        )
    if low <= 1 <= high:
        return f"int8 is as fast as {facts.float_name}, {facts.latency:.3g} ms per inference."
    if facts.speed < 1:
        return f"int8 runs at {facts.speed:.2f} of the speed of {facts.float_name}, {facts.latency:.3g} ms per inference: it is slower."
    return (
        f"int8 runs at {facts.speed:.2f} times the speed of {facts.float_name}, {facts.latency:.3g} ms per inference."
    )


def _decision(facts: Facts, found: Sequence[Bottleneck], memory: Sequence[Bottleneck]) -> tuple[Cause, str]:
    if not facts.has_int8:
        return (
            Cause.HARDWARE,
            f"The hardware: {facts.device} has no int8, so the network runs in float, and quantization only adds work.",
        )
    if facts.overhead_share >= (OVERHEAD if facts.is_faster else LITTLE_OVERHEAD):
        return Cause.TOO_SMALL, _too_small(facts)
    waits = () if facts.is_faster else memory
    lost_time = 1 - facts.int8_time_share + sum(each.time_share for each in waits)
    if facts.timed and lost_time >= LOST_TIME and (found or waits):
        return _of_time(lost_time, (*found, *waits))
    lost_work = 1 - facts.int8_work_share
    if lost_work >= LOST_WORK and any(each.work_share for each in found):
        return _of_work(lost_work, found)
    done = f"{facts.int8_work_share:.0%} of the multiply-accumulates run in int8"
    if facts.saturates:
        return (
            Cause.HARDWARE,
            f"The hardware: {done}, but this CPU has no VNNI, the instructions that make int8 "
            "several times as fast as float.",
        )
    if facts.is_faster:
        time = (
            f"{facts.int8_time_share:.0%} of the layers' time is spent there" if facts.timed else "times are not known"
        )
        news = "No layer" if facts.is_unclear else "Good news: nothing"
        return Cause.NOTHING, f"{news} is in the way. {done}, and {time}."
    if found and facts.speed < 1 <= facts.speed / (1 - lost_time):  # without it int8 would not be slower
        return _of_time(lost_time, found)
    return (
        Cause.HARDWARE,
        f"The hardware: {done} and {facts.int8_time_share:.0%} of the layers' time is spent there, but the kernels of this "
        f"device are not faster in int8 than in {facts.float_precision} at these sizes.",
    )


def _too_small(facts: Facts) -> str:
    return (
        f"The network is too small: calling {_count(facts.layers, 'layer')} takes about {facts.overhead_share:.0%} of the "
        f"{facts.milliseconds:.3f} ms of the fastest inference, and int8 shortens only the rest."
    )


def _of_time(lost: float, found: Sequence[Bottleneck]) -> tuple[Cause, str]:
    cause, worst = _heaviest(found, attrgetter("milliseconds"))
    where = "outside int8 or waiting for memory" if cause is Cause.MEMORY else "outside int8"
    return (
        cause,
        f"{_LABEL[cause]}: {lost:.0%} of the layers' time is spent {where}, {_blame(worst, worst.time_share)}.",
    )


def _of_work(lost: float, found: Sequence[Bottleneck]) -> tuple[Cause, str]:
    cause, worst = _heaviest(found, attrgetter("work_share"))
    return (
        cause,
        f"{_LABEL[cause]}: {lost:.0%} of the multiply-accumulates run in float, {_blame(worst, worst.work_share)}.",
    )


_LABEL = {
    Cause.GRAPH: "The graph",
    Cause.PLACEMENT: "The quantization",
    Cause.SETTINGS: "The settings",
    Cause.HARDWARE: "The device",
    Cause.MOVEMENT: "Data movement",
    Cause.MEMORY: "The memory",
}


def _heaviest(found: Iterable[Bottleneck], weight: Callable[[Bottleneck], float]) -> tuple[Cause, Bottleneck]:
    """The cause with the greatest weight in all, and its greatest bottleneck."""
    causes: dict[Cause, list[Bottleneck]] = {}
    for each in found:
        causes.setdefault(each.cause, []).append(each)
    cause = max(causes, key=lambda cause: sum(map(weight, causes[cause])))
    return cause, max(causes[cause], key=weight)


def _blame(bottleneck: Bottleneck, share: float) -> str:
    """``share``: of the whole, that the bottleneck takes."""
    others = len(bottleneck.roots) - 1
    more = f" and {_count(others, 'other')}" if others else ""
    return f"{share:.0%} because of {bottleneck.operation} {bottleneck.roots[0]}{more}: {bottleneck.text}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
