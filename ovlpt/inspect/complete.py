"""Quantize what a quantizer left out, as far as it pays: the advices of `explain` applied, measured, and kept or refused.

**Plan.** Advices that one layer needs, or that layers share, are one group: alone they bring nothing. Groups of layers of
one kind with advices of one kind are tried together, so that a network with a hundred float layers takes a handful of
measurements. The kinds are tried in turn, those that take the largest share of the time first, each on top of what was kept
before:

1. Layers that take less of the time than has to be gained are refused without a measurement.
2. The SQNR of the outputs over all samples, in int8 with float islands in f32, against the float model; without one against
   the quantized model with its FakeQuantize operations bypassed. What costs more than is allowed, together with what was
   kept before, is refused. Of several outputs the one counts that loses most.
3. The latency, paired with that of what was kept before: both are compiled anew for each block and run in turn, with
   the hints that a user has by default, until the 95 % interval leaves out the gain that is wanted, for 12 blocks at most.
   What gains less than wanted, or less than the interval can tell from nothing, is refused.
4. What costs too much as a whole, or is known to gain too little, is tried again by halves, the layers that take more time
   first, until the time is over.
5. What by itself takes or gains too little, and is not known to be slower, is tried together at the end.
6. All that was kept is measured again, against the model that was given: many decisions may have taken noise for gains.
   Until the whole gains as much as is wanted of each, what gained least is refused.

A FakeQuantize before an activation function that loses it is dropped where one after it takes its place. On a CPU whose
int8 kernels keep sums in 16 bits, float weights are quantized to half of the integers.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ovlpt import plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.config_file import load_config
from ovlpt.device import execution_types, saturates, transform
from ovlpt.device.compile import inference_precision, lpt_properties
from ovlpt.device.loading import read_float, read_quantized
from ovlpt.device.properties import F32, LATENCY
from ovlpt.fleet.engine import Executors, Workers, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.machine import measuring
from ovlpt.fleet.models import model_parcel, settings_parcel
from ovlpt.fleet.tasks import Task
from ovlpt.inspect.advice import Advice, QuantizeWeights, Ranges, in_order
from ovlpt.inspect.calibration import QUANTILES, calibrate
from ovlpt.inspect.executed import Layers, has_weights
from ovlpt.inspect.explain import explain
from ovlpt.inspect.explain.answers import Answer, Explanation
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies
from ovlpt.inspect.runs import check_counterpart
from ovlpt.inspect.setup import Setup
from ovlpt.inspect.shards import Inputs, Shard, data_of
from ovlpt.inspect.trials import Bench, Score, Scores, Trial, Unusable, applied, usable
from ovlpt.openvino_api import CompiledModel, Core, Model
from ovlpt.trace import InputError

_LEAST_BLOCKS, _MOST_BLOCKS, _BLOCK_SECONDS, _COUNTED = 4, 12, 0.7, 3
_OF_TRIALS = 0.7  # of the time; the rest is for measuring the whole

KEPT, REFUSED, HALVED, JOINED = "kept", "refused", "halved", "joined"
TIME_OVER = "the time was over"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Layers that are quantized together. ``share``: of the time of an inference, 0 to 1; 1 where it is not known."""

    kind: str
    layers: tuple[str, ...]
    advices: tuple[Advice, ...]
    share: float

    @property
    def what(self) -> str:
        return ", ".join(dict.fromkeys(sorted(advice.summary for advice in self.advices)))

    @property
    def which(self) -> str:
        more = f" and {len(self.layers) - 1} more" if len(self.layers) > 1 else ""
        return f"{self.kind} {self.layers[0]}{more}"


@dataclass(frozen=True, slots=True)
class Decision:
    """``gain``: of the latency of what was kept before, 0.02 for 2 %; ``loss``: dB of SQNR, of all that is kept with it;
    None where it was not measured. ``accuracy``: with it, where there are labels.
    """

    candidate: Candidate
    verdict: str
    why: str
    gain: float | None = None
    interval: tuple[float, float] | None = None  # of the gain, 95 %
    loss: float | None = None
    accuracy: float | None = None

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "verdict": self.verdict,
            "why": self.why,
            "layers": list(self.candidate.layers),
            "advices": [str(advice) for advice in self.candidate.advices],
            "time_share": self.candidate.share,
            "gain": self.gain,
            "gain_interval_95": None if self.interval is None else list(self.interval),
            "loss_db": self.loss,
            "accuracy": self.accuracy,
        }


@dataclass(frozen=True)
class State:
    """One model: its layers with weights, those in int8, dB of each output, and the accuracy where there are labels."""

    layers: int
    in_int8: int
    sqnr: tuple[float, ...]
    accuracy: float | None

    def to_json(self) -> dict[str, object]:
        return {
            "layers": self.layers,
            "in_int8": self.in_int8,
            "sqnr_db": list(self.sqnr),
            "accuracy": self.accuracy,
        }


@dataclass(frozen=True)
class Completion:
    """What `complete` found. ``model``: quantized, not transformed. ``ratio``: its latency by that of the given one."""

    model: Model
    before: State
    after: State
    ratio: float
    interval: tuple[float, float]  # 95 %
    decisions: tuple[Decision, ...]
    unadvised: tuple[Answer, ...]  # float layers with weights for which nothing is known to help

    @property
    def kept(self) -> list[Decision]:
        return [each for each in self.decisions if each.verdict == KEPT]

    @property
    def loss(self) -> float:
        """dB, of the output that loses most."""
        return _loss(self.before.sqnr, self.after.sqnr)

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "latency_ratio": self.ratio,
            "latency_ratio_interval_95": list(self.interval),
            "loss_db": self.loss,
            "decisions": [each.to_json() for each in self.decisions],
            "unadvised": [
                {"layer": f"{each.operation} {each.name}", "why": each.why, "help": each.help}
                for each in self.unadvised
            ],
        }


@other_names(plugin="config", device_name="device")
def complete(
    model: Model | str | Path,
    inputs: Inputs,
    float_model: Model | str | Path | None = None,
    device: str = "CPU",
    max_loss: float = 1.0,
    min_gain: float = 0.01,
    seconds: float = 600.0,
    core: Core | None = None,
    config: PluginConfig | str | Path | None = None,
    progress: Callable[[str], object] = lambda line: None,
    executor: Executors | None = None,
    resume: str | Path | None = None,
    threads: int | None = None,
) -> Completion:
    """Quantize float layers of a clone of ``model`` where that gains at least ``min_gain`` of the latency (0.01 for 1 %)
    and all that is kept together gains as much, and costs at most ``max_loss`` dB.

    ``inputs``: samples to calibrate and compare on, a file or arrays as for `load_samples`, with "labels" for the accuracy,
    or many of them (see `ovlpt.inspect.shards.data_of`). ``float_model``: the model before quantization. ``seconds``: after
    70 % of which nothing more is tried; what is running then is ended, and what is kept is measured as a whole. ``progress``
    is told in a line what is tried.

    ``executor``, ``resume``, ``threads``: as in `compare`. Workers compute the losses; latencies are measured here, while
    they rest, and a journal keeps these, too. Raises `InputError` for anything unusable.
    """
    core = core or Core()
    for value, what in ((max_loss, "a loss"), (min_gain, "a gain"), (seconds, "a time")):
        if not value >= 0:
            raise InputError(f"{value} is not {what} that can be allowed; give a number of at least 0")
    source = read_quantized(model, core)
    plugin_config.check_physical(core, device)
    original = None if float_model is None else read_float(float_model, core)
    if original is not None:
        check_counterpart(source, original)
    shards = list(data_of(inputs, source).shards)
    own = load_config(config) if isinstance(config, (str, Path)) else config
    with ExitStack() as stack:
        workers = None if executor is None else stack.enter_context(Workers(executor))
        setup = None
        if workers is not None or resume is not None:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            setup = Setup(
                model_parcel(model, source, folder, "model"),
                None if float_model is None else model_parcel(float_model, original, folder, "float"),
                device,
                settings_parcel(config),
                1 if threads is None and workers is not None else threads,
            )
        journal = (
            None
            if resume is None
            else stack.enter_context(Journal(resume, {"command": "complete", **setup.described()}))
        )
        subject = Bench(source, original, device, core, own, threads) if workers is None else setup
        scores = Scores(subject, shards, workers, journal)
        measure = _Measure(core, device, own, source, shards, shared=workers is not None)
        plan = _Plan(source, measure, scores, max_loss, min_gain, seconds, progress, journal)
        plan.run()
        return plan.result()


@dataclass(frozen=True)
class _Network:
    """A model, transformed as it is compiled by default, and how near to the float model it is. ``trial``: what it is."""

    trial: Trial
    model: Model
    fast: Model
    score: Score


class _Measure:
    """How long a network takes. ``shared``: workers of this machine may measure as well."""

    def __init__(
        self,
        core: Core,
        device: str,
        config: PluginConfig | None,
        source: Model,
        shards: Sequence[Shard],
        shared: bool = False,
    ):
        self.core, self.device, self.config = core, device, config
        self.saturates = saturates(core, device)
        self._source, self._shards, self._shared = source, shards, shared
        self._precision = inference_precision(core, plugin_config.physical_devices(core, device)[0], LATENCY)
        self.first = next(self.samples(), None)
        if self.first is None:
            raise InputError("the data holds no sample; give at least one")

    def samples(self) -> Iterator[list[np.ndarray]]:
        """All, file by file."""
        for shard in self._shards:
            for part in shard:
                yield from part.load(self._source)[0]

    def network(self, trial: Trial, model: Model, score: Score) -> _Network:
        """Raises `Unusable` for a model that the device cannot compile."""
        with usable():
            return _Network(trial, model, self._transformed(model, self._precision), score)

    def compiled(self, ready: Model, more: Mapping[str, object]) -> CompiledModel:
        properties = {**LATENCY, **more, **lpt_properties(ready, self.device)}
        return self.core.compile_model(ready, self.device, properties)

    def _transformed(self, model: Model, precision: str) -> Model:
        return transform(model, self.device, self.config, core=self.core, serializable=False, precision=precision)

    def ratio(
        self, mine: _Network, other: _Network, enough: Callable[[tuple[float, float]], bool]
    ) -> tuple[float, tuple[float, float]]:
        """Median of paired latencies, mine / other, and its 95 % interval: of `_MOST_BLOCKS` blocks, or of those after which
        the interval was ``enough``.
        """
        blocks: list[np.ndarray] = []
        with measuring() if self._shared else nullcontext():
            while True:
                blocks.append(self._block(mine, other, swapped=len(blocks) % 2 == 1))
                found = float(np.median(np.concatenate(blocks))), bootstrap_interval(blocks)
                if len(blocks) >= _MOST_BLOCKS or (len(blocks) >= _LEAST_BLOCKS and enough(found[1])):
                    return found

    def _block(self, mine: _Network, other: _Network, swapped: bool) -> np.ndarray:
        """Ratios of latencies of runs in turn, both compiled anew, in this order or ``swapped``."""
        order = [("mine", mine), ("other", other)][:: -1 if swapped else 1]
        requests = {name: self.compiled(each.fast, {}).create_infer_request() for name, each in order}
        runs = {name: partial(requests[name].infer, self.first) for name in ("mine", "other")}
        times = interleaved_latencies(runs, _BLOCK_SECONDS, None)
        return np.divide(times["mine"], times["other"])

    def shares(self, answers: Iterable[Answer]) -> dict[str, float]:
        """Of the time of an inference, by names of operations in the given model; 1 of a layer that is not known.

        Of each layer the shortest time of a few compilations: what else the machine does makes any of them longer.
        """
        exact = self._transformed(self._source, "f32")
        compiled = [self.compiled(exact, {**F32, "PERF_COUNT": True}) for _ in range(_COUNTED)]
        runs = [execution_types(each, list(self.first)) for each in compiled]
        times = {layer.name: min(run[at].real_time for run in runs) for at, layer in enumerate(runs[0])}
        layers, total = Layers(runs[0], exact), sum(times.values()) or 1.0
        found = {each.name: layers.all_of(each.node, each.operation) for each in answers}
        return {name: sum(times[layer.name] for layer in of) / total if of else 1.0 for name, of in found.items()}


def _loss(before: Sequence[float], after: Sequence[float]) -> float:
    return max(b - a for b, a in zip(before, after, strict=True))


class _Plan:
    """What is tried next, and what was kept so far. ``end``, ``last``: of the trials and of all measurements, on the clock of
    `time.perf_counter`.
    """

    def __init__(
        self,
        source: Model,
        measure: _Measure,
        scores: Scores,
        max_loss: float,
        min_gain: float,
        seconds: float,
        progress: Callable[[str], object],
        journal: Journal | None,
    ):
        begin = time.perf_counter()
        self.end, self.last = begin + _OF_TRIALS * seconds, begin + seconds
        self.source, self.measure, self.scores, self.progress = source, measure, scores, progress
        self.journal = journal
        self.max_loss, self.min_gain = max_loss, min_gain
        self.found = self._explained(source)
        self.base = self.current = measure.network(Trial(), source, scores(Trial()))
        self.kept: list[Candidate] = []
        self.decisions: list[Decision] = []
        self.ranges: Ranges = {}

    def _explained(self, model: Model) -> Explanation:
        return explain(model, self.measure.device, self.measure.config, core=self.measure.core)

    def run(self) -> None:
        answers = [each for each in self.found if has_weights(each.operation) and each.advices]
        advices = in_order(advice for each in answers for advice in each.advices)
        self.progress(f"calibrating {len(advices)} advices on the samples")
        self.ranges = calibrate(self.source, advices, self.measure.samples(), self.measure.core, QUANTILES)
        shares = self._once("shares", lambda: self.measure.shares(answers))
        groups, impossible = [], []
        for group in _groups(answers, shares):
            if self.measure.saturates:
                group = _within_half(group)
            try:
                applied(self.source, group.advices, self.ranges)
                groups.append(group)
            except InputError as error:
                impossible.append(Decision(group, REFUSED, str(error)))
        self._try(_kinds(groups))
        self._try_together()
        self.decisions += impossible

    def _try(self, kinds: Iterable[list[Candidate]]) -> None:
        queue = deque(kinds)
        while queue:
            kind = queue.popleft()
            decision = self._tried(_joined(kind))
            halves = self._halves(kind, decision)
            if halves:
                queue.extend(halves)
                decision = replace(decision, verdict=HALVED)
            self.progress(f"{decision.candidate.which}: {decision.verdict}: {decision.why}")
            self.decisions.append(decision)

    def _try_together(self) -> None:
        """What gains too little, or takes too little of the time, by itself."""
        small = [each for each in self.decisions if each.verdict == REFUSED and self._is_small(each)]
        left = [each.candidate for each in small]
        if len(left) > 1 and sum(each.share for each in left) >= self.min_gain:
            self.decisions = [replace(each, verdict=JOINED) if each in small else each for each in self.decisions]
            self._try([left])

    def _is_small(self, decision: Decision) -> bool:
        if decision.interval is None:
            return decision.loss is None and decision.candidate.share < self.min_gain
        return decision.interval[1] > 0

    def _halves(self, kind: list[Candidate], decision: Decision) -> list[list[Candidate]]:
        """What is worth a trial of what was refused as a whole: where it costs too much, or is known not to gain enough."""
        slow = decision.interval is not None and decision.interval[1] < self.min_gain
        costly = decision.loss is not None and decision.loss > self.max_loss
        if decision.verdict != REFUSED or len(kind) == 1 or not (slow or costly):
            return []
        middle = (len(kind) + 1) // 2
        halves = kind[:middle], kind[middle:]
        return [half for half in halves if sum(group.share for group in half) >= self.min_gain]

    def _tried(self, candidate: Candidate) -> Decision:
        """Measured on top of what was kept; the loss first, which takes one run."""
        refused = Decision(candidate, REFUSED, "")
        if candidate.share < self.min_gain:
            why = f"its layers take {candidate.share:.1%} of the time, less than the {self.min_gain:.0%} to be gained"
            return replace(refused, why=why)
        if time.perf_counter() > self.end:
            return replace(refused, why=TIME_OVER)
        advices = [advice for each in (*self.kept, candidate) for advice in each.advices]
        self.progress(f"trying {candidate.which}: {candidate.what}")
        try:
            score = self.scores(Trial.of(advices, self.ranges))
            loss = _loss(self.base.score.sqnr, score.sqnr)
            refused = replace(refused, loss=loss, accuracy=score.accuracy)
            if loss > self.max_loss:
                return replace(refused, why=f"costs {loss:.2f} dB with what is kept, more than {self.max_loss:g}")
            model = applied(self.source, advices, self.ranges)
            trial = self.measure.network(Trial.of(advices, self.ranges), model, score)
        except Unusable as error:
            return replace(refused, why=str(error))
        ratio, (low, high) = self._ratio(trial, self.current, self.end)
        decided = replace(refused, gain=1 - ratio, interval=(1 - high, 1 - low))
        if not self._pays(ratio, (low, high)):
            return replace(decided, why=f"gains {1 - ratio:.1%} ({1 - high:.1%} to {1 - low:.1%})")
        self.current = trial
        self.kept.append(candidate)
        return replace(decided, verdict=KEPT, why=f"gains {1 - ratio:.1%} for {loss:.2f} dB in all")

    def _ratio(
        self, mine: _Network, other: _Network, end: float, purpose: str = ""
    ) -> tuple[float, tuple[float, float]]:
        """`_Measure.ratio` until the gain that is wanted lies outside of the interval, or there is no time for more blocks.
        Or what the journal has of it for this ``purpose``.
        """

        def told(interval: tuple[float, float]) -> bool:
            return not interval[0] <= 1 - self.min_gain <= interval[1] or time.perf_counter() > end

        key = f"latency {mine.trial.digest} {other.trial.digest} {purpose}"
        ratio, (low, high) = self._once(key, lambda: self.measure.ratio(mine, other, told))
        return ratio, (low, high)

    def _once(self, key: str, measured: Callable[[], object]) -> Any:
        """What is measured here, unless the journal has it."""
        ((_, value),) = answers([Task(key, key, measured)], journal=self.journal, alike=())
        return value

    def _pays(self, ratio: float, interval: tuple[float, float]) -> bool:
        return 1 - ratio >= self.min_gain and interval[1] < 1

    def _confirmed(self) -> tuple[float, tuple[float, float]]:
        """The latency by that of the given model, of what is left after all is refused without which the rest pays."""
        while self.kept:
            self.progress("measuring what is kept against the model that was given")
            ratio, interval = self._ratio(self.current, self.base, self.last, "final")
            if self._pays(ratio, interval):
                return ratio, interval
            self._give_up(f"together with what was kept, the gain is {1 - ratio:.1%} of the given model's latency")
        return 1.0, (1.0, 1.0)

    def _give_up(self, why: str) -> None:
        """Refuse what gained least of what was kept."""
        least = min((each for each in self.decisions if each.verdict == KEPT), key=lambda each: each.gain or 0.0)
        self.progress(f"{least.candidate.which}: {REFUSED}: {why}")
        self.decisions = [replace(each, verdict=REFUSED, why=why) if each is least else each for each in self.decisions]
        self.kept = [each for each in self.kept if each is not least.candidate]
        self.current = self.base
        if self.kept:
            trial = Trial.of([advice for each in self.kept for advice in each.advices], self.ranges)
            model = applied(self.source, trial.advices, self.ranges)
            self.current = self.measure.network(trial, model, self.scores(trial))

    def result(self) -> Completion:
        ratio, interval = self._confirmed()
        after = self._explained(self.current.model) if self.kept else self.found
        return Completion(
            model=self.current.model if self.kept else self.source.clone(),
            before=_state(self.found, self.base),
            after=_state(after, self.current),
            ratio=ratio,
            interval=interval,
            decisions=tuple(sorted(self.decisions, key=lambda each: (each.verdict != KEPT, -each.candidate.share))),
            unadvised=tuple(each for each in self.found if has_weights(each.operation) and not each.advices),
        )


def _state(found: Explanation, network: _Network) -> State:
    weighted = [each for each in found.operations if has_weights(each.kind)]
    return State(
        len(weighted), sum(each.answer is None for each in weighted), network.score.sqnr, network.score.accuracy
    )


def _groups(answers: Sequence[Answer], shares: dict[str, float]) -> list[Candidate]:
    """Layers that share an advice are one."""
    groups: list[tuple[dict[str, Answer], set[Advice]]] = []
    for answer in answers:
        layers, advices = {answer.name: answer}, set(answer.advices)
        apart = []
        for other in groups:
            if other[1] & advices or answer.name in other[0]:
                layers, advices = {**other[0], **layers}, other[1] | advices
            else:
                apart.append(other)
        groups = [*apart, (layers, advices)]
    return [
        Candidate(
            ", ".join(sorted({each.operation for each in layers.values()})),
            tuple(layers),
            tuple(in_order(sorted(advices, key=str))),
            min(1.0, sum(shares[name] for name in layers)),
        )
        for layers, advices in groups
    ]


def _within_half(group: Candidate) -> Candidate:
    """With weights that no kernel saturates on."""
    halved = (replace(each, halved=True) if isinstance(each, QuantizeWeights) else each for each in group.advices)
    return replace(group, advices=tuple(halved))


def _kinds(groups: Iterable[Candidate]) -> list[list[Candidate]]:
    """Groups of one kind together, those that take more time first, and so within each."""
    kinds: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for group in groups:
        kinds[group.kind, group.what].append(group)
    found = [sorted(kind, key=lambda group: -group.share) for kind in kinds.values()]
    return sorted(found, key=lambda kind: -sum(group.share for group in kind))


def _joined(groups: Sequence[Candidate]) -> Candidate:
    return Candidate(
        ", ".join(dict.fromkeys(group.kind for group in groups)),
        tuple(layer for group in groups for layer in group.layers),
        tuple(advice for group in groups for advice in group.advices),
        min(1.0, sum(group.share for group in groups)),
    )
