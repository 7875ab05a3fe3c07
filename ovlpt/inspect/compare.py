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
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from ovlpt import data, plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import ExecutionTypes, compile_model, execution_types, virtual_gpu
from ovlpt.device.compile import read_model, read_quantized
from ovlpt.device.properties import EXACT, F32, UNCACHED
from ovlpt.device.this_cpu import saturates
from ovlpt.graph.constants import constant_above, is_constant_path
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.inputs import load_samples, output_names, random_inputs
from ovlpt.inspect.latency import interleaved_latencies
from ovlpt.inspect.run import relative_difference
from ovlpt.inspect.segments import Segments, apart, observed, up_to
from ovlpt.interpreter.layer import WEIGHTED
from ovlpt.openvino_api import CompiledModel, Core, Model, Output, opset1
from ovlpt.trace import InputError

FLOAT, FAKE_QUANTIZED, INT8, DEFAULT = "float", "fake-quantized", "int8", "default"
QUANTIZATION, TRANSFORMATION, FLOAT_PRECISION = "quantization", "transformation", "float precision"
ERRORS = {  # error: its reference, the run that is examined
    QUANTIZATION: (FLOAT, FAKE_QUANTIZED),
    TRANSFORMATION: (FAKE_QUANTIZED, INT8),
    FLOAT_PRECISION: (INT8, DEFAULT),
}

_LATENCY = {"PERFORMANCE_HINT": "LATENCY", **UNCACHED}


@dataclass
class Noise:
    """Signal and noise energy, summed over samples."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, reference: np.ndarray, value: np.ndarray) -> None:
        reference = reference.astype(np.float64)
        self.signal += float((reference**2).sum())
        self.noise += float(((reference - value) ** 2).sum())

    @property
    def sqnr(self) -> float:
        """In dB; infinite where nothing differs."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf


@dataclass(frozen=True)
class LayerErrors:
    """One layer. ``operations``: the names of what a quantizer quantizes in it. SQNR in dB by error; an error that
    could not be measured is missing.
    """

    name: str
    type: str
    operations: tuple[str, ...]
    local: dict[str, float]
    cumulative: dict[str, float]

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "type": self.type,
            "operations": list(self.operations),
            "local_sqnr_db": _finite(self.local),
            "cumulative_sqnr_db": _finite(self.cumulative),
        }


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. ``layers``: the worst first, by the local SQNR of the first error that was measured."""

    model: str
    device: str
    samples: int
    layer_samples: int
    float_precision: str  # in which the default run computes what stays in float
    accuracy: dict[str, float]  # by run; empty without labels
    latency: dict[str, float]  # by run: median in milliseconds of runs in turn
    sqnr: dict[str, dict[str, float]]  # by error and output: dB
    layers: tuple[LayerErrors, ...]
    disturbance: float  # largest relative difference of an int8 output once layers are read
    saturates: bool  # the CPU has no VNNI: sums of two products are kept in 16 bits, a transformation error

    @property
    def first(self) -> str:
        """The error by which layers are sorted."""
        return _first(self.layers)

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
            "sqnr_db": {error: _finite(values) for error, values in self.sqnr.items()},
            "layers": [layer.to_json() for layer in self.layers],
            "disturbance": self.disturbance,
            "saturates": self.saturates,
            "ignored_scope": self.ignored(),
        }


def _first(layers: Sequence[LayerErrors]) -> str:
    return next((error for error in ERRORS if any(error in layer.local for layer in layers)), TRANSFORMATION)


def _finite(values: Mapping[str, float]) -> dict[str, float | str]:
    return {name: value if math.isfinite(value) else str(value) for name, value in values.items()}


@other_names(plugin="config", device_name="device")
def compare(
    model: Model | str | Path | None = None,
    inputs: str | Path | Sequence[np.ndarray] | None = None,
    float_model: Model | str | Path | None = None,
    device: str = "CPU",
    core: Core | None = None,
    config: PluginConfig | None = None,
    layer_samples: int = 16,
    labels: Sequence[int] | None = None,
    seconds: float = 1.0,
    virtual: str | None = None,
    execute: bool = False,
) -> Comparison:
    """Split the error of a quantized model into quantization, transformation and float precision, layer by layer.

    Without ``model``: the bundled digits network with its float original and its held-out images. ``inputs``: a file
    (see `load_samples`), or one array per input as such a file would hold them; random without, which says little of
    a trained network. ``float_model``: the model before quantization; without it there is no quantization error.
    ``labels``: of the classes, for the accuracy, where the file has none: the answer is the largest value along the
    last axis of the first output. Outputs are compared on all samples, layers on the first ``layer_samples``.
    ``seconds``: of measuring latencies. ``virtual``, ``execute``: on the kernels of a GPU that this machine need not have
    (`ovlpt.device.virtual_gpu`), in a process of their own; latencies then mean nothing.

    Raises `InputError` for anything unusable.
    """
    if virtual is not None:
        virtual_gpu.check_computes(virtual, device, execute, config)
        given = model, inputs, float_model, device
        settings = {"layer_samples": layer_samples, "labels": labels, "seconds": seconds}
        return virtual_gpu.call(virtual, True, compare, *given, **settings)
    core = core or Core()
    bundled = model is None
    if bundled:
        model, float_model = data.digits(), float_model or data.digits_float()
    source = read_quantized(model, core)
    plugin_config.check_physical(core, device)
    if layer_samples < 1:
        raise InputError(f"{layer_samples} samples leave nothing to compare the layers on; give at least 1")
    original = None if float_model is None else read_model(float_model, core)
    if original is not None:
        _check_counterpart(source, original)
    if inputs is None and bundled:
        images, labels = data.heldout()
        samples = [[image[None]] for image in images]
    elif inputs is None:
        samples = [random_inputs(source)]
    else:
        samples, found = load_samples(inputs, source)
        labels = found if labels is None else labels
    if not samples:
        raise InputError("the data holds no sample; give at least one")

    runs = _Runs(source, original, device, core, config)
    layers = _Layers(runs)
    names = output_names(source)
    totals = {error: {name: Noise() for name in names} for error in runs.errors}
    answers: dict[str, list[np.ndarray]] = {run: [] for run in runs.plain}
    networks = {run: _Network(compiled) for run, compiled in runs.plain.items()}
    for number, sample in enumerate(samples):
        results = {run: network(sample) for run, network in networks.items()}
        if number < layer_samples:
            layers.add(sample, results[INT8])
        for run, values in results.items():
            answers[run].append(values[0].argmax(-1).reshape(-1) if values[0].ndim else values[0].reshape(-1))
        for error, noises in totals.items():
            reference, examined = (results[run] for run in ERRORS[error])
            for noise, r, v in zip(noises.values(), reference, examined, strict=True):
                noise.add(r, v)
    return Comparison(
        model="bundled digits network"
        if bundled
        else str(source.get_friendly_name() if isinstance(model, Model) else model),
        device=f"{device} ({core.get_property(device, 'FULL_DEVICE_NAME').strip()})",
        samples=len(samples),
        layer_samples=min(layer_samples, len(samples)),
        float_precision=runs.float_precision,
        accuracy={} if labels is None else {run: _accuracy(found, labels) for run, found in answers.items()},
        latency=_latencies(runs.plain, samples[0], seconds),
        sqnr={error: {name: noise.sqnr for name, noise in noises.items()} for error, noises in totals.items()},
        layers=layers.results(),
        disturbance=layers.disturbance,
        saturates=saturates(core, device),
    )


def _check_counterpart(source: Model, original: Model) -> None:
    """Raise `InputError` for a float model with other inputs or outputs, or that is quantized."""
    for what in ("inputs", "outputs"):
        mine, other = ([str(port.get_partial_shape()) for port in getattr(model, what)] for model in (source, original))
        if mine != other:
            raise InputError(
                f"the float model is another network: its {what} are {', '.join(other)}, those of the quantized model "
                f"{', '.join(mine)}; give the model that was quantized"
            )
    if any(node.get_type_name() == "FakeQuantize" for node in original.get_ops()):
        raise InputError("the float model has FakeQuantize operations; give the model before quantization")


def _accuracy(answers: list[np.ndarray], labels: Sequence[int]) -> float:
    found = np.concatenate(answers)
    if found.size != len(labels):
        raise InputError(f"there are {len(labels)} labels and {found.size} answers; give one label for each answer")
    return float((found == np.asarray(labels)).mean())


def _latencies(plain: Mapping[str, CompiledModel], sample: Sequence[np.ndarray], seconds: float) -> dict[str, float]:
    requests = {run: compiled.create_infer_request() for run, compiled in plain.items()}
    found = interleaved_latencies({run: lambda r=r: r.infer(sample) for run, r in requests.items()}, seconds)
    return {run: median(times) for run, times in found.items()}


class _Network:
    """A compiled model and its one request: inputs in, all outputs out in order, as arrays of their own."""

    def __init__(self, compiled: CompiledModel):
        self._request, self._size = compiled.create_infer_request(), len(compiled.outputs)

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        self._request.infer(inputs)
        return [np.array(self._request.get_output_tensor(index).data) for index in range(self._size)]


class _Runs:
    """How each run compiles a model, and the networks without further outputs."""

    def __init__(self, source: Model, original: Model | None, device: str, core: Core, config: PluginConfig | None):
        self.source, self.original = source, original
        self.compile: dict[str, Callable[[Model], CompiledModel]] = {
            FLOAT: lambda model: core.compile_model(model, device, {**_LATENCY, **EXACT}),
            FAKE_QUANTIZED: lambda model: simulate(model, core, device, _LATENCY),
            INT8: lambda model: compile_model(model, device, {**_LATENCY, **F32}, config, core=core, strict=True),
            DEFAULT: lambda model: compile_model(model, device, _LATENCY, config, core=core, strict=True),
        }
        models = {FLOAT: original, FAKE_QUANTIZED: source, INT8: source, DEFAULT: source}
        self.plain = {run: self.compile[run](model) for run, model in models.items() if model is not None}
        self.float_precision = precision_of_floats(self.plain[DEFAULT])
        self.errors = [error for error, pair in ERRORS.items() if all(run in self.plain for run in pair)]

    @property
    def layer_errors(self) -> list[str]:
        """The errors that layers can have: a default run in f32 is the int8 run."""
        return [error for error in self.errors if error != FLOAT_PRECISION or self.float_precision != "f32"]


def precision_of_floats(compiled: CompiledModel) -> str:
    """The precision in which a compiled model computes what is not quantized: "f32", "bf16", "f16"."""
    return compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()


Values = list[np.ndarray | None]  # one per point; None: the run has no such value


class _Layers:
    """The errors of each layer, from networks that show more than their results."""

    def __init__(self, runs: _Runs):
        self._runs, self._errors = runs, runs.layer_errors
        self._inside, self._overwritten = fused(runs.source, execution_types(runs.plain[INT8]))
        self._cut = Segments(runs.source, self._inside)
        self._places = [self._cut.place_of(segment.point) for segment in self._cut.segments]
        self._sources = [[self._cut.place_of(value) for value in each.sources] for each in self._cut.segments]
        self._readers = {run: self._reader(run) for error in self._errors for run in ERRORS[error]}
        self._alone = {
            error: _Network(
                runs.compile[ERRORS[error][1]](apart(runs.source, self._inside, at_point=error != QUANTIZATION))
            )
            for error in self._errors
        }
        self._local = [defaultdict(Noise) for _ in self._cut.segments]
        self._cumulative = [defaultdict(Noise) for _ in self._cut.segments]
        self.disturbance = 0.0

    def add(self, sample: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Measure the layers on one sample, whose int8 ``results`` are known."""
        found = {run: read(sample) for run, read in self._readers.items()}
        values = {run: points for run, (_, points) in found.items()}
        self.disturbance = max(self.disturbance, relative_difference(found[INT8][0], results))
        for error in self._errors:
            reference, examined = (values[run] for run in ERRORS[error])
            answers = self._alone[error]([*sample, *self._feeds(reference, values[FAKE_QUANTIZED])])
            for number, (place, answer) in enumerate(zip(self._places, answers, strict=True)):
                if reference[place] is None:
                    continue
                self._cumulative[number][error].add(reference[place], examined[place])
                if all(reference[source] is not None for source in self._sources[number]):
                    self._local[number][error].add(reference[place], answer)

    def _feeds(self, reference: Values, quantized: Values) -> list[np.ndarray]:
        """What the layers alone read; where the reference has no value, one that no result is taken from."""
        size = len(self._cut.feeds)
        pairs = zip(reference[:size], quantized[:size], strict=True)
        return [other if value is None else value.astype(other.dtype) for value, other in pairs]

    def _reader(self, run: str) -> Callable[[Sequence[np.ndarray]], tuple[list[np.ndarray], Values]]:
        """From a sample to the network's results, and the values at its points."""
        if run == FLOAT:
            return self._float_reader()
        source, count = self._runs.source, len(self._runs.source.outputs)
        points = self._cut.points
        apart = [
            place
            for place, point in enumerate(points)
            if run != FAKE_QUANTIZED and point.get_node().get_friendly_name() in self._overwritten
        ]
        together = [place for place in range(len(points)) if place not in apart]
        network = _Network(self._runs.compile[run](observed(source, self._inside, together)))
        shorter = {place: _Network(self._runs.compile[run](up_to(source, self._inside, place))) for place in apart}

        def read(sample: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Values]:
            found = network(sample)
            values = dict(zip(together, found[count:], strict=True))
            values |= {place: each(sample)[0] for place, each in shorter.items()}
            return found[:count], [values[place] for place in range(len(points))]

        return read

    def _float_reader(self) -> Callable[[Sequence[np.ndarray]], tuple[list[np.ndarray], Values]]:
        model = self._runs.original.clone()
        count = len(model.outputs)
        matches = [counterpart(point, model) for point in self._cut.points]
        model.add_results([opset1.result(match[0]) for match in matches if match])
        network = _Network(self._runs.compile[FLOAT](model))

        def read(sample: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Values]:
            found = network(sample)
            more = iter(found[count:])
            return found[:count], [next(more) * match[1] if match else None for match in matches]

        return read

    def results(self) -> tuple[LayerErrors, ...]:
        """The layers, the worst first."""
        found = []
        for segment, local, cumulative in zip(self._cut.segments, self._local, self._cumulative, strict=True):
            named = segment.layers or segment.quantized or [segment.end.get_node()]
            found.append(
                LayerErrors(
                    name=", ".join(node.get_friendly_name() for node in named),
                    type=named[0].get_type_name(),
                    operations=tuple(node.get_friendly_name() for node in segment.quantized),
                    local={error: noise.sqnr for error, noise in local.items()},
                    cumulative={error: noise.sqnr for error, noise in cumulative.items()},
                )
            )
        first = _first(found)
        return tuple(sorted(found, key=lambda layer: layer.local.get(first, math.inf)))


def fused(model: Model, layers: ExecutionTypes) -> tuple[set[str], set[str]]:
    """What a compiled model does not store, by the names in its ``layers``: FakeQuantize operations that are computed
    in one kernel with what follows, and tensors that such a kernel adds its result to.
    """
    inside: set[str] = set()
    overwritten: set[str] = set()
    weighted = {node.get_friendly_name() for node in model.get_ops() if node.get_type_name() in WEIGHTED}
    kernels = [{name.removesuffix("_original") for name in layer.original_names} for layer in layers]
    # a Subgraph of several products, which the CPU plugin makes of small ones, rounds between them as layers do
    kernels = [names for names in kernels if len(names & weighted) < 2]
    for node in model.get_ops():
        name, kind = node.get_friendly_name(), node.get_type_name()
        if kind not in ("FakeQuantize", "Add") or is_constant_path(node):
            continue
        kernel = next((names for names in kernels if name in names), set())
        if kind == "FakeQuantize":
            if any(target.get_node().get_friendly_name() in kernel for target in node.output(0).get_target_inputs()):
                inside.add(name)
        else:
            summands = {value.get_node().get_friendly_name() for value in node.input_values()}
            if summands & kernel:
                overwritten |= summands - kernel
    return inside, overwritten


def counterpart(value: Output, model: Model) -> tuple[Output, np.ndarray | float] | None:
    """Where the float ``model`` has a value of the quantized one, and the factor that belongs to it; None: nowhere.

    See *Matching* at the top of the file.
    """
    others = {node.get_friendly_name(): node for node in model.get_ops()}
    factor: np.ndarray | float = 1.0
    while True:
        node = value.get_node()
        other = others.get(node.get_friendly_name())
        if other is not None:
            found = other.output(value.get_index()) if value.get_index() < other.get_output_size() else None
            fits = found is not None and found.get_partial_shape().compatible(value.get_partial_shape())
            return (found, factor) if fits else None
        read = [source for source in node.input_values() if not is_constant_path(source.get_node())]
        kind = node.get_type_name()
        if len(read) != 1 or kind not in ("FakeQuantize", "Add", "Multiply"):
            return None
        if kind == "Multiply":
            constant = next(constant_above(source) for source in node.input_values() if source not in read)
            if constant is None:
                return None
            factor = factor * constant
        value = read[0]
