"""What runs: the layers of compiled models, and the numbers of their outputs."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import openvino

from ovlpt import plugin_config
from ovlpt.choices import OVLPT, STOCK
from ovlpt.config import PluginConfig
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
from ovlpt.device.execution_types import last_line
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.loading import read_model
from ovlpt.device.lowering.links import only_reader
from ovlpt.device.lowering.rules import RULES
from ovlpt.device.properties import F32, LATENCY, UNCACHED
from ovlpt.device.virtual_gpu.half_sums import half_sums, program_texts
from ovlpt.fleet.models import settings_parcel
from ovlpt.inspect.check.layers import Difference, Kind, LayerPrecision, compare
from ovlpt.inspect.explain import explain
from ovlpt.inspect.inputs import random_inputs
from ovlpt.inspect.numbers import numbers as compare_numbers
from ovlpt.inspect.numbers.distance import Numbers
from ovlpt.openvino_api import Core, Model, Node
from ovlpt.operations import RECURRENT
from ovlpt.operations import WEIGHTED as _NOT_RECURRENT
from ovlpt.trace import InputError, OvlptError, Trace

# Floats of a CPU are f32 wherever the check runs, bf16 hardware or not; a GPU keeps its own f16, which decides fusions.
_PROPERTIES: dict[str, dict[str, object]] = {"CPU": {**LATENCY, **F32}, "GPU": LATENCY}
WEIGHTED = _NOT_RECURRENT.union(RECURRENT)
NO_STOCK = "the plugin with its own LPT cannot compile the model, so it has no layers to compare with"
_BETWEEN = ("Reorder", "Reshape", "Result")
_IN_FLOAT = frozenset(rule.name for rule in RULES if rule.in_float)
_FAR = 8  # operations between the products of an attention, at most


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
    in_float: Mapping[str, str] = field(
        default_factory=dict
    )  # operations that the plugin computes wrongly in int8: how

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
        for layer in {each.layer: None for each in self.against_stock() if each.kind == Kind.KEPT}:
            how = " and ".join(self._why_in_float(layer))
            yield f"{layer} runs in float, as the plugin computes it wrongly in int8: {how}"

    def against_stock(self) -> list[Difference]:
        """How ovlpt's weighted layers differ from the plugin's in being int8 or not; not at all where that has none."""
        if self.stock_error:
            return []
        stock, operations = self.weighted(STOCK), sum(kind in WEIGHTED for kind in self.operations.values())
        differences = [
            replace(each, kind=Kind.KEPT) if each.kind == Kind.LOST and self._why_in_float(each.layer) else each
            for each in compare(stock, self.weighted(OVLPT))
            if each.kind != Kind.CHANGED
        ]
        missing = [each for each in differences if each.kind == Kind.MISSING and not self._is_in_attention(each)]
        twice = max(len(stock) - operations, 0)  # layers that stock runs once for each of their readers
        return [each for each in differences if each.kind != Kind.MISSING or each in missing[twice:]]

    def _why_in_float(self, layer: str) -> set[str]:
        """How the plugin computes in int8 what this layer of ovlpt holds, where it does so wrongly."""
        held = (name for each in self.weighted(OVLPT) if each.name == layer for name in each.operations)
        return {self.in_float[name] for name in held if name in self.in_float}

    def _is_in_attention(self, difference: Difference) -> bool:
        """Whether a product without a layer is in an int8 kernel of a whole attention, which has the name of its second one
        alone, or of both: ovlpt fuses attentions that stock does not.
        """
        fused = (each for each in self.precisions(OVLPT) if each.is_low and each.layer_type not in WEIGHTED_LAYERS)
        held = {name for layer in fused for name in layer.operations} - self.float_inside
        return not held.isdisjoint((difference.layer, self.second_products.get(difference.layer, difference.layer)))


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
    trace = Trace()
    layers, texts, failed = _layers(
        model, source, device, variants, properties, config, core, inputs, virtual is not None, trace
    )
    in_float = {event.node: event.reason.text for event in trace if event.reason and event.transformation in _IN_FLOAT}
    operations = {node.get_friendly_name(): node.get_type_name() for node in source.get_ops()}
    compared, second = None, second_products(source)
    if numbers is not None:
        compared = compare_numbers(source, device, core, config, numbers.inputs, floats, progress)
    fused = layers.get(OVLPT, ()) if look_inside else ()
    inside = _float_inside(source, device, config, core, operations, fused)
    again, default = None, _other_default(core, device, precision) if in_default else None
    if default is not None:
        more = {**properties, "INFERENCE_PRECISION_HINT": default}
        found, _, error = _layers(model, source, device, variants, more, config, core, inputs, False, Trace())
        again = Executed(name, found, operations, None, (), inside, default, error, None, second, in_float)
    computed = str(properties.get("INFERENCE_PRECISION_HINT", ""))
    warnings = half_sums(texts, layers.get(OVLPT, ()))
    return Executed(name, layers, operations, compared, warnings, inside, computed, failed, again, second, in_float)


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
    trace: Trace,
) -> tuple[dict[str, ExecutionTypes], list[str], str]:
    """The layers of each variant, to ``watch`` them, the texts of a GPU's programs, and why the plugin with its own LPT has
    no layers where ovlpt has; to ``trace``, the events of ovlpt.
    """
    layers: dict[str, ExecutionTypes] = {}
    texts: list[str] = []
    for variant in variants:
        try:
            if variant == OVLPT:
                watched: AbstractContextManager[list[str]] = program_texts() if watch else nullcontext([])
                with watched as texts:
                    compiled = compile_quantized(model, device, properties, config, core=core, trace=trace)
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


def execute_anywhere(
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
