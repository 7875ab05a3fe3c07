"""Are the numbers right: outputs of ovlpt and of the plugin's own LPT against the FakeQuantize simulation.

Every network is run on the same inputs in f32 with each FakeQuantize computed as such: the simulation. With r its
output and v that of the network that is examined,

    SQNR = 10 log10( Σ r² / Σ (r - v)² ) dB,   over all elements of an output and all samples of one size

ovlpt fails where it is more than `BELOW` dB below the plugin's own LPT and below `ENOUGH` dB. A stricter rule is not
possible: a value at a tie falls to another level, and deep networks amplify that, so much that of two networks equally
near to the simulation either may by chance be 3 dB farther on a few samples. What fails on generated samples is
therefore judged by many more, those included: the mean of chance goes to 0, that of a fault stays, and the rule is the same.

**What is run.** Both forms of a transformed model: the one that `compile_model` compiles as it stands, and the one that
`transform` saves, from its file. Each with one thread and with more, on a CPU, where the plugin fuses other things, and
in the device's default precision as well where that is not f32. Dynamic sizes are run at several sizes.

**What has no SQNR.** An element that is not a finite number in the simulation has to be the same; where only the network
that is examined has one, or an output has another shape, it is wrong. Integers (the index of the largest value) have no
distance: where they differ, the numbers that they are made of are compared, by further outputs. So it is with outputs
whose size depends on data.

**Which layer.** `first_wrong_layer` reads the network after each FakeQuantize, as `compare` does, and names the first
layer after which the same rule fails. What goes wrong only while it is not read is looked for in networks that end
after fewer and fewer layers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openvino

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device import compile_quantized, execution_types, transform
from ovlpt.device.compile import default_precision, inference_precision, lpt_properties
from ovlpt.device.execution_types import last_line
from ovlpt.device.properties import UNCACHED
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import is_constant_path, is_real, precision_of
from ovlpt.graph.stamp import is_transformed
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.inputs import load_samples, open_sizes, output_names, sequence
from ovlpt.inspect.layer_errors import fused
from ovlpt.inspect.segments import Segments, observed, up_to
from ovlpt.openvino_api import CompiledModel, Core, Model, Output, PartialShape, opset1
from ovlpt.operations.families import REARRANGES
from ovlpt.own_transformations import knows_own_operations
from ovlpt.trace import InputError

BELOW, ENOUGH = 3.0, 40.0  # dB
SAMPLES, STEPS = 4, 3  # generated for each size; of a model with a state, each so many steps long
# Where `SAMPLES` fail. Of a deep network with ties, stock and ovlpt as near as each other, 4 fail by chance in 3 to 6 of
# 100 comparisons, 16 in less than 1, 32 in less than 1 of 1000.
SURE = 32
COMPILED, SAVED = "compiled", "saved"  # the forms of a transformed model
UNKNOWN = "numbers are not compared"
_REMEDY = "give inputs that fit with -i, or leave numbers out with --no-numbers"

Compile = Callable[[Model], CompiledModel]
Sample = list[list[np.ndarray]]  # steps, of one array per input


class Verdict(StrEnum):
    """How near ovlpt is to the simulation."""

    NEAR = "as near"  # as stock, or near enough
    NEARER = "nearer"  # than stock
    BELOW = "below"  # stock, by too much
    WRONG = "wrong"  # another shape, no finite number, other integers, or it does not run

    @property
    def fails(self) -> bool:
        return self in (Verdict.BELOW, Verdict.WRONG)


@dataclass(frozen=True, slots=True)
class OutputNumbers:
    """One output in one way of running. SQNR in dB against the simulation, infinite where nothing differs."""

    output: str
    form: str  # COMPILED or SAVED
    setting: str  # "f32", "f32, 1 thread", "bf16"
    inputs: str  # their shapes
    ovlpt: float
    stock: float | None  # None: the plugin does not run it
    verdict: Verdict
    text: str = ""  # what else there is to say

    def __str__(self) -> str:
        text = f'{self.ovlpt:.1f} dB against the simulation at the output "{self.output}"'
        return text if self.stock is None else f"{text}, the plugin's own LPT {self.stock:.1f} dB"

    @property
    def fails(self) -> bool:
        return self.verdict.fails

    def to_json(self) -> dict[str, object]:
        return {
            "output": self.output,
            "form": self.form,
            "setting": self.setting,
            "inputs": self.inputs,
            "ovlpt_db": _plain(self.ovlpt),
            "stock_db": None if self.stock is None else _plain(self.stock),
            "verdict": str(self.verdict),
            "text": self.text,
        }


@dataclass(frozen=True)
class Numbers:
    """What was compared. ``layer``: the first that goes wrong, "" where none does or it cannot be told. ``unknown``: the
    model has been transformed, and nothing tells whether its numbers are right.
    """

    records: tuple[OutputNumbers, ...]
    layer: str
    notes: tuple[str, ...]
    unknown: bool = False

    @property
    def ok(self) -> bool:
        return not self.unknown and not any(record.fails for record in self.records)

    @property
    def failures(self) -> list[OutputNumbers]:
        return [record for record in self.records if record.fails]

    @property
    def worst(self) -> OutputNumbers | None:
        """The record with the lowest SQNR; a failure first."""
        return min(self.records, key=lambda record: (not record.fails, record.ovlpt), default=None)

    def to_json(self) -> dict[str, object]:
        """Plain values for a file; an infinite SQNR is the text "inf"."""
        return {
            "ok": self.ok,
            "unknown": self.unknown,
            "records": [record.to_json() for record in self.records],
            "first_wrong_layer": self.layer,
            "notes": list(self.notes),
        }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# How far from the simulation


@dataclass
class Distance:
    """Energies of an output's values and of their error, over samples. ``floor``: differences up to it are none."""

    signal: float = 0.0
    noise: float = 0.0
    broken: str = ""  # what makes a distance meaningless
    floor: float = 0.0

    @classmethod
    def of(cls, reference: np.ndarray, value: np.ndarray) -> Distance:
        found = cls()
        found.add(reference, value)
        return found

    def add(self, reference: np.ndarray, value: np.ndarray) -> None:
        if reference.shape != value.shape:
            self.broken = self.broken or f"the shape is {list(value.shape)}, not {list(reference.shape)}"
        elif not np.issubdtype(reference.dtype, np.floating):
            self.signal += 1
            differing = int((reference != value).sum())
            self.noise += differing / max(reference.size, 1)
        else:
            finite = np.isfinite(reference)
            same = np.where(np.isnan(reference), np.isnan(value), reference == value)
            if not (np.isfinite(value) if finite.all() else np.where(finite, np.isfinite(value), same)).all():
                self.broken = self.broken or "some numbers are finite in only one of the two"
                return
            r, v = reference[finite].astype(np.float64), value[finite].astype(np.float64)
            self.signal += float((r**2).sum())
            difference = r - v
            self.noise += float((difference[np.abs(difference) > self.floor] ** 2).sum())

    @property
    def sqnr(self) -> float:
        if self.broken:
            return -math.inf
        if self.noise == 0:
            return math.inf
        if self.signal == 0:  # zeros that are zeros but for the rounding of floats
            return math.inf if self.noise < 1e-12 else -math.inf
        return 10 * math.log10(self.signal / self.noise)


def resolution(output: Output) -> float:
    """What no reader of an output can see: half a step of f32 at 1 in probabilities of a Sigmoid, all of which may be
    1e-9 where nothing is found, and no two networks agree on such numbers. 0 of other outputs.
    """
    node = output.get_node()
    while node.get_type_name() in REARRANGES | {"Convert"}:
        node = node.input_value(0).get_node()
    return 2.0**-24 if node.get_type_name() == "Sigmoid" else 0.0


def verdict(ovlpt: float, stock: float | None, broken: bool = False) -> Verdict:
    """By the rule of the gate. Without ``stock`` ovlpt has to be near enough by itself."""
    if broken:
        return Verdict.WRONG
    if ovlpt >= ENOUGH:
        return Verdict.NEARER if stock is not None and stock < min(ENOUGH, ovlpt - BELOW) else Verdict.NEAR
    if stock is None or ovlpt < stock - BELOW:
        return Verdict.BELOW
    return Verdict.NEARER if ovlpt > stock + BELOW else Verdict.NEAR


# What is run


@dataclass(frozen=True)
class Variant:
    """One way of running both sides."""

    form: str
    setting: str
    ovlpt: Compile
    stock: Compile

    def __str__(self) -> str:
        return f"{self.form}, {self.setting}"


@dataclass
class Case:
    """Samples of one size, and what the simulation makes of them: outputs by sample and step.

    ``draw``: generates the sample of a number; None where samples are given.
    """

    inputs: str
    samples: list[Sample]
    expected: list[list[list[np.ndarray]]] = field(default_factory=list)
    draw: Callable[[int], Sample] | None = None
    floors: Sequence[float] = ()  # the `resolution` of each output


class Variants:
    """The ways in which a transformed model is run. ``folder``: for the form that is saved."""

    def __init__(
        self, device: str, core: Core, config: PluginConfig | None, properties: Mapping[str, object], folder: Path
    ):
        self._device, self._core, self._config, self._folder = device, core, config, folder
        self._properties = {**properties, **UNCACHED}
        self._ready: dict[tuple[int, str, str], tuple[Model, Model]] = {}  # a model stays while its id is a key

    def __iter__(self) -> Iterator[Variant]:
        for name, more in self._settings():
            properties = {key: value for key, value in {**self._properties, **more}.items() if value is not None}
            for form in (COMPILED, SAVED):
                yield Variant(form, name, partial(self._run, form, properties), partial(self._run, None, properties))

    def _run(self, form: str | None, properties: Mapping[str, object], model: Model) -> CompiledModel:
        if form is None:
            return self._core.compile_model(model, self._device, properties)
        ready = self._transformed(model, form, properties)
        return self._core.compile_model(ready, self._device, {**properties, **lpt_properties(ready, self._device)})

    def _transformed(self, model: Model, form: str, properties: Mapping[str, object]) -> Model:
        physical = plugin_config.physical_devices(self._core, self._device)[0]
        precision = inference_precision(self._core, physical, properties)
        key = id(model), form, precision
        if key not in self._ready:
            more = {"serializable": form == SAVED, "precision": precision}
            ready = transform(model, self._device, self._config, core=self._core, **more)
            if form == SAVED:
                path = self._folder / f"{len(self._ready)}.xml"
                openvino.save_model(ready, path, compress_to_fp16=False)
                ready = self._core.read_model(path)
            self._ready[key] = model, ready
        return self._ready[key][1]

    def _settings(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Names of settings, and what they add to the properties; None takes one away."""
        precision = str(self._properties.get("INFERENCE_PRECISION_HINT", "default"))
        yield precision, {}
        if plugin_config.kind(self._device) != "CPU":
            return
        parameter = opset1.parameter([1], openvino.Type.f32)
        nothing = Model([opset1.result(parameter)], [parameter], "nothing")
        compiled = self._core.compile_model(nothing, self._device, self._properties)
        if int(compiled.get_property("INFERENCE_NUM_THREADS")) > 1:
            yield f"{precision}, 1 thread", {"INFERENCE_NUM_THREADS": 1}
        elif (os.cpu_count() or 1) > 1:
            yield f"{precision}, 2 threads", {"INFERENCE_NUM_THREADS": 2, "ENABLE_HYPER_THREADING": True}
        default = default_precision(self._core, self._device)
        if precision == "f32" and default != "f32":
            yield default, {"INFERENCE_PRECISION_HINT": default}


class _Network:
    """A compiled model and its one request: a sample in, the outputs of each step out, as arrays of their own."""

    def __init__(self, compiled: CompiledModel):
        self._compiled, self._size = compiled, len(compiled.outputs)
        self._request = compiled.create_infer_request()

    def __call__(self, sample: Sample) -> list[list[np.ndarray]]:
        if self._request.query_state():  # a reset cache of another batch is read wrongly by the CPU plugin
            self._request = self._compiled.create_infer_request()
        found = []
        for arrays in sample:
            self._request.infer(arrays)
            found.append([np.array(self._request.get_output_tensor(index).data) for index in range(self._size)])
        return found


def cases_of(model: Model, inputs: str | Path | Sequence[np.ndarray] | None) -> list[Case]:
    """Samples to compare on. ``inputs``: a file or arrays as for `load_samples`; generated of each input's type and
    range without. The samples of a model with a state are one sequence.

    Raises `InputError` for inputs that do not fit, and where none can be generated.
    """
    has_state = bool(model.get_sinks())
    if inputs is not None:
        samples, _ = load_samples(inputs, model)
        if not samples:
            raise InputError("the data holds no sample; give at least one")
        cases: dict[str, Case] = {}
        for sample in samples:
            case = cases.setdefault(label := _shapes(sample), Case(label, []))
            if has_state and case.samples:
                case.samples[0].append(sample)
            else:
                case.samples.append([sample])
        return list(cases.values())
    found = []
    steps = STEPS if has_state else 1
    for batch, length in open_sizes(model):
        draw = partial(_drawn, model, batch, length, steps)
        samples = [draw(number) for number in range(SAMPLES)]
        found.append(Case(_shapes(samples[0][0]), samples, draw=draw))
    return found


def _drawn(model: Model, batch: int, length: int, steps: int, number: int) -> Sample:
    return sequence(model, batch, length, range(number * steps, (number + 1) * steps))


def _shapes(arrays: Sequence[np.ndarray]) -> str:
    return " ".join(str(list(array.shape)).replace(" ", "") for array in arrays)


# The comparison


def compare_numbers(
    source: Model,
    variants: Iterable[Variant],
    simulate: Compile,
    cases: Sequence[Case],
    progress: Callable[[float], object] = lambda part: None,
) -> Numbers:
    """Each of ``variants`` against the simulation, on ``cases``; the layer of the first that fails is looked for.

    ``simulate``: compiles a model whose FakeQuantize operations are computed as such. ``progress`` is called now and then
    with the part that is done, 0 to 1. Raises `InputError` where the model runs on none of the cases.
    """
    variants = list(variants)
    notes: list[str] = []
    simulated = _simulated(source, cases, simulate, notes)
    if simulated == []:
        raise InputError(f"{notes[-1]}, and on no others, so its numbers cannot be compared; {_REMEDY}")
    cases = simulated or []
    names = output_names(source)
    records: list[OutputNumbers] = []
    failed: tuple[Variant, Case] | None = None
    stocks: dict[str, _Network | None] = {}  # by setting; None where the plugin does not compile the model
    for number, variant in enumerate(variants if cases else ()):
        progress((number + 1) / (len(variants) + 1))
        network, error = _started(variant.ovlpt, source)
        for case in cases:
            distances, why = _distances(network, case, error)
            near = distances is not None and all(distance.sqnr >= ENOUGH for distance in distances)
            others = None
            if number == 0 or not near:  # what is near needs nothing to be compared with
                if variant.setting not in stocks:
                    stocks[variant.setting], _ = _started(variant.stock, source)
                others, _ = _distances(stocks[variant.setting], case, "")
            if distances is None:
                if others is None:
                    notes.append(f"{variant}, inputs {case.inputs}: neither ovlpt nor the plugin runs it ({why})")
                    continue
                text = f"does not run: {why}"
                records.append(
                    OutputNumbers(names[0], *_place(variant, case), -math.inf, others[0].sqnr, Verdict.WRONG, text)
                )
                failed = failed or (variant, case)
                continue
            found = _records(source, variant, simulate, case, distances, others)
            if any(record.verdict is Verdict.BELOW for record in found):
                sides = (network, distances), (stocks.get(variant.setting), others)
                if wide := _with_more(source, simulate, case, sides):
                    found = _records(source, variant, simulate, wide, distances, others)
            records += found
            if failed is None and any(record.fails for record in found):
                failed = variant, case
    notes += _still(names, cases)
    layer = first_wrong_layer(source, failed[0], simulate, failed[1]) if failed else ""
    progress(1.0)
    return Numbers(tuple(records), layer, tuple(dict.fromkeys(notes)))


def _records(
    source: Model,
    variant: Variant,
    simulate: Compile,
    case: Case,
    distances: Sequence[Distance],
    others: Sequence[Distance] | None,
) -> list[OutputNumbers]:
    """What is said of each output, by the distances of ovlpt and of the plugin's own LPT on ``case``."""
    found = []
    for place, (name, distance) in enumerate(zip(output_names(source), distances, strict=True)):
        other = others[place] if others is not None else None
        sources = None
        if distance.broken or distance.noise:
            sources = _floats_above(source, place, case)
        made = None if sources is None else partial(_made_of, source, sources, variant, simulate, case)
        mine, stock, judged, text = _judged(distance, other, made)
        found.append(OutputNumbers(name, *_place(variant, case), mine, stock, judged, text))
    return found


def _with_more(
    source: Model,
    simulate: Compile,
    case: Case,
    sides: Sequence[tuple[_Network | None, Sequence[Distance] | None]],
) -> Case | None:
    """The case with `SURE` samples, whose distances are added to those of both ``sides``; None where there are no more."""
    if case.draw is None:
        return None
    wide = Case(case.inputs, [*case.samples, *map(case.draw, range(len(case.samples), SURE))])
    sizes = _sizes(source, case)
    try:
        simulated = _Network(simulate(at_sizes(source, dict(enumerate(sizes))) if sizes else source))
        for sample in wide.samples[len(case.samples) :]:
            expected = simulated(sample)
            for network, distances in sides:
                if network is not None and distances is not None:
                    _add(distances, expected, network(sample))
    except RuntimeError:  # the model does not take every sample
        return None
    return wide


def _judged(
    distance: Distance, other: Distance | None, made: Callable[[], tuple[float, float | None, str]] | None
) -> tuple[float, float | None, Verdict, str]:
    """SQNR of ovlpt and of the plugin's own LPT, the verdict, and what is wrong.

    ``made``: the same of the real numbers that an output without distance is made of, where there are such.
    """
    stock, text = None if other is None else other.sqnr, distance.broken
    mine, broken = distance.sqnr, bool(distance.broken)
    if made is not None:
        if mine < (math.inf if stock is None else stock):
            mine, stock, text = made()
            broken = math.isnan(mine)
            mine = -math.inf if broken else mine
        else:
            mine, broken = stock, False
    if broken and other is not None and other.broken:
        broken, stock = False, -math.inf  # the plugin's own LPT does no better
        text = f"{text}, as with the plugin's own LPT"
    needed = stock is not None or mine < ENOUGH
    return mine, stock, verdict(mine, stock, broken) if needed else Verdict.NEAR, text


def _place(variant: Variant, case: Case) -> tuple[str, str, str]:
    return variant.form, variant.setting, case.inputs


def _simulated(source: Model, cases: Sequence[Case], simulate: Compile, notes: list[str]) -> list[Case] | None:
    """The cases at whose sizes the simulation runs, with what it makes of them; None where it does not compile.

    At fixed sizes where the model has them: with open ones the plugin takes per-channel constants wrongly at times, in
    the simulation, too.
    """
    network, error = _started(simulate, source)
    if network is None:
        notes.append(f"the simulation does not compile, and nothing can be compared with it: {error}")
        return None
    found: list[Case] = []
    fixed: dict[tuple, Any] = {(): network}
    floors = [resolution(result.input_value(0)) for result in source.get_results()]
    for case in cases:
        sizes = _sizes(source, case)
        try:
            network(case.samples[0])  # the model may not take what one of fixed sizes takes without asking
            if sizes not in fixed:
                fixed[sizes] = _started(simulate, at_sizes(source, dict(enumerate(sizes))))[0] or network
            expected = [fixed[sizes](sample) for sample in case.samples]
            found.append(replace(case, expected=expected, floors=floors))
        except RuntimeError as error:
            notes.append(f"the model does not run on inputs {case.inputs}: {last_line(error)}")
    return found


def _sizes(source: Model, case: Case) -> tuple[tuple[int, ...], ...]:
    """The shapes to fix the inputs of ``source`` at; none where it has no open ones, or the samples several."""
    shapes = {tuple(array.shape for array in step) for sample in case.samples for step in sample}
    return next(iter(shapes)) if source.is_dynamic() and len(shapes) == 1 else ()


def at_sizes(model: Model, shapes: Mapping[str | int, Sequence[int]]) -> Model:
    """A copy with inputs, by name or number, of these shapes; the model itself where it does not take them."""
    fixed = model.clone()
    try:
        fixed.reshape({name: PartialShape(list(shape)) for name, shape in shapes.items()})
    except RuntimeError:
        return model
    return fixed


def _started(compile_model: Compile, model: Model) -> tuple[_Network | None, str]:
    """The network, or why there is none."""
    try:
        return _Network(compile_model(model)), ""
    except RuntimeError as error:
        return None, last_line(error)


def _distances(network: _Network | None, case: Case, error: str) -> tuple[list[Distance] | None, str]:
    """How far each output is from the simulation; None, and why, where the network does not run."""
    if network is None:
        return None, error
    distances = [Distance(floor=floor) for floor in case.floors]
    try:
        for sample, expected in zip(case.samples, case.expected, strict=True):
            _add(distances, expected, network(sample))
    except RuntimeError as error:
        return None, last_line(error)
    return distances, ""


def _add(
    distances: Sequence[Distance], expected: Sequence[list[np.ndarray]], found: Sequence[list[np.ndarray]]
) -> None:
    """Add the outputs of all steps of one sample."""
    for wanted, values in zip(expected, found, strict=True):
        for distance, reference, value in zip(distances, wanted, values, strict=True):
            distance.add(reference, value)


def _still(names: Sequence[str], cases: Sequence[Case]) -> Iterator[str]:
    """Outputs that are the same number throughout, which proves little."""
    for place, name in enumerate(names):
        values = [step[place] for case in cases for sample in case.expected for step in sample]
        values = [array for array in values if array.size and np.issubdtype(array.dtype, np.floating)]
        if (
            sum(array.size for array in values) > 1
            and len({float(end) for a in values for end in (a.min(), a.max())}) == 1
        ):
            yield f'output "{name}" is {values[0].flat[0]:g} throughout: its comparison proves little; give inputs with -i'


# What has no distance


def _floats_above(source: Model, place: int, case: Case) -> list[tuple[str, int]] | None:
    """The real values that an output of integers, or of a size that data decide, is made of: by node and port.

    None for an output of real values in a shape that the inputs decide.
    """
    model = source.clone()
    with suppress(RuntimeError):  # then the shapes that are known have to do
        model.reshape({port: list(a.shape) for port, a in zip(model.inputs, case.samples[0][0], strict=True)})
    pending = [model.get_results()[place].input_value(0)]
    if _has_distance(pending[0]):
        return None
    found: dict[tuple[str, int], None] = {}
    seen = set()
    while pending:
        value = pending.pop()
        node, key = value.get_node(), (value.get_node().get_instance_id(), value.get_index())
        if key in seen or node.get_type_name() == "Parameter" or is_constant_path(node):
            continue
        seen.add(key)
        if _has_distance(value):
            found[node.get_friendly_name(), value.get_index()] = None
        else:
            pending += node.input_values()
    return list(found)


def _has_distance(value: Output) -> bool:
    return is_real(precision_of(value)) and value.get_partial_shape().is_static


def _made_of(
    source: Model, sources: Sequence[tuple[str, int]], variant: Variant, simulate: Compile, case: Case
) -> tuple[float, float | None, str]:
    """The lowest SQNR of the ``sources`` with ovlpt and with stock, and what to say of it; not a number for ovlpt where
    there are none, or it does not run.
    """
    if not sources:
        return math.nan, None, "differs, and is not computed from real numbers"
    shown = source.clone()
    nodes = {node.get_friendly_name(): node for node in shown.get_ops()}
    shown.add_results([opset1.result(nodes[name].output(port)) for name, port in sources])
    simulated = _simulated(shown, [case], simulate, [])
    if not simulated:
        return math.nan, None, "differs"
    found: list[float | None] = []
    for run in (variant.ovlpt, variant.stock):
        distances, _ = _distances(_started(run, shown)[0], simulated[0], "")
        found.append(None if distances is None else min(each.sqnr for each in distances[len(source.outputs) :]))
    return math.nan if found[0] is None else found[0], found[1], "compared by the real numbers that it is computed from"


# Which layer


def first_wrong_layer(source: Model, variant: Variant, simulate: Compile, case: Case) -> str:
    """The first layer after which the rule fails; "" where none does."""
    try:
        inside, _ = fused(source, execution_types(variant.ovlpt(source)))
    except RuntimeError:
        inside = set()
    cut = Segments(source, inside)
    points = cut.points
    places = [cut.place_of(segment.point) for segment in cut.segments]
    order = sorted(set(places), key=places.index)
    first = _first_failing(observed(source, inside, order), order, len(source.outputs), variant, simulate, case)
    if first is None:
        first = _first_ending(source, inside, order, variant, simulate, case)
    if first is None:
        return ""
    segment = cut.segments[places.index(first)]
    named = segment.layers or segment.quantized or [points[first].get_node()]
    return ", ".join(node.get_friendly_name() for node in named)


def _first_failing(
    shown: Model, order: Sequence[int], count: int, variant: Variant, simulate: Compile, case: Case
) -> int | None:
    """The first of the points that ``shown`` has as outputs, after ``count`` of its own, at which the rule fails."""
    simulated = _simulated(shown, [case], simulate, [])
    if not simulated:
        return None
    mine, _ = _distances(_started(variant.ovlpt, shown)[0], simulated[0], "")
    other, _ = _distances(_started(variant.stock, shown)[0], simulated[0], "")
    if mine is None:
        return None
    for number, place in enumerate(order):
        distance, stock = mine[count + number], None if other is None else other[count + number].sqnr
        if verdict(distance.sqnr, stock, bool(distance.broken)).fails:
            return place
    return None


def _first_ending(
    source: Model, inside: set[str], order: Sequence[int], variant: Variant, simulate: Compile, case: Case
) -> int | None:
    """The same, of networks that end at one point each; it is assumed that all go wrong from one of them on."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        ends = up_to(source, inside, order[middle])
        if _first_failing(ends, order[middle : middle + 1], 0, variant, simulate, case) is None:
            low = middle + 1
        else:
            high = middle
    return order[low] if low < len(order) else None


# The whole


@knows_own_operations
def numbers(
    source: Model,
    device: str,
    core: Core,
    config: PluginConfig | None = None,
    inputs: str | Path | Sequence[np.ndarray] | None = None,
    properties: Mapping[str, object] | None = None,
    progress: Callable[[float], object] = lambda part: None,
) -> Numbers:
    """Run ``source`` in every form and setting, and compare.

    ``inputs``: a file or arrays (see `load_samples`); generated without. ``properties``: of both sides' compilation.
    Raises `InputError` for unusable inputs, and where none can be generated. A model that has no numbers to compare has
    notes that say why.
    """
    if why := _without_numbers(source):
        return Numbers((), "", (f"{UNKNOWN}: {why}",), unknown=is_transformed(source))
    cases = cases_of(source, inputs)
    with TemporaryDirectory() as folder:
        ways = Variants(device, core, config, properties or {}, Path(folder))
        return compare_numbers(source, ways, simulator(device, core), cases, progress)


def _without_numbers(source: Model) -> str:
    """Why a model has no numbers to compare, "" where it has."""
    if is_transformed(source):
        return "the model is transformed already, and has no simulation; give the quantized model"
    if not any(node.get_type_name() == "FakeQuantize" for node in all_nodes(source)):
        return "it has no FakeQuantize, and passes unchanged"
    if any(precision_of(port) == "string" for port in source.outputs):
        return "an output is text"
    return ""


@knows_own_operations
def numbers_of(
    compiled: CompiledModel,
    source: Model,
    device: str,
    core: Core,
    config: PluginConfig | None,
    native_only: bool,
    inputs: Sequence[np.ndarray],
    properties: Mapping[str, object] | None,
) -> Numbers:
    """The same of what `compile_quantized` made of ``source`` with these settings, as it stands."""
    properties = {**(properties or {}), **UNCACHED}

    def run(model: Model) -> CompiledModel:
        if model is source:
            return compiled
        return compile_quantized(model, device, properties, config, native_only, core)

    variant = Variant(COMPILED, "as compiled", run, lambda model: core.compile_model(model, device, properties))
    return compare_numbers(source, [variant], simulator(device, core), cases_of(source, inputs))


def simulator(device: str, core: Core) -> Compile:
    """Compiles the simulation of a model."""
    physical = plugin_config.physical_devices(core, device)[0]
    return lambda model: simulate(model, core, physical)
