"""Does each layer run in the expected precision (of a list, of the plugin's own LPT, or of an earlier run), and
are the numbers right (`ovlpt.inspect.numbers`)?

A precision field alone can lie, so a layer counts as int8 if it reads u8 or i8 *and* its kernel's name says so.
Layers of two compiled models are the same layer if they hold the same operations of the model.
"""

from __future__ import annotations

import difflib
import functools
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import openvino

from ovlpt import plugin_config
from ovlpt.choices import EXPECTABLE, OVLPT, STOCK
from ovlpt.config import PluginConfig, other_names
from ovlpt.config_file import load_config
from ovlpt.device import (
    ExecutionTypes,
    LayerExecution,
    compile_quantized,
    execution_types,
    instruction_sets,
    subprocess_call,
    virtual_gpu,
)
from ovlpt.device.compile import default_precision
from ovlpt.device.counters import read_counters
from ovlpt.device.execution_types import last_line
from ovlpt.device.layer_types import COMPUTED_BY, WEIGHTED_LAYERS
from ovlpt.device.loading import read_model
from ovlpt.device.lowering.links import only_reader
from ovlpt.device.properties import F32, LATENCY, UNCACHED
from ovlpt.device.virtual_gpu.half_sums import half_sums, program_texts
from ovlpt.files import read_text
from ovlpt.fleet.models import settings_parcel
from ovlpt.graph.names import without_added
from ovlpt.inspect.explain import explain
from ovlpt.inspect.inputs import random_inputs
from ovlpt.inspect.numbers import UNKNOWN, Numbers
from ovlpt.inspect.numbers import numbers as compare_numbers
from ovlpt.openvino_api import Core, Model, Node
from ovlpt.operations import OPERATIONS, RECURRENT
from ovlpt.operations import WEIGHTED as _NOT_RECURRENT
from ovlpt.precisions import INT8
from ovlpt.trace import InputError, OvlptError

# Floats of a CPU are f32 wherever the check runs, bf16 hardware or not; a GPU keeps its own f16, which decides fusions.
_PROPERTIES: dict[str, dict[str, object]] = {"CPU": {**LATENCY, **F32}, "GPU": LATENCY}

WEIGHTED = _NOT_RECURRENT.union(RECURRENT)
NO_STOCK = "the plugin with its own LPT cannot compile the model, so it has no layers to compare with"
_FLOATS = ("f32", "f16", "bf16")
_BETWEEN = ("Reorder", "Reshape", "Result")
_FAR = 8  # operations between the products of an attention, at most


class Kind(StrEnum):
    """How a layer differs from what is expected."""

    LOST = "lost"  # int8 is wanted, and it runs in float
    MISSING = "missing"  # int8 is wanted, and no layer holds the operations
    CHANGED = "changed"  # another precision
    GAINED = "gained"  # float is wanted, and it runs in int8: never a failure


@dataclass(frozen=True, slots=True)
class LayerPrecision:
    """One executed layer, as far as it is compared."""

    name: str
    layer_type: str
    precision: str  # u8, i8 (only where the kernel is one too), f32, f16, bf16; "int8" where counters tell no more
    exec_type: str
    operations: tuple[str, ...]  # names of the model's operations that the layer holds

    @classmethod
    def of(cls, layer: LayerExecution, operations: Collection[str]) -> LayerPrecision:
        """``operations``: the names in the model; empty where there is no model."""
        names = dict.fromkeys(without_added(name) for name in (layer.name, *layer.original_names))
        held = tuple(name for name in names if not operations or name in operations)
        return cls(layer.name, layer.layer_type, executed_precision(layer), layer.exec_type, held)

    @property
    def is_low(self) -> bool:
        return self.precision in ("u8", "i8", "int8")


def executed_precision(layer: LayerExecution) -> str:
    """What a layer computes in, by its kernel's name first."""
    if layer.is_int8 and layer.precision in ("u8", "i8", ""):
        return layer.precision or "int8"
    kernel = layer.exec_type.lower().rsplit("_", 1)[-1]
    return next((each for each in (kernel, layer.precision) if each in _FLOATS), "unknown")


@dataclass(frozen=True, slots=True)
class Difference:
    """A layer that does not run as expected."""

    kind: Kind
    layer: str
    layer_type: str
    wanted: str  # precision
    found: str  # precision; "" where no layer was found
    exec_type: str
    setting: str = "f32"  # what floats were computed in

    @property
    def fails(self) -> bool:
        return self.kind != Kind.GAINED


@dataclass(frozen=True)
class Check:
    """What `check` found."""

    question: str  # "int8:Convolution,MatMul", "against the plugin's own LPT", "against base.json"; "" for none
    settings: Mapping[str, str | None]  # device, name, virtual, isa, openvino; all None for counters
    layers: ExecutionTypes
    compared: tuple[LayerPrecision, ...]  # the layers that the question is about
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    baseline: Mapping[str, object]  # this run as something to compare with: plain values for a file
    numbers: Numbers | None = None  # None: not compared
    precisions: tuple[str, ...] = ()  # of floats, in which the layers were compared
    without_stock: str = (
        ""  # why the plugin with its own LPT does not compile the model; "" where it does, or is not asked
    )

    @property
    def ok(self) -> bool:
        """Whether every layer runs as expected, and the numbers are right; a layer that runs in int8 beyond that is not a
        failure. Numbers of a transformed model, which cannot be compared, are not known to be right.
        """
        right = self.numbers is None or self.numbers.ok
        return right and not any(difference.fails for difference in self.differences)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "ok": self.ok,
            "question": self.question,
            "precisions": list(self.precisions),
            "without_stock": self.without_stock,
            **self.settings,
            "compared": [asdict(layer) for layer in self.compared],
            "differences": [asdict(difference) for difference in self.differences],
            "notes": list(self.notes),
            "numbers": None if self.numbers is None else self.numbers.to_json(),
        }


@other_names(plugin="config", device_name="device")
def check(
    model: Model | str | Path | None = None,
    device: str = "CPU",
    expect: str | Sequence[str] | None = None,
    against: str | None = None,
    baseline: str | Path | None = None,
    counters: str | Path | None = None,
    config: PluginConfig | str | Path | None = None,
    virtual: str | None = None,
    isa: str | None = None,
    core: Core | None = None,
    count: bool = False,
    numbers: bool = True,
    inputs: str | Path | Sequence[np.ndarray] | None = None,
    progress: Callable[[float], object] = lambda part: None,
    execute: bool = False,
    precision: str | None = None,
) -> Check:
    """Compile ``model`` with ovlpt and compare the precision of its layers with one of these:

    ``expect``: ``"int8:Convolution,MatMul"``, or several such texts: the precision of every layer of these operations.
    ``against="stock"``: what the plugin with its own LPT runs in int8, of convolutions, MatMuls and recurrent layers;
    where it cannot compile the model, a note says why.
    ``baseline``: a file with an earlier run (`Check.baseline`), of layers that compute. With none of them the layers
    are only read.

    ``counters``: check this report of benchmark_app (see `read_counters`); the model is then compiled only with the
    plugin's own LPT. ``virtual``: a GPU that this machine need not have (`ovlpt.device.virtual_gpu`; on XMX devices
    attention is not fused there); notes name kernels that keep sums of integers in half precision. ``isa``: limit the CPU
    to an instruction set (`ovlpt.device.instruction_sets`). Both run in a separate process, so ``config`` has to be the
    path of a file, or contain no functions of a script. ``count``: run on random inputs, for statuses and times. Floats
    are f32 on a CPU; if it uses another type for them by default, layers have to be in int8 with that type, too.

    ``numbers``: run ovlpt, the plugin's own LPT and the FakeQuantize simulation on the same ``inputs`` (a file or arrays,
    see `load_samples`; by default generated), and compare their outputs; there are none for counters, nor for a virtual
    GPU without ``execute``, which runs its kernels. This takes about six more compilations and some inferences.
    ``progress`` is called meanwhile with the part that is done, 0 to 1. ``precision``: the only type of floats to check,
    "f16", "bf16" or "f32".
    Raises `InputError` for anything unusable.
    """
    _check_question(
        {"expect": expect, "against": against, "baseline": baseline}, model is not None, counters is not None
    )
    wanted = _expectations(expect) if expect is not None else {}
    recorded = _read_baseline(baseline, device if counters is None else None) if baseline is not None else {}

    notes: list[str] = []
    variants = [OVLPT] * (counters is None) + [STOCK] * (against is not None)
    _check_execution(device, execute, virtual, precision)
    if execute:
        notes.append(virtual_gpu.NOTE)
    ask = _asked(inputs) if numbers else None
    if ask is not None and ((virtual is not None and not execute) or counters is not None):
        why = "a virtual GPU computes none without execute=True" if virtual is not None else "counters hold none"
        notes.append(f"{UNKNOWN}: {why}")
        ask = None
    executed = Executed("", {}, {})
    if variants:
        executed = _execute(
            model, device, variants, config, virtual, isa, core, count, notes, ask, progress, execute, precision,
            expect is not None,
        )  # fmt: skip
    notes += executed.warnings
    about = {"device": device, "name": executed.name, "virtual": virtual, "isa": isa}
    settings = {**about, "openvino": openvino.__version__}
    if counters is not None:
        executed = replace(executed, layers={**executed.layers, OVLPT: read_counters(counters)}, in_default=None)
        settings = dict.fromkeys(settings)
    found = executed.precisions(OVLPT)

    question, compared = "", found
    differences: Iterable[Difference] = ()
    if expect is not None:
        question = expect if isinstance(expect, str) else "; ".join(expect)
        compared, differences = _compare_expected(wanted, found, executed)
    elif against is not None:
        question = "against the plugin's own LPT"
        compared, differences = executed.weighted(OVLPT), executed.against_stock()
        notes += executed.about_stock()
    elif baseline is not None:
        question = f"against {baseline}"
        notes += _other_settings(recorded, settings) if counters is None else []
        differences = compare(recorded["layers"], found)
    differences = _with_default(list(differences), executed, wanted, against is not None)
    stored = {**settings, "layers": [asdict(layer) for layer in found]}
    answers = tuple(compared), tuple(differences), tuple(notes)
    return Check(
        question, settings, executed.layers[OVLPT], *answers, stored,
        executed.numbers, executed.computed_in, executed.without_stock,
    )  # fmt: skip


def _check_question(asked: Mapping[str, object], has_model: bool, has_counters: bool) -> None:
    """Raise `InputError` for more than one question, and for one that nothing given can answer."""
    names = [name for name, value in asked.items() if value is not None]
    if len(names) > 1:
        raise InputError(f"{' and '.join(names)} are two questions; ask one at a time")
    if asked["against"] not in (None, STOCK):
        raise InputError(
            f'cannot compare against "{asked["against"]}"; there is "{STOCK}", the plugin with its own LPT'
        )
    if not has_counters and not has_model:
        raise InputError("nothing to check: give a model, or a counters report of benchmark_app")
    if has_counters and asked["against"] and not has_model:
        raise InputError(f"counters are compared against {STOCK} with the model that they were recorded with; give it")


def _asked(inputs: str | Path | Sequence[np.ndarray] | None) -> Asked:
    """Numbers on these inputs; arrays as another process can have them."""
    if inputs is None or isinstance(inputs, (str, Path)):
        return Asked(inputs)
    return Asked([np.asarray(array) for array in inputs])


def _check_execution(device: str, execute: bool, virtual: str | None, precision: str | None) -> None:
    if execute and virtual is None:
        raise InputError("only the kernels of a virtual GPU can be executed this way; name a virtual GPU")
    floats = ("f16", "f32") if plugin_config.kind(device) == "GPU" else ("f16", "bf16", "f32")
    if precision is not None and precision not in floats:
        raise InputError(f'no precision "{precision}" of floats to check on {device}; there are {", ".join(floats)}')


# What runs


@dataclass(frozen=True)
class Executed:
    """Compiled models' layers, by variant (`OVLPT`, `STOCK`)."""

    name: str  # of the device: CPU (AMD EPYC)
    layers: dict[str, ExecutionTypes]
    operations: dict[str, str]  # of the model: name to type
    numbers: Numbers | None = None
    warnings: Sequence[str] = ()  # of the kernels' texts
    float_inside: frozenset[str] = frozenset()  # operations that a fused layer in int8 computes in float
    precision: str = ""  # of floats; "" where nothing was compiled, or it is the device's own
    stock_error: str = ""  # what the plugin with its own LPT says where it does not compile the model: it has no layers
    in_default: Executed | None = None  # the same with floats in the CPU's default type, where that is another
    second_products: Mapping[str, str] = field(default_factory=dict)  # of attentions, by the name of the first

    @property
    def without_stock(self) -> str:
        """Why the plugin with its own LPT does not compile the model; "" where it does, or is not asked."""
        return next((each.stock_error for each in (self, self.in_default) if each is not None and each.stock_error), "")

    @property
    def computed_in(self) -> tuple[str, ...]:
        """The types that floats were computed in."""
        return tuple(each.precision for each in (self, self.in_default) if each is not None and each.precision)

    def precisions(self, variant: str) -> list[LayerPrecision]:
        """The layers that compute; the Reorders and Reshapes between them are up to the plugin."""
        computing = (layer for layer in self.layers[variant] if layer.is_executed and layer.layer_type not in _BETWEEN)
        return [LayerPrecision.of(layer, self.operations) for layer in computing]

    def weighted(self, variant: str) -> list[LayerPrecision]:
        """The convolutions, MatMuls and recurrent layers."""
        return [layer for layer in self.precisions(variant) if layer.layer_type in WEIGHTED_LAYERS]

    def about_stock(self) -> Iterator[str]:
        """What to say of the plugin with its own LPT."""
        if self.without_stock:
            yield f"{NO_STOCK}: {self.without_stock}"
        elif len(found := self.weighted(OVLPT)) != len(stock := self.weighted(STOCK)):
            yield f"the plugin's own LPT has {len(stock)} such layers, ovlpt {len(found)}"

    def against_stock(self) -> list[Difference]:
        """How ovlpt's weighted layers differ from the plugin's in being int8 or not; not at all where that has none."""
        if self.stock_error:
            return []
        stock, operations = self.weighted(STOCK), sum(kind in WEIGHTED for kind in self.operations.values())
        differences = [each for each in compare(stock, self.weighted(OVLPT)) if each.kind != Kind.CHANGED]
        missing = [each for each in differences if each.kind == Kind.MISSING and not self._is_in_attention(each)]
        twice = max(len(stock) - operations, 0)  # layers that stock runs once for each of their readers
        return [each for each in differences if each.kind != Kind.MISSING or each in missing[twice:]]

    def _is_in_attention(self, difference: Difference) -> bool:
        """Whether a product without a layer is in an int8 kernel of a whole attention, which has the name of its second one
        alone: ovlpt fuses attentions that stock does not.
        """
        fused = (each for each in self.precisions(OVLPT) if each.is_low and each.layer_type not in WEIGHTED_LAYERS)
        held = {name for layer in fused for name in layer.operations}
        return self.second_products.get(difference.layer) in held


@dataclass(frozen=True)
class Asked:
    """That numbers are to be compared, and on what; None: generated."""

    inputs: str | Path | Sequence[np.ndarray] | None


def execute(
    model: Model | str | Path,
    device: str,
    variants: Sequence[str],
    config: PluginConfig | str | Path | None = None,
    virtual: str | None = None,
    core: Core | None = None,
    count: bool = False,
    numbers: Asked | None = None,
    progress: Callable[[float], object] = lambda part: None,
    precision: str | None = None,
    look_inside: bool = False,
    in_default: bool = False,
) -> Executed:
    """Compile ``model`` for each variant, in this process, and compare ``numbers`` where that is asked for.

    ``look_inside``: ask for each operation of a fused layer what it runs in, which may take one compilation more.
    ``in_default``: compile each variant once more where a CPU has another default type of floats than f32.
    """
    if isinstance(config, (str, Path)):
        config = load_config(config)
    core = core or Core()
    name = _full_name(core, device)
    floats = _PROPERTIES.get(plugin_config.kind(device), {}) | (
        {"INFERENCE_PRECISION_HINT": precision} if precision else {}
    )
    properties = (
        UNCACHED
        | floats
        | (virtual_gpu.properties(virtual) if virtual else {})
        | ({"PERF_COUNT": True} if count else {})
    )
    source = read_model(model, core)
    inputs = random_inputs(source) if count else None
    layers, texts, failed = _layers(
        model, source, device, variants, properties, config, core, inputs, virtual is not None
    )
    operations = {node.get_friendly_name(): node.get_type_name() for node in source.get_ops()}
    compared, second = None, second_products(source)
    if numbers is not None:
        compared = compare_numbers(source, device, core, config, numbers.inputs, floats, progress)
    fused = layers.get(OVLPT, ()) if look_inside else ()
    inside = _float_inside(source, device, config, core, operations, fused)
    again, default = None, _other_default(core, device, precision) if in_default else None
    if default is not None:
        more = {**properties, "INFERENCE_PRECISION_HINT": default}
        found, _, error = _layers(model, source, device, variants, more, config, core, inputs, False)
        again = Executed(name, found, operations, None, (), inside, default, error, None, second)
    computed = str(properties.get("INFERENCE_PRECISION_HINT", ""))
    warnings = half_sums(texts, layers.get(OVLPT, ()))
    return Executed(name, layers, operations, compared, warnings, inside, computed, failed, again, second)


def second_products(model: Model) -> dict[str, str]:
    """By the name of a MatMul that of the one which alone reads its result, a few operations further."""
    found = {}
    for first in model.get_ops():
        node: Node | None = first if first.get_type_name() == "MatMul" else None
        for _ in range(_FAR):
            node = only_reader(node) if node is not None else None
            if node is not None and node.get_type_name() == "MatMul":
                found[first.get_friendly_name()] = node.get_friendly_name()
                break
    return found


def _layers(
    model: Model | str | Path,
    source: Model,
    device: str,
    variants: Sequence[str],
    properties: Mapping[str, object],
    config: PluginConfig | None,
    core: Core,
    inputs: list[np.ndarray] | None,
    watch: bool,
) -> tuple[dict[str, ExecutionTypes], list[str], str]:
    """The layers of each variant, to ``watch`` them, the texts of a GPU's programs, and why the plugin with its own LPT has
    no layers where ovlpt has.
    """
    layers: dict[str, ExecutionTypes] = {}
    texts: list[str] = []
    for variant in variants:
        try:
            if variant == OVLPT:
                watched: AbstractContextManager[list[str]] = program_texts() if watch else nullcontext([])
                with watched as texts:
                    compiled = compile_quantized(model, device, properties, config, core=core)
            else:
                compiled = core.compile_model(source, device, properties)
        except RuntimeError as error:
            if variant == STOCK and OVLPT in layers:
                return layers, texts, last_line(error)
            raise OvlptError(f"{device} cannot compile the model ({variant}): {last_line(error)}") from error
        layers[variant] = execution_types(compiled, inputs)
    return layers, texts, ""


def _other_default(core: Core, device: str, precision: str | None) -> str | None:
    """What a CPU computes floats in by default, where that is not f32 and no ``precision`` is asked for."""
    if precision is not None or plugin_config.kind(device) != "CPU":
        return None
    default = default_precision(core, device)
    return default if default != "f32" else None


def _float_inside(
    model: Model,
    device: str,
    config: PluginConfig | None,
    core: Core,
    operations: Mapping[str, str],
    layers: Iterable[LayerExecution],
) -> frozenset[str]:
    """Weighted operations in float within layers of another type in int8: a fused attention may have one of each."""
    fused = [layer for layer in layers if layer.is_int8 and layer.layer_type not in WEIGHTED_LAYERS]
    held = {name for layer in fused for name in LayerPrecision.of(layer, operations).operations}
    if not any(operations[name] in WEIGHTED for name in held):
        return frozenset()
    return frozenset(answer.name for answer in explain(model, device, config, core=core) if answer.name in held)


def _execute(
    model: Model | str | Path,
    device: str,
    variants: Sequence[str],
    config: PluginConfig | str | Path | None,
    virtual: str | None,
    isa: str | None,
    core: Core | None,
    count: bool,
    notes: list[str],
    numbers: Asked | None,
    progress: Callable[[float], object],
    on_cpu: bool,
    precision: str | None,
    look_inside: bool,
) -> Executed:
    """`execute`, in a process of its own where one is needed."""
    if virtual is None and isa is None:
        given = core, count, numbers, progress, precision, look_inside
        return execute(model, device, variants, config, None, *given, in_default=True)
    kind = plugin_config.kind(device)
    if virtual is not None:
        virtual_gpu.check_device(kind)
    if isa is not None:
        instruction_sets.check_device(kind)
    settings_parcel(config)  # raises where another process cannot read them
    if virtual is not None:
        if count:
            raise InputError("a virtual GPU runs nothing and has no times; leave the counters out")
        arguments = {"virtual": virtual, "numbers": numbers, "precision": precision, "look_inside": look_inside}
        return virtual_gpu.call(virtual, on_cpu, execute, model, device, tuple(variants), config, **arguments)
    notes.append(str(instruction_sets.limits(isa)))
    with tempfile.TemporaryDirectory() as folder:
        path = str(model)
        if isinstance(model, Model):
            path = str(Path(folder, "model.xml"))
            openvino.save_model(model, path, compress_to_fp16=False)
        task = functools.partial(
            execute, count=count, numbers=numbers, precision=precision, look_inside=look_inside, in_default=True
        )
        environment = instruction_sets.environment(isa)
        executed, _ = subprocess_call.call(task, path, device, tuple(variants), config, environment=environment)
    return executed


def _full_name(core: Core, device: str) -> str:
    try:
        plugin_config.check_physical(core, device)
    except InputError as error:
        if plugin_config.kind(device) != "GPU":
            raise
        remedy = f"--virtual compiles for a GPU without having one: {', '.join(virtual_gpu.GPUS)}"
        raise InputError(f"{error}; {remedy}") from error
    name = plugin_config.label(core, device)
    if "INT8" not in core.get_property(device, "OPTIMIZATION_CAPABILITIES"):
        raise InputError(f"{name} computes nothing in int8, so there is nothing to check")
    return name


# What differs


def compare(wanted: Sequence[LayerPrecision], found: Sequence[LayerPrecision]) -> Iterator[Difference]:
    """The layers of ``found`` that run in a different precision from the same layers of ``wanted``.

    u8 and i8 are one precision here. A float layer that has no counterpart is not a difference: fusions move.
    """
    for layer, partner in pair(wanted, found):
        if partner is None:
            if layer.is_low:
                yield Difference(Kind.MISSING, layer.name, layer.layer_type, layer.precision, "", "")
        elif layer.is_low != partner.is_low or (not layer.is_low and layer.precision != partner.precision):
            kind = Kind.LOST if layer.is_low else Kind.GAINED if partner.is_low else Kind.CHANGED
            yield _difference(kind, layer.precision, partner)


def pair(
    wanted: Sequence[LayerPrecision], found: Sequence[LayerPrecision]
) -> list[tuple[LayerPrecision, LayerPrecision | None]]:
    """Each wanted layer with the found one that shares most operations with it; what is left over, by its order.

    The order is that of layers of one type, then of all weighted ones: a MatMul may run as a convolution. Where there are
    more of one than of the other, only what runs in int8 in both is paired: any of these stands for any.
    """
    partners: dict[int, LayerPrecision] = {}
    free = dict(enumerate(found))
    for _, _, at, other in sorted(
        _shared(wanted, found), key=lambda each: (*each[:2], -each[2], -each[3]), reverse=True
    ):
        if at not in partners and other in free:
            partners[at] = free.pop(other)
    kinds = {layer.layer_type for layer in wanted}
    for types in (*({kind} for kind in kinds), WEIGHTED_LAYERS):
        left = [at for at, layer in enumerate(wanted) if at not in partners and layer.layer_type in types]
        rest = [at for at, layer in free.items() if layer.layer_type in types]
        if len(left) == len(rest) or all(
            layer.is_low for layer in (*(wanted[at] for at in left), *map(free.get, rest))
        ):
            partners.update((at, free.pop(other)) for at, other in zip(left, rest, strict=False))
    return [(layer, partners.get(at)) for at, layer in enumerate(wanted)]


def _shared(wanted: Sequence[LayerPrecision], found: Sequence[LayerPrecision]) -> Iterator[tuple[bool, int, int, int]]:
    """Layers with common operations: whether they are of one type, how many operations, and both their places."""
    holders: dict[str, list[int]] = defaultdict(list)
    for at, layer in enumerate(found):
        for name in layer.operations:
            holders[name].append(at)
    for at, layer in enumerate(wanted):
        for other, count in Counter(other for name in layer.operations for other in holders[name]).items():
            yield found[other].layer_type == layer.layer_type, count, at, other


def _compare_expected(
    wanted: Mapping[str, str], found: Sequence[LayerPrecision], executed: Executed
) -> tuple[list[LayerPrecision], list[Difference]]:
    compared, differences = [], []
    for operation, precision in wanted.items():
        holders = [layer for layer in found if _holds(layer, operation, executed.operations)]
        if not holders:
            raise InputError(f"no executed layer holds a {operation}, so nothing can be expected of one")
        is_int8 = precision in ("int8", *INT8)
        for layer in holders:
            inside = [name for name in layer.operations if name in executed.float_inside]
            if is_int8 and any(executed.operations[name] == operation for name in inside):
                layer = replace(layer, precision="float")  # the kernel is of int8, as another operation inside
                differences.append(_difference(Kind.LOST, precision, layer))
            elif layer.precision != precision and layer.precision not in EXPECTABLE[precision]:
                kind = Kind.LOST if is_int8 and not layer.is_low else Kind.CHANGED
                differences.append(_difference(kind, precision, layer))
            compared.append(layer)
    return compared, differences


def _holds(layer: LayerPrecision, operation: str, operations: Mapping[str, str]) -> bool:
    """By the model's operations where the layer's names are known, else by the layer's type."""
    types = {operations[name] for name in layer.operations if name in operations}
    if operation in WEIGHTED and layer.layer_type in COMPUTED_BY[operation]:
        return operation in types or not types & WEIGHTED
    return operation in types or layer.layer_type in (operation, *COMPUTED_BY.get(operation, ()))


def _difference(kind: Kind, wanted: str, layer: LayerPrecision) -> Difference:
    return Difference(kind, layer.name, layer.layer_type, wanted, layer.precision, layer.exec_type)


# What is asked


def _with_default(
    differences: list[Difference], executed: Executed, wanted: Mapping[str, str], against: bool
) -> list[Difference]:
    """And what is to be int8 and is not with floats in the CPU's default type alone. What is to be a float is said of f32."""
    again = executed.in_default
    if again is None:
        return differences
    low = {operation: precision for operation, precision in wanted.items() if precision in ("int8", *INT8)}
    found = (
        _compare_expected(low, again.precisions(OVLPT), again)[1] if low else again.against_stock() if against else []
    )
    known = {each.layer for each in differences}
    more = (each for each in found if each.fails and each.layer not in known)
    return [*differences, *(replace(each, setting=again.precision) for each in more)]


def _expectations(texts: str | Sequence[str]) -> dict[str, str]:
    """Precision by operation, from ``"int8:Convolution,MatMul"``."""
    wanted = {}
    for text in [texts] if isinstance(texts, str) else texts:
        precision, colon, names = text.partition(":")
        if not colon or precision.strip() not in EXPECTABLE:
            raise InputError(
                f'cannot read the expectation "{text}"; write one of {", ".join(EXPECTABLE)}, '
                "a colon and operations: int8:Convolution,MatMul"
            )
        for name in filter(None, map(str.strip, names.split(","))):
            if name not in OPERATIONS:
                raise InputError(f'no operation "{name}" in the expectation "{text}"{_close_to(name)}')
            wanted[name] = precision.strip()
    if not wanted:
        raise InputError("the expectation names no operation: write int8:Convolution,MatMul")
    return wanted


def _close_to(name: str) -> str:
    known = {each.lower(): each for each in (*sorted(WEIGHTED), *OPERATIONS)}
    begun = [
        each for each in known if each.startswith(name.lower())
    ]  # Conv is short for Convolution, and close to Convert
    found = next((known[each] for each in begun or difflib.get_close_matches(name.lower(), known, 1)), None)
    return f"; did you mean {found}?" if found else "; docs/operations.md lists their names"


def _read_baseline(path: str | Path, device: str | None) -> dict[str, Any]:
    """A stored `Check.baseline`; ``device``: the one that it has to be of, None for any."""
    text = read_text(path, "a baseline, which ovlpt check MODEL --save-baseline FILE makes", "the baseline ")
    try:
        content = json.loads(text)
        content = dict(content.get("result", content))  # which stood alone in 0.1
        if not isinstance(content["layers"], list):
            raise TypeError("layers are a list")
        content["layers"] = [
            LayerPrecision(**{**layer, "operations": tuple(layer["operations"])}) for layer in content["layers"]
        ]
        if not all(isinstance(text, str) for layer in content["layers"] for text in _texts(layer)):
            raise TypeError("a layer is described by texts")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f'"{path}" is not a baseline; make one with ovlpt check MODEL --save-baseline FILE') from error
    if device is not None and content.get("device") != device:
        raise InputError(f'the baseline "{path}" is of the device "{content.get("device")}", not of "{device}"')
    return content


def _texts(layer: LayerPrecision) -> tuple[object, ...]:
    return (layer.name, layer.layer_type, layer.precision, layer.exec_type, *layer.operations)


def _other_settings(recorded: Mapping[str, object], settings: Mapping[str, str | None]) -> list[str]:
    """What sets a baseline apart from this run, where the layers can still be compared."""
    return [
        f"the baseline is of {key} {recorded.get(key)}, this run of {value}"
        for key, value in settings.items()
        if recorded.get(key) != value
    ]
