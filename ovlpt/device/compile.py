"""From a quantized model to a compiled one, with the plugin's own LPT off."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from ovlpt import plugin_config
from ovlpt.canonicalize import native as canonicalize_native
from ovlpt.canonicalize.four_bit_integers import FourBitIntegers
from ovlpt.canonicalize.large_offsets import LargeOffsets
from ovlpt.canonicalize.mat_mul_to_convolution import MatMulToConvolution
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.config import Params, PluginConfig
from ovlpt.device.known_sizes import fold_known_sizes
from ovlpt.device.loading import check_intervals, label_of, quantization_by, read_model
from ovlpt.device.lowering import PluginLowering
from ovlpt.device.lowering.float_types import keep_integer_sums
from ovlpt.device.lowering.floats import part_floats
from ovlpt.device.lowering.folding import fold_misread_weights, fold_restored_weights, fold_weights_beside_blocks
from ovlpt.device.lowering.guards import part_from_row
from ovlpt.device.model_cache import ModelCache, key_of
from ovlpt.device.properties import LPT_OFF, STATIC
from ovlpt.device.this_cpu import misreads_compressed_weights
from ovlpt.errors import InputError, warn
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import numbers_read_once
from ovlpt.graph.garbage import uncollected
from ovlpt.graph.recurrent import fold_parted_weights, has_quantized_weights
from ovlpt.graph.stamp import CPU, LOWERED, are_transformed, is_transformed, stamp, stamped
from ovlpt.layer_transformation import run_in_turn
from ovlpt.low_precision import MISREAD_FLOATS, LowPrecision, as_defined
from ovlpt.openvino_api import MARKS_TYPES, RELEASE, CompiledModel, Core, Manager, Model, Type
from ovlpt.own_transformations import knows_own_operations
from ovlpt.plugin_config.this_cpu import takes_signed_activations
from ovlpt.qdq_stripping import QDQStripping
from ovlpt.trace import Event, Outcome, Trace
from ovlpt.version import VERSION

_logger = logging.getLogger("ovlpt")
SLOW_MAT_MUL = "AVX2 without VNNI"  # a file with MatMuls as convolutions is for these
_OF_DEVICES = "DEVICE_PROPERTIES"


def lpt_properties(model: Model, device: str) -> dict[str, object]:
    """The compile property for a transformed model: the plugin's own LPT is off.

    The one exception is quantized recurrent layers on a CPU: the plugin forms them only while its LPT is on, which finds
    little else to do in a transformed model. AUTO, MULTI, HETERO and BATCH do not pass such a property on;
    there the plugin leaves its LPT off because the lowered model does not look quantized.

    Before OpenVINO 2025.2 a CPU is not to quantize data dynamically, either: beside weights that are stored signed or with a
    zero point, its kernels for AVX512-VNNI compute something else.
    """
    if plugin_config.is_virtual(device):
        return {}
    kind = plugin_config.kind(device)
    static = STATIC if kind == "CPU" and RELEASE < (2025, 2) else {}
    if kind == "CPU" and has_quantized_weights(all_nodes(model)):
        return {"LP_TRANSFORMS_MODE": "YES", **static}
    return {**LPT_OFF[kind], **static}


def default_precision(core: Core, device: str) -> str:
    """The type in which a device computes what is not quantized, without hints: "f32", "bf16", "f16"."""
    return core.get_property(_one_kind(core, device), "INFERENCE_PRECISION_HINT").get_type_name()


def float_types(core: Core, device: str = "CPU") -> tuple[str, ...]:
    """The types of floats that a comparison is made in: f32, and the device's default where that is another."""
    return tuple(dict.fromkeys(("f32", default_precision(core, device))))


def inference_precision(core: Core, device: str, properties: Mapping[str, object] | None = None) -> str:
    """Whether a plugin changes the types of a model to "f16" before it does anything else; "f32" where it does not.

    A GPU does so by default, and type-relaxed operations then have to report the new type. A CPU does so where the hint is
    f16, and the model has to be kept from it; for bf16 it changes types after its transformations.
    """
    is_gpu, properties = plugin_config.kind(device) == "GPU", _of_device(properties or {}, device)
    if "INFERENCE_PRECISION_HINT" not in properties and "ACCURACY" in str(properties.get("EXECUTION_MODE_HINT", "")):
        return "f32"
    try:
        hint = properties.get("INFERENCE_PRECISION_HINT") or core.get_property(device, "INFERENCE_PRECISION_HINT")
    except RuntimeError:
        return "f16" if is_gpu else "f32"  # no such device here: its default
    return "f16" if hint in (Type.f16, "f16") else "f32"


def _of_device(properties: Mapping[str, object], device: str) -> dict[str, object]:
    """With those among them that are given for one device."""
    own, kind = dict(properties), plugin_config.kind(device)
    for name in (_OF_DEVICES, f"{_OF_DEVICES}_{kind}"):
        given = properties.get(name)
        nested = given.get(kind) if isinstance(given, Mapping) and name == _OF_DEVICES else given
        own |= nested if isinstance(nested, Mapping) else {}
    return own


class NotQuantized(InputError):
    """The model has nothing that LPT could transform."""


@knows_own_operations
def transform(
    model: Model | str | Path,
    device: str = "CPU",
    config: PluginConfig | None = None,
    lowered: bool = True,
    native_only: bool = False,
    core: Core | None = None,
    trace: Trace | None = None,
    serializable: bool = True,
    precision: str | None = None,
    keeps_types: bool = True,
) -> Model:
    """A new model, transformed for ``device``: `ovlpt.transform` without its choice by measurement.

    ``keeps_types``: as `PluginLowering` has it. Raises as that.
    """
    core = core or Core()
    with uncollected(), numbers_read_once():
        return _transformed(
            model, device, config, lowered, native_only, core, trace, serializable, precision, keeps_types
        )


def _transformed(
    model: Model | str | Path,
    device: str,
    config: PluginConfig | None,
    lowered: bool,
    native_only: bool,
    core: Core,
    trace: Trace | None,
    serializable: bool,
    precision: str | None,
    keeps_types: bool,
) -> Model:
    own = plugin_config.settings_of(core, device, config)
    physical = _one_kind(core, device)
    source = read_model(model, core)
    label = label_of(model, source)
    work = source.clone() if isinstance(model, Model) else source
    trace = Trace() if trace is None else trace
    if is_given := not is_transformed(work):
        quantization = _checked_quantization(
            work, label, None if native_only else plugin_config.dropped_levels(physical)
        )
        floats = precision or inference_precision(core, physical)
        if quantization in _PASS_UNCHANGED:
            warn(f"{label} {_PASS_UNCHANGED[quantization]}")
            if not native_only:
                _mend_unchanged(work, physical, floats == "f16" or (MARKS_TYPES and keeps_types))
            stamp(work, quantization=quantization)  # a cache's key: stock's would be of another mode
            return work
        if not serializable and not native_only:
            fold_known_sizes(work)
        _run_passes(work, physical, own, native_only, trace, f"{label} for {device}", floats)
    elif made_for := _is_slow_here(work, physical, core):
        warn(
            f"{label} was transformed for a CPU of the kind {made_for}, with MatMuls as convolutions where they are faster "
            "there, and may be slower on this one than it need be; transform the quantized model again here"
        )
    if made := stamped(work, LOWERED):
        if made != plugin_config.kind(physical):
            raise InputError(
                f'{label} was transformed for {made}, not for "{device}"; transform the quantized model for it'
            )
    elif lowered:
        virtual = plugin_config.is_virtual(device)
        floats, faster = precision or inference_precision(core, physical), own.params.faster_kernels and not native_only
        lowering = PluginLowering(physical, None, serializable or virtual, floats, trace, faster)
        lowering.computes_in_f32, lowering.keeps_types = is_given, keeps_types or virtual
        _lower(work, lowering)
    return work


def _checked_quantization(model: Model, label: str, dropped: Container[int] | None) -> str:
    """`quantization_by` of a model that says nothing of a transformation. Warns as `check_intervals` does, unless ``dropped`` is
    None. Raises `InputError` where it was transformed all the same, or is not quantized.
    """
    nodes = all_nodes(model)
    quantizes = [node for node in nodes if node.get_type_name() == "FakeQuantize"]
    if are_transformed(quantizes):
        raise InputError(
            f"{label} is transformed already and no longer says how, as its runtime information is lost; give the quantized "
            "model that it was made from, or compile it with core.compile_model"
        )
    quantization = quantization_by(nodes)
    if quantization == "none":
        raise NotQuantized(
            f"{label} is not quantized: it has no FakeQuantize; quantize it first, with NNCF for instance"
        )
    if dropped is not None and quantization not in _PASS_UNCHANGED:
        check_intervals(quantizes, label, dropped)
    return quantization


def _mend_unchanged(model: Model, device: str, may_be_half: bool) -> None:
    """What the plugin computes wrongly of a model that passes unchanged; ``may_be_half``: it may be asked for floats in f16."""
    run_in_turn(model, (*MISREAD_FLOATS, FourBitIntegers, LargeOffsets))
    on_cpu = plugin_config.kind(device) == "CPU"
    for node in all_nodes(model):
        if node.get_type_name() in ("Convolution", "MatMul"):
            fold_misread_weights(node)
            if on_cpu:
                fold_restored_weights(node)
                if misreads_compressed_weights():
                    fold_weights_beside_blocks(node)
        if on_cpu:
            part_floats(node)
            if node.get_type_name() == "MatMul" and takes_signed_activations():
                part_from_row(node)
    if may_be_half and on_cpu:
        keep_integer_sums(model)


def _one_kind(core: Core, device: str) -> str:
    """The first of the physical devices that a name means. Raises `InputError` where they need different models."""
    devices = plugin_config.physical_devices(core, device)
    if len({plugin_config.kind(each) for each in devices}) > 1:
        raise InputError(f'device "{device}" combines plugins that need different models; name devices of one plugin')
    return devices[0]


def _run_passes(
    model: Model,
    device: str,
    config: PluginConfig,
    native_only: bool,
    trace: Trace,
    title: str,
    floats: str,
) -> None:
    """Common optimizations and `LowPrecision`, and what the model then says of itself; ``title``: for the log."""
    before, manager, on_cpu = len(trace), Manager(), plugin_config.kind(device) == "CPU"
    params = Params(native_only=native_only)
    passes, kernels = config.pass_config(), plugin_config.kernels(device, config, floats)
    if not native_only:  # before others: a zero point of 0 is dropped, and with it what shows a quantization
        as_defined(model, pass_config=passes, trace=trace)
    if levels := plugin_config.dropped_levels(device):
        manager.register_pass(QDQStripping(levels, need_weights_adjustment=floats == "f16", params=params))
    if on_cpu and native_only:
        manager.register_pass(canonicalize_native.BooleanMasks())
        fold_parted_weights(model)
    manager.register_pass(CommonOptimizations(kernels, config.transformations, as_defined=False, pass_config=passes))
    manager.register_pass(LowPrecision.from_config(config, native_only, trace, in_place=True))
    manager.run_passes(model)
    events = trace.events[before:]
    _log(f"{title}, settings {config.name}", events)
    facts = {"version": VERSION, "config": config.name, "openvino": ".".join(map(str, RELEASE))}
    if on_cpu:
        facts["cpu"] = config.tuned_for or _made_for(events)
    stamp(model, **facts)


def _lower(model: Model, lowering: PluginLowering) -> None:
    if lowering.precision != "f32":
        stamp(model, precision=lowering.precision)
    lowering.run_on_model(model)


def _log(title: str, events: Sequence[Event]) -> None:
    counts = Counter(str(event.outcome) for event in events)
    text = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    _logger.info("%s: %s", title, text or "nothing to transform")
    for event in events:
        _logger.debug("%s: %s %s by %s%s", event.node, event.operation, event.outcome, event.transformation,
                      f": {event.reason}" if event.reason else "")  # fmt: skip


def _made_for(events: Iterable[Event]) -> str:
    """The kind of CPU that a model is for after the ``events`` of its transformation."""
    transformed = {event.transformation for event in events if event.outcome == Outcome.TRANSFORMED}
    return SLOW_MAT_MUL if MatMulToConvolution.__name__ in transformed else "any"


def _is_slow_here(model: Model, device: str, core: Core) -> str:
    """The kind of CPU that the forms of the model's layers were chosen for, where that is not this one."""
    made_for = stamped(model, CPU) or "any"
    if plugin_config.kind(device) != "CPU" or made_for == "any":
        return ""
    if made_for == SLOW_MAT_MUL:
        return "" if plugin_config.this_cpu.multiplies_slowly() else made_for
    return "" if made_for == core.get_property(device, "FULL_DEVICE_NAME") else made_for


_PASS_UNCHANGED = {
    "dynamic": "is quantized dynamically, with scales that each inference computes from its data: it passes unchanged, and its "
    "products run in float; for int8 layers quantize the network statically, on samples, with NNCF or ONNX Runtime's "
    "quantize_static",
    "weights": "has compressed weights only and float activations: it passes unchanged, LPT has nothing to do",
    "f8": "is quantized to floats of 8 bits: it passes unchanged, LPT has rules for integers only",
}


def compile_quantized(
    model: Model | str | Path,
    device: str,
    properties: Mapping[str, object] | None = None,
    config: PluginConfig | None = None,
    native_only: bool = False,
    core: Core | None = None,
    cache_dir: str | Path | None = None,
    trace: Trace | None = None,
) -> CompiledModel:
    """Transform ``model`` and compile it: `ovlpt.compile_model`, which compiles what it cannot improve as it is.

    Raises as `transform`.
    """
    return _Compilation(model, device, properties or {}, config, native_only, core or Core(), cache_dir).run(trace)


@dataclass(frozen=True)
class _Compilation:
    """`compile_model` by way of the cache, if there is one."""

    model: Model | str | Path
    device: str
    properties: Mapping[str, object]
    config: PluginConfig | None
    native_only: bool
    core: Core
    cache_dir: str | Path | None

    def run(self, trace: Trace | None) -> CompiledModel:
        physical = plugin_config.physical_devices(self.core, self.device)[0]
        precision = inference_precision(self.core, physical, self.properties)
        cache = self._cache(physical, precision) if trace is None else None
        trace = Trace() if trace is None else trace

        def compile_transformed(transformed: Model | str, how: Mapping[str, object]) -> CompiledModel:
            with cache.alone() if cache else nullcontext():
                return self.core.compile_model(transformed, self.device, {**self.properties, **how})

        if cache and (compiled := cache.load(compile_transformed)):
            return compiled
        transformed = transform(
            self.model, self.device, self.config, native_only=self.native_only, core=self.core, trace=trace,
            serializable=cache is not None, precision=precision, keeps_types=cache is not None or self._hides_hints,
        )  # fmt: skip
        how = lpt_properties(transformed, self.device)
        # else it was transformed before, or needs not be
        if cache and any(event.outcome is not Outcome.LOWERED for event in trace):
            cache.keep(transformed, how)
            return cache.load(compile_transformed) or compile_transformed(transformed, how)
        return compile_transformed(transformed, how)

    @property
    def _hides_hints(self) -> bool:
        """Whether floats may be asked for in another type than `inference_precision` can tell."""
        return any(name.startswith(_OF_DEVICES) for name in self.properties)

    def _cache(self, physical: str, precision: str) -> ModelCache | None:
        if isinstance(self.model, Model) and is_transformed(self.model):
            return None
        try:
            folder = self._cache_folder(physical)
            if not folder:
                return None
            key = key_of(
                self.model, lambda path: read_model(path, self.core), self.core, self.device, self.config, folder,
                native_only=self.native_only, precision=precision,
                virtual=plugin_config.is_virtual(self.device),
            )  # fmt: skip
        except RuntimeError:
            return None  # there is no such device, as `transform` will say
        return ModelCache(folder, key) if key else None

    def _cache_folder(self, physical: str) -> str:
        """That of the call, else of its properties, else of the core; empty where there is none."""
        if self.cache_dir is not None:
            return str(self.cache_dir)
        if "CACHE_DIR" in self.properties:
            return str(self.properties["CACHE_DIR"])
        return str(self.core.get_property(physical, "CACHE_DIR"))
