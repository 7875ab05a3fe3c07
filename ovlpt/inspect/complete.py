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
   the hints that a user has by default, until the 95 % interval tells whether enough is gained, for 12 blocks at most. What
   gains less than wanted, or less than the interval can tell, is refused.
4. What costs too much as a whole, or is known to gain too little, is tried again by halves, the layers that take more time
   first, until the time is over.

A FakeQuantize before an activation function that loses it is dropped where one after it takes its place. On a CPU whose
int8 kernels keep sums in 16 bits, float weights are quantized to half of the integers.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ovlpt import plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import execution_types, saturates, transform
from ovlpt.device.compile import inference_precision, lpt_properties
from ovlpt.device.execution_types import last_line
from ovlpt.device.loading import read_float, read_quantized
from ovlpt.device.properties import EXACT, F32, LATENCY
from ovlpt.inspect.advice import Advice, QuantizeWeights, Ranges, in_order
from ovlpt.inspect.calibration import QUANTILES, calibrate
from ovlpt.inspect.executed import Layers, has_weights
from ovlpt.inspect.explain import Answer, Explanation, explain
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.inspect.inputs import load_samples
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies
from ovlpt.inspect.numbers import Distance
from ovlpt.inspect.runs import check_counterpart
from ovlpt.inspect.shard_errors import classes
from ovlpt.openvino_api import CompiledModel, Core, Model, Node
from ovlpt.trace import InputError

_LEAST_BLOCKS, _MOST_BLOCKS, _FINAL_BLOCKS, _BLOCK_SECONDS, _COUNTED = 4, 12, 6, 0.7, 3
_MOST = 100.0  # dB: what is nearer is not told apart
_LOSES_QUANTIZATION = frozenset(
    ("Elu", "Gelu", "HSigmoid", "HSwish", "Interpolate", "Mish", "PRelu", "Sigmoid", "SoftPlus", "Swish", "Tanh")
)

KEPT, REFUSED, HALVED = "kept", "refused", "halved"


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
    inputs: str | Path | Sequence[np.ndarray],
    float_model: Model | str | Path | None = None,
    device: str = "CPU",
    max_loss: float = 1.0,
    min_gain: float = 0.01,
    seconds: float = 600.0,
    core: Core | None = None,
    config: PluginConfig | None = None,
    progress: Callable[[str], object] = lambda line: None,
) -> Completion:
    """Quantize float layers of a clone of ``model`` where that gains at least ``min_gain`` of the latency (0.01 for 1 %)
    and all that is kept together costs at most ``max_loss`` dB.

    ``inputs``: samples to calibrate and compare on, a file or arrays as for `load_samples`, with "labels" for the accuracy.
    ``float_model``: the model before quantization. ``seconds``: after which nothing more is tried; what is running then is
    ended. ``progress`` is told in a line what is tried. Raises `InputError` for anything unusable.
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
    samples, labels = load_samples(inputs, source)
    if not samples:
        raise InputError("the data holds no sample; give at least one")
    measure = _Measure(core, device, config, samples, labels, original or without_fake_quantize(source))
    plan = _Plan(source, measure, max_loss, min_gain, time.perf_counter() + seconds, progress)
    plan.run()
    return plan.result()


@dataclass
class _Network:
    """A model as it is compiled, transformed once for each type of its floats."""

    model: Model
    fast: Model
    exact: Model
    sqnr: tuple[float, ...] = ()
    accuracy: float | None = None


class _Measure:
    """How far from the float model a network is, and how long it takes."""

    def __init__(
        self,
        core: Core,
        device: str,
        config: PluginConfig | None,
        samples: Sequence[Sequence[np.ndarray]],
        labels: np.ndarray | None,
        original: Model,
    ):
        self.core, self.device, self.config = core, device, config
        self.samples, self.labels = samples, labels
        self.saturates = saturates(core, device)
        self._expected = self._outputs(core.compile_model(original, device, {**LATENCY, **EXACT}))

    def network(self, model: Model) -> _Network:
        """Raises `InputError` for a model that the device cannot compile."""
        precision = inference_precision(self.core, plugin_config.physical_devices(self.core, self.device)[0], LATENCY)
        exact = self._transformed(model, "f32")
        made = _Network(model, exact if precision == "f32" else self._transformed(model, precision), exact)
        outputs = self._outputs(self.compiled(exact, F32))
        columns = zip(*([*zip(*pair, strict=True)] for pair in zip(self._expected, outputs, strict=True)), strict=True)
        made.sqnr = tuple(_sqnr(column) for column in columns)
        if self.labels is not None:
            made.accuracy = _accuracy(np.concatenate([classes(each[0]) for each in outputs]), self.labels)
        return made

    def compiled(self, ready: Model, more: Mapping[str, object]) -> CompiledModel:
        properties = {**LATENCY, **more, **lpt_properties(ready, self.device)}
        return self.core.compile_model(ready, self.device, properties)

    def _transformed(self, model: Model, precision: str) -> Model:
        return transform(model, self.device, self.config, core=self.core, serializable=False, precision=precision)

    def _outputs(self, compiled: CompiledModel) -> list[list[np.ndarray]]:
        request, found = compiled.create_infer_request(), []
        for sample in self.samples:
            request.reset_state()
            request.infer(list(sample))
            found.append([np.array(request.get_output_tensor(at).data) for at in range(len(compiled.outputs))])
        return found

    def ratio(
        self, mine: _Network, other: _Network, most: int, enough: Callable[[float, tuple[float, float]], bool]
    ) -> tuple[float, tuple[float, float]]:
        """Median of paired latencies, mine / other, and its 95 % interval: of ``most`` blocks, or of those after which the
        two were ``enough``.
        """
        blocks: list[np.ndarray] = []
        while True:
            order = [("mine", mine), ("other", other)][:: -1 if len(blocks) % 2 else 1]
            requests = {name: self.compiled(each.fast, {}).create_infer_request() for name, each in order}
            runs = {name: lambda r=requests[name]: r.infer(self.samples[0]) for name in ("mine", "other")}
            times = interleaved_latencies(runs, _BLOCK_SECONDS, None)
            blocks.append(np.divide(times["mine"], times["other"]))
            found = float(np.median(np.concatenate(blocks))), bootstrap_interval(blocks)
            if len(blocks) >= most or (len(blocks) >= _LEAST_BLOCKS and enough(*found)):
                return found

    def shares(self, network: _Network, answers: Iterable[Answer]) -> dict[str, float]:
        """Of the time of an inference, by names of operations in the given model; 1 of a layer that is not known.

        Of each layer the shortest time of a few compilations: what else the machine does makes any of them longer.
        """
        compiled = [self.compiled(network.exact, {**F32, "PERF_COUNT": True}) for _ in range(_COUNTED)]
        runs = [execution_types(each, list(self.samples[0])) for each in compiled]
        times = {layer.name: min(run[at].real_time for run in runs) for at, layer in enumerate(runs[0])}
        layers, total = Layers(runs[0], network.exact), sum(times.values()) or 1.0
        found = {each.name: layers.of(each.node, each.operation) for each in answers}
        return {name: times[layer.name] / total if layer else 1.0 for name, layer in found.items()}


def _accuracy(found: np.ndarray, labels: np.ndarray) -> float:
    if found.size != labels.size:
        raise InputError(f"there are {labels.size} labels and {found.size} answers; give one label for each answer")
    return float((found == labels).mean())


def _sqnr(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """Of one output over all samples, dB."""
    distance = Distance()
    for reference, value in pairs:
        distance.add(reference, value)
    return float(np.clip(distance.sqnr, -_MOST, _MOST))


def _loss(before: Sequence[float], after: Sequence[float]) -> float:
    return max(b - a for b, a in zip(before, after, strict=True))


class _Plan:
    """What is tried next, and what was kept so far. ``end``: of the time, on the clock of `time.perf_counter`."""

    def __init__(
        self,
        source: Model,
        measure: _Measure,
        max_loss: float,
        min_gain: float,
        end: float,
        progress: Callable[[str], object],
    ):
        self.source, self.measure, self.progress = source, measure, progress
        self.max_loss, self.min_gain, self.end = max_loss, min_gain, end
        self.found = self._explained(source)
        self.base = self.current = measure.network(source)
        self.kept: list[Candidate] = []
        self.decisions: list[Decision] = []
        self.ranges: Ranges = {}

    def _explained(self, model: Model) -> Explanation:
        return explain(model, self.measure.device, self.measure.config, core=self.measure.core)

    def run(self) -> None:
        answers = [each for each in self.found if has_weights(each.operation) and each.advices]
        advices = in_order(advice for each in answers for advice in each.advices)
        self.progress(f"calibrating {len(advices)} advices on {len(self.measure.samples)} samples")
        self.ranges = calibrate(self.source, advices, self.measure.samples, self.measure.core, QUANTILES)
        groups = []
        for group in _groups(answers, self.measure.shares(self.base, answers)):
            if self.measure.saturates:
                group = _within_half(group)
            try:
                _applied(self.source, group.advices, self.ranges)
                groups.append(group)
            except InputError as error:
                self.decisions.append(Decision(group, REFUSED, str(error)))
        queue = deque(_kinds(groups))
        while queue:
            kind = queue.popleft()
            decision = self._tried(_joined(kind))
            halves = self._halves(kind, decision)
            if halves:
                queue.extend(halves)
                decision = replace(decision, verdict=HALVED)
            self.progress(f"{decision.candidate.which}: {decision.verdict}: {decision.why}")
            self.decisions.append(decision)

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
            why = f"its layers take {candidate.share:.1%} of the time, and {self.min_gain:.0%} has to be gained"
            return replace(refused, why=why)
        if time.perf_counter() > self.end:
            return replace(refused, why="the time was over")
        advices = [advice for each in (*self.kept, candidate) for advice in each.advices]
        self.progress(f"trying {candidate.which}: {candidate.what}")
        try:
            trial = self.measure.network(_applied(self.source, advices, self.ranges))
        except (InputError, RuntimeError) as error:
            return replace(refused, why=f"the device does not compile it: {last_line(error)}")
        loss = _loss(self.base.sqnr, trial.sqnr)
        refused = replace(refused, loss=loss, accuracy=trial.accuracy)
        if loss > self.max_loss:
            return replace(refused, why=f"costs {loss:.2f} dB with what is kept, more than {self.max_loss:g}")
        ratio, (low, high) = self.measure.ratio(trial, self.current, _MOST_BLOCKS, self._told)
        decided = replace(refused, gain=1 - ratio, interval=(1 - high, 1 - low))
        if not self._pays(ratio, (low, high)):
            return replace(decided, why=f"gains {1 - ratio:.1%} ({1 - high:.1%} to {1 - low:.1%})")
        self.current = trial
        self.kept.append(candidate)
        return replace(decided, verdict=KEPT, why=f"gains {1 - ratio:.1%} for {loss:.2f} dB in all")

    def _pays(self, ratio: float, interval: tuple[float, float]) -> bool:
        return 1 - ratio >= self.min_gain and interval[1] < 1

    def _told(self, ratio: float, interval: tuple[float, float]) -> bool:
        """Whether more blocks would not change the answer."""
        return self._pays(ratio, interval) or interval[0] > 1 - self.min_gain or time.perf_counter() > self.end

    def result(self) -> Completion:
        after = self._explained(self.current.model) if self.kept else self.found
        ratio, interval = 1.0, (1.0, 1.0)
        if self.kept:
            self.progress("measuring what is kept against the model that was given")
            ratio, interval = self.measure.ratio(self.current, self.base, _FINAL_BLOCKS, lambda *_: False)
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
    return State(len(weighted), sum(each.answer is None for each in weighted), network.sqnr, network.accuracy)


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
        groups[0].kind,
        tuple(layer for group in groups for layer in group.layers),
        tuple(advice for group in groups for advice in group.advices),
        min(1.0, sum(group.share for group in groups)),
    )


def _applied(source: Model, advices: Iterable[Advice], ranges: Ranges) -> Model:
    """A clone with the advices applied. Raises `InputError` as `Advice.apply` does."""
    model = source.clone()
    given = {node.get_friendly_name() for node in model.get_ops() if node.get_type_name() == "FakeQuantize"}
    for advice in in_order(advices):
        advice.apply(model, ranges)
    for node in model.get_ordered_ops():
        if node.get_type_name() == "FakeQuantize" and node.get_friendly_name() not in given:
            _drop_superseded(node)
    model.validate_nodes_and_infer_types()
    return model


def _drop_superseded(quantize: Node) -> None:
    """Bypass the FakeQuantize above whose grid nothing but an activation function before this one reads."""
    node = quantize.input_value(0).get_node()
    while len(node.output(0).get_target_inputs()) == 1 and node.get_output_size() == 1:
        if node.get_type_name() == "FakeQuantize":
            node.output(0).replace(node.input_value(0))
            return
        if node.get_type_name() not in _LOSES_QUANTIZATION:
            return
        node = node.input_value(0).get_node()
