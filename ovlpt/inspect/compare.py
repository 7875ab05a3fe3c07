"""Where an accuracy drop comes from: quantization, transformation, or the precision of what stays in float.

Four runs of one network on the same data:

    float             the model before quantization, in f32
    fake-quantized    the quantized model with LPT off: FakeQuantize computed as such, in f32
    int8              transformed by ovlpt; what stays in float computes in f32
    default           the same, and what stays in float computes in the device's default precision (bf16, f16)

Three errors lie between them, each measured as a signal-to-quantization-noise ratio over all samples and elements,

    SQNR(r, v) = 10 log10( Σ r² / Σ (r - v)² ) dB

    quantization      SQNR(float, fake-quantized)
    transformation    SQNR(fake-quantized, int8)
    float precision   SQNR(int8, default)

**By layer.** A layer is a segment of the quantized network from FakeQuantize to FakeQuantize (see `segments`), named
after its convolution or MatMul. With r its result in the reference of an error and v in the run that is examined:

    cumulative  = SQNR(r, v)       both runs on the same data; what went wrong above has its part in it
    local       = SQNR(r, f(x))    f: the examined run's layer alone, x: the reference's values at its inputs

Results are read after the FakeQuantize that stores them. The one exception is the local quantization error, which is
read before it: it is then the error of the quantized inputs and weights of this layer, all that an ignored scope
takes away.

**Matching.** An operation of the float model belongs to the one with the same friendly name in the quantized model. Where
the quantizer put an operation of its own between a value and its FakeQuantize, the float value is taken before it:
multiplied as well after a Multiply (activations scaled against the weights), unchanged after an Add (a corrected
bias). The int8 model is not matched by names: the outputs are added before it is transformed, and keep their order.

**Outputs end fusions.** Layers are read from networks of their own, compiled with more outputs; results, accuracy and
latency come from networks that have none. Tensors that are stored anyway are read together. A FakeQuantize that a
plugin fuses with the Add after it is stored nowhere and ends no layer. The tensor that such an Add is computed into is
overwritten: it is read from a network that ends there. `Comparison.disturbance` is what all this still changed.

**Many workers.** Every figure is a sum over samples that merges in any order without rounding (`ovlpt.fleet.sums`), so it
does not depend on how the data was divided, nor on who computed what.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ovlpt import data, plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.config_file import load_config
from ovlpt.device import virtual_gpu
from ovlpt.device.loading import read_float, read_quantized
from ovlpt.device.model_zoo import float_file
from ovlpt.device.states import refuse_variables
from ovlpt.fleet.engine import Died, Executors, Progress, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.models import model_parcel, settings_parcel
from ovlpt.fleet.tasks import Task
from ovlpt.inspect.inputs import random_inputs
from ovlpt.inspect.layer_errors import LayerErrors, finite, first_measured, worst_first
from ovlpt.inspect.runs import ERRORS, QUANTIZATION, Runs, check_counterpart
from ovlpt.inspect.setup import Setup
from ovlpt.inspect.shard_errors import Workbench, measure_with, usable_samples
from ovlpt.inspect.shards import Data, Inputs, Shard, data_of, divided
from ovlpt.inspect.totals import Totals
from ovlpt.openvino_api import Core, Model
from ovlpt.own_transformations import knows_own_operations
from ovlpt.trace import InputError


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. ``layers``: the worst first, by the local SQNR of the first error that was measured."""

    model: str
    device: str
    samples: int
    layer_samples: int
    float_precision: str  # in which the default run computes what stays in float
    accuracy: dict[str, float]  # by run; empty without labels
    latency: dict[str, float]  # by run: median in ms of runs in turn; empty where workers or a virtual GPU ran
    sqnr: dict[str, dict[str, float]]  # by error and output: dB
    layers: tuple[LayerErrors, ...]
    disturbance: float  # largest relative difference of an int8 output once layers are read
    saturates: bool  # the CPU has no VNNI: sums of two products are kept in 16 bits, a transformation error
    skipped: tuple[str, ...] = ()  # a sentence for each shard that could not be used

    @property
    def first(self) -> str:
        """The error by which layers are sorted."""
        return first_measured(self.layers)

    def ignored(self, share: float = 0.5) -> list[str]:
        """The fewest operations whose layers make at least ``share`` of the quantization error: of the sum of the
        layers' local noise-to-signal ratios. Empty without a float model.
        """
        measured = [layer for layer in self.layers if QUANTIZATION in layer.local and layer.operations]
        ratios = [10 ** (-layer.local[QUANTIZATION] / 10) for layer in measured]
        names: list[str] = []
        taken = 0.0
        for layer, ratio in zip(measured, ratios, strict=True):
            if not ratio or taken >= share * sum(ratios):
                break
            taken += ratio
            names += layer.operations
        return names

    def ignored_scope(self, share: float = 0.5) -> str:
        """`ignored` as text for ``nncf.quantize(…, ignored_scope=…)``; "" where there is nothing to ignore."""
        names = self.ignored(share)
        return "nncf.IgnoredScope(names=[\n" + "".join(f"    {name!r},\n" for name in names) + "])" if names else ""

    def to_json(self) -> dict[str, object]:
        """Plain values for a file; an infinite SQNR is the text "inf"."""
        return {
            "model": self.model,
            "device": self.device,
            "samples": self.samples,
            "layer_samples": self.layer_samples,
            "float_precision": self.float_precision,
            "accuracy": self.accuracy,
            "latency_ms": self.latency,
            "sqnr_db": {error: finite(values) for error, values in self.sqnr.items()},
            "layers": [layer.to_json() for layer in self.layers],
            "disturbance": self.disturbance,
            "saturates": self.saturates,
            "skipped": list(self.skipped),
            "ignored_scope": self.ignored(),
        }


@other_names(plugin="config", device_name="device")
@knows_own_operations
def compare(
    model: Model | str | Path | None = None,
    inputs: Inputs | None = None,
    float_model: Model | str | Path | None = None,
    device: str = "CPU",
    core: Core | None = None,
    config: PluginConfig | str | Path | None = None,
    layer_samples: int = 16,
    labels: Sequence[int] | None = None,
    seconds: float = 1.0,
    virtual: str | None = None,
    execute: bool = False,
    executor: Executors | None = None,
    resume: str | Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Split the error of a quantized model into quantization, transformation and float precision, layer by layer.

    Without ``model``: the bundled digits network with its float original and its held-out images. ``inputs``: a file
    (see `load_samples`), or one array per input as such a file would hold them; or many of them (see
    `ovlpt.inspect.shards.data_of`); random without, which says little of a trained network. ``float_model``: the model
    before quantization; without it there is no quantization error. ``labels``: of the classes, for the accuracy, where
    the file has none: the answer is the largest value along the last axis of the first output. Outputs are compared on
    all samples, layers on the first ``layer_samples``. ``seconds``: of measuring latencies. ``virtual``, ``execute``: on
    the kernels of a GPU that this machine need not have (`ovlpt.device.virtual_gpu`), in a process of their own;
    there are no latencies then.

    ``executor``: a `concurrent.futures.Executor` whose workers compute, or what makes one, which replaces it when its
    workers are lost; no latencies are measured then. ``threads``: of an inference on a CPU; without an executor the
    plugin's choice, with one 1: with equal threads the figures are equal to the last digit. ``resume``: a journal, which
    is made where it is not there; what it has is not computed again. ``progress`` is called with how many shards are done, and
    of how many, None where that is unknown.

    Raises `InputError` for anything unusable. One of many shards that is unusable is `Comparison.skipped` instead.
    """
    if virtual is not None:
        if executor is not None or resume is not None:
            raise InputError("a virtual GPU exists in one process only; leave the executor and the journal out")
        virtual_gpu.check_computes(virtual, device, execute, config)
        given = model, inputs, float_model, device
        settings = {"layer_samples": layer_samples, "labels": labels, "seconds": seconds}
        return replace(virtual_gpu.call(virtual, True, compare, *given, **settings), latency={})  # it means nothing
    core = core or Core()
    plugin_config.check_physical(core, device)
    for count, what in (
        (layer_samples, "samples leave nothing to compare the layers on"),
        (threads, "threads compute nothing"),
    ):
        if count is not None and count < 1:
            raise InputError(f"{count} {what}; give at least 1")
    subject = _subject(model, float_model, core)
    with TemporaryDirectory() as folder:
        run = _Comparing(
            subject, _data(subject, inputs, labels), device, core, config, layer_samples,
            1 if threads is None and executor is not None else threads, Path(folder),
        )  # fmt: skip
        totals = run.totals(executor, resume, progress)
        latency = run.latencies(seconds) if executor is None else {}
    return _comparison(subject.label, totals, latency)


@dataclass(frozen=True)
class _Subject:
    """The two models, as they were given and as they were read. ``label``: what the result calls them."""

    label: str
    model: Model | str | Path
    float_model: Model | str | Path | None
    source: Model
    original: Model | None
    bundled: bool


def _subject(model: Model | str | Path | None, float_model: Model | str | Path | None, core: Core) -> _Subject:
    bundled = model is None
    if bundled:
        model, float_model = data.digits(), float_model or data.digits_float()
    source = read_quantized(model, core)
    refuse_variables(source, "its layers are compared one by one, without their state")
    original = None if float_model is None else read_float(float_model, core)
    if isinstance(float_model, (str, Path)):
        float_model = float_file(Path(float_model))  # which workers read, too
    if original is not None:
        check_counterpart(source, original)
    label = str(source.get_friendly_name() if isinstance(model, Model) else model)
    return _Subject("bundled digits network" if bundled else label, model, float_model, source, original, bundled)


def _data(subject: _Subject, inputs: Inputs | None, labels: Sequence[int] | None) -> Data:
    if inputs is not None:
        return data_of(inputs, subject.source, labels)
    if subject.bundled:
        images, found = data.heldout()
        return divided([[image[None]] for image in images], found, None)
    return divided([random_inputs(subject.source)], None, labels)


class _Comparing:
    """One run of `compare`, whoever computes."""

    def __init__(
        self,
        subject: _Subject,
        data: Data,
        device: str,
        core: Core,
        config: PluginConfig | str | Path | None,
        layer_samples: int,
        threads: int | None,
        folder: Path,
    ):
        self._subject, self._data, self._device, self._core, self._config = subject, data, device, core, config
        self._layer_samples, self._threads, self._folder = layer_samples, threads, folder
        self._workbench: Workbench | None = None
        self._first: Sequence[np.ndarray] | None = None

    def totals(self, executor: Executors | None, resume: str | Path | None, progress: Progress | None) -> Totals:
        """The sums over all shards."""
        setup = None if executor is None and resume is None else self._setup()
        totals = Totals()
        with ExitStack() as stack:
            journal = None if resume is None else stack.enter_context(Journal(resume, self._run(setup)))
            tasks = self._tasks(None if executor is None else setup)
            for task, plain in answers(tasks, executor, journal, progress, self._data.count):
                if isinstance(plain, Died):
                    totals.skipped.append(f"{task.label} is left out: {plain}")
                else:
                    totals.merge(Totals.from_plain(plain))
        if not totals.samples:
            raise InputError(next(iter(totals.skipped), "the data holds no sample; give at least one"))
        return totals

    def latencies(self, seconds: float) -> dict[str, float]:
        """Of the runs, here, on the first sample."""
        return self._here().latencies(self._first, seconds)

    def _setup(self) -> Setup:
        subject = self._subject
        original = subject.float_model
        return Setup(
            model_parcel(subject.model, subject.source, self._folder, "model"),
            None if original is None else model_parcel(original, subject.original, self._folder, "float"),
            self._device,
            settings_parcel(self._config),
            self._threads,
        )

    def _run(self, setup: Setup) -> dict[str, object]:
        """What a journal is of."""
        return {"command": "compare", **setup.described(), "samples of layers": self._layer_samples}

    def _here(self) -> Workbench:
        if self._workbench is None:
            subject, config = self._subject, self._config
            config = load_config(config) if isinstance(config, (str, Path)) else config
            runs = Runs(subject.source, subject.original, self._device, self._core, config, self._threads)
            self._workbench = Workbench(runs, self._core)
        return self._workbench

    def _tasks(self, setup: Setup | None) -> Iterator[Task]:
        """A task for each shard; the first ones measure layers. Without ``setup`` they are carried out here."""
        left = self._layer_samples
        seen: Counter[str] = Counter()
        for number, shard in enumerate(self._data.shards, 1):
            layers, left = left, max(0, left - self._count(shard, left))
            function, first = (self._measure_here, ()) if setup is None else (measure_with, (setup,))
            key = hashlib.sha256(f"{layers} {[part.digest for part in shard]}".encode()).hexdigest()
            seen[key] += 1  # equal shards count each
            yield Task(
                f"{key}-{seen[key]}",
                shard[0].name if len(shard) == 1 else f"shard {number} from {shard[0].name}",
                function,
                (*first, layers, not self._data.divided, shard),
            )

    def _measure_here(self, layer_samples: int, keep_going: bool, shard: Shard) -> dict[str, object]:
        return self._here().measure(layer_samples, keep_going, shard)

    def _count(self, shard: Shard, wanted: int) -> int:
        """The number of samples of a shard, as long as some are ``wanted``."""
        found = 0
        for part in shard:
            if found < wanted:
                samples = usable_samples(part, self._subject.source)
                self._first = self._first or next(iter(samples), None)
                found += len(samples)
        return found


def _comparison(label: str, totals: Totals, latency: dict[str, float]) -> Comparison:
    about, labelled = totals.about, totals.labelled
    return Comparison(
        model=label,
        device=about["device"],
        samples=totals.samples,
        layer_samples=totals.layer_samples,
        float_precision=about["float_precision"],
        accuracy={run: totals.right[run] / labelled for run in about["runs"]} if labelled else {},
        latency=latency,
        sqnr={
            error: {output: noise.sqnr for output, noise in totals.outputs[error].items()}
            for error in ERRORS
            if error in totals.outputs
        },
        layers=worst_first([layer.errors() for layer in totals.layers]),
        disturbance=totals.disturbance,
        saturates=about["saturates"],
        skipped=tuple(sorted(totals.skipped)),
    )
