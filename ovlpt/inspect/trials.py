"""How far from the float model a trial of `complete` is: a task for each part of the data, whoever computes.

A trial is the advices that are applied to the given model; workers get their names and ranges, not a model. What they
answer are sums that merge in any order without rounding.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovlpt.config import PluginConfig
from ovlpt.device import transform
from ovlpt.device.compile import lpt_properties
from ovlpt.device.execution_types import last_line
from ovlpt.device.properties import EXACT, F32
from ovlpt.fleet.engine import Died, Workers, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.kept import Kept
from ovlpt.fleet.models import settings_here
from ovlpt.fleet.sums import ExactSum
from ovlpt.fleet.tasks import Task
from ovlpt.inspect.advice import Advice, Ranges, in_order
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.inspect.numbers.distance import Distance
from ovlpt.inspect.runs import latency_hints
from ovlpt.inspect.setup import Setup
from ovlpt.inspect.shard_errors import classes
from ovlpt.inspect.shards import Shard
from ovlpt.openvino_api import CompiledModel, Core, Model, Node
from ovlpt.operations.families import ACTIVATIONS
from ovlpt.trace import InputError

MOST = 100.0  # dB: what is nearer is not told apart
_EXPECTED_BYTES = 256 << 20  # results of the float model that a worker keeps; those of other data it computes anew
_LOSES_QUANTIZATION = ACTIVATIONS | {"Interpolate", "PRelu"}
_BENCHES = Kept(2)


class Unusable(InputError):
    """A trial that the device does not compile, or that ended its worker process."""


@dataclass(frozen=True)
class Trial:
    """Advices for the given model, none for the model as it is, and the ranges that they need."""

    advices: tuple[Advice, ...] = ()
    ranges: tuple[tuple[str, tuple[float, float]], ...] = ()

    @classmethod
    def of(cls, advices: Iterable[Advice], ranges: Ranges) -> Trial:
        """With those of ``ranges`` that the advices need."""
        taken = tuple(advices)
        names = dict.fromkeys(advice.measured for advice in taken)
        return cls(taken, tuple((name, ranges[name]) for name in names if name in ranges))

    @property
    def digest(self) -> str:
        """Equal for equal trials."""
        return hashlib.sha256(repr(self).encode(errors="surrogateescape")).hexdigest()


class Score:
    """Distances of the outputs from those of the float model, and right answers, over samples."""

    def __init__(self) -> None:
        self._outputs: list[_Output] = []
        self._right = self._labelled = 0

    def add(self, expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> None:
        """Add the outputs of one sample."""
        self._outputs = self._outputs or [_Output() for _ in expected]
        for output, *pair in zip(self._outputs, expected, found, strict=True):
            output.add(Distance.of(*pair))

    def add_answers(self, answers: np.ndarray, labels: np.ndarray) -> None:
        """Add the classes that were found. Raises `InputError` where there are not as many as labels."""
        if answers.size != labels.size:
            raise InputError(
                f"there are {labels.size} labels and {answers.size} answers; give one label for each answer"
            )
        self._labelled += labels.size
        self._right += int((answers == labels).sum())

    def merge(self, other: Score) -> None:
        """Add what another has summed."""
        self._right, self._labelled = self._right + other._right, self._labelled + other._labelled
        self._outputs = self._outputs or [_Output() for _ in other._outputs]
        for mine, theirs in zip(self._outputs, other._outputs, strict=True):
            mine.merge(theirs)

    @property
    def sqnr(self) -> tuple[float, ...]:
        """Of each output, dB within ± `MOST`."""
        return tuple(float(np.clip(output.sqnr, -MOST, MOST)) for output in self._outputs)

    @property
    def accuracy(self) -> float | None:
        """The part of right answers, None without labels."""
        return self._right / self._labelled if self._labelled else None

    def to_plain(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "right": self._right,
            "labelled": self._labelled,
            "outputs": [[each.signal.to_plain(), each.noise.to_plain(), each.broken] for each in self._outputs],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Score:
        """From what `to_plain` gave."""
        made = cls()
        made._right, made._labelled = plain["right"], plain["labelled"]
        made._outputs = [
            _Output(ExactSum.from_plain(signal), ExactSum.from_plain(noise), broken)
            for signal, noise, broken in plain["outputs"]
        ]
        return made


@dataclass
class _Output:
    """`Distance`s of samples, whose energies are added without rounding. ``broken``: one of them means nothing."""

    signal: ExactSum = field(default_factory=ExactSum)
    noise: ExactSum = field(default_factory=ExactSum)
    broken: bool = False

    def add(self, distance: Distance) -> None:
        self.signal.add(distance.signal)
        self.noise.add(distance.noise)
        self.broken |= bool(distance.broken)

    def merge(self, other: _Output) -> None:
        self.signal.merge(other.signal)
        self.noise.merge(other.noise)
        self.broken |= other.broken

    @property
    def sqnr(self) -> float:
        return Distance(float(self.signal), float(self.noise), "broken" if self.broken else "").sqnr


def _bench(setup: Setup) -> Bench:
    """Compiled here."""
    core = Core()
    models = setup.models(core)
    return Bench(*models, setup.device, core, settings_here(setup.config), setup.threads)


class Bench:
    """The float model, and the trial that is scored. ``original``: None for the given one without its FakeQuantize."""

    def __init__(
        self,
        source: Model,
        original: Model | None,
        device: str,
        core: Core,
        config: PluginConfig | None,
        threads: int | None,
    ):
        self._source, self._device, self._core, self._config = source, device, core, config
        self._hints = latency_hints(device, threads)
        plain = without_fake_quantize(source) if original is None else original
        self._reference = _Stateful(core.compile_model(plain, device, {**self._hints, **EXACT}))
        self._expected: dict[str, list[list[np.ndarray]]] = {}
        self._held = 0
        self._last: tuple[Trial, _Stateful] | None = None

    def score(self, trial: Trial, shard: Shard, digest: str) -> dict[str, object]:
        """The `Score` of a trial on a shard, as plain values; ``digest``: of the shard. Raises `Unusable`."""
        score, network = Score(), self._network(trial)
        samples = [(part, *part.load(self._source)) for part in shard]
        expected = self._known(digest, [sample for _, each, _ in samples for sample in each])
        for _, each, labels in samples:
            found = [network(sample) for sample in each]
            for outputs in found:
                score.add(next(expected), outputs)
            if labels is not None and found:
                score.add_answers(np.concatenate([classes(outputs[0]) for outputs in found]), labels)
        return score.to_plain()

    def _network(self, trial: Trial) -> _Stateful:
        if self._last is None or self._last[0] != trial:
            self._last = None  # one at a time in the memory
            self._last = trial, _Stateful(self._compiled(trial))
        return self._last[1]

    def _compiled(self, trial: Trial) -> CompiledModel:
        with usable():
            model = applied(self._source, trial.advices, dict(trial.ranges))
            ready = transform(model, self._device, self._config, core=self._core, serializable=False, precision="f32")
            properties = {**self._hints, **F32, **lpt_properties(ready, self._device)}
            return self._core.compile_model(ready, self._device, properties)

    def _known(self, digest: str, samples: Sequence[Sequence[np.ndarray]]) -> Iterator[list[np.ndarray]]:
        """The float model's outputs of each sample."""
        if digest in self._expected:
            return iter(self._expected[digest])
        if self._held >= _EXPECTED_BYTES:
            return map(self._reference, samples)
        found = self._expected[digest] = [self._reference(sample) for sample in samples]
        self._held += sum(array.nbytes for outputs in found for array in outputs)
        return iter(found)


class _Stateful:
    """A compiled model and its one request, whose variables each sample finds at their beginning."""

    def __init__(self, compiled: CompiledModel):
        self._request, self._size = compiled.create_infer_request(), len(compiled.outputs)

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        self._request.reset_state()
        self._request.infer(list(inputs))
        return [np.array(self._request.get_output_tensor(index).data) for index in range(self._size)]


@contextmanager
def usable() -> Iterator[None]:
    """Raises `Unusable` for what the device says within."""
    try:
        yield
    except (InputError, RuntimeError) as error:
        raise Unusable(f"the device does not compile it: {last_line(error)}") from error


def score_with(setup: Setup, trial: Trial, shard: Shard, digest: str) -> dict[str, object]:
    """`Bench.score` in a worker, which compiles the float model once for all trials."""
    with _BENCHES.lend(setup.key, functools.partial(_bench, setup)) as bench:
        return bench.score(trial, shard, digest)


class Scores:
    """Scores of trials over all shards: by ``workers``, who are told ``subject``, or here, on that `Bench`."""

    def __init__(
        self, subject: Setup | Bench, shards: Sequence[Shard], workers: Workers | None, journal: Journal | None
    ):
        self._subject, self._workers, self._journal = subject, workers, journal
        self._shards: list[tuple[Shard, str]] = []
        seen: Counter[str] = Counter()
        for shard in shards:
            digest = hashlib.sha256("".join(part.digest for part in shard).encode()).hexdigest()
            seen[digest] += 1  # equal shards count each
            self._shards.append((shard, f"{digest}-{seen[digest]}"))

    def __call__(self, trial: Trial) -> Score:
        """Raises `Unusable`, also where no worker survives the trial."""
        score = Score()
        found: Iterator[tuple[Task, Any]] = answers(self._tasks(trial), self._workers, self._journal)
        for _, plain in found:
            if isinstance(plain, Died):
                raise Unusable(str(plain)) from plain
            score.merge(Score.from_plain(plain))
        return score

    def _tasks(self, trial: Trial) -> Iterator[Task]:
        subject, key = self._subject, trial.digest
        for shard, digest in self._shards:
            rest = trial, shard, digest
            label = f"a trial on {shard[0].name}"
            if isinstance(subject, Bench):
                yield Task(f"{key} {digest}", label, subject.score, rest)
            else:
                yield Task(f"{key} {digest}", label, score_with, (subject, *rest))


def applied(source: Model, advices: Iterable[Advice], ranges: Ranges) -> Model:
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
