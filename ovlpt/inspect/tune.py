"""Which form of a layer is faster on this machine, measured.

A MatMul with weights gives the same numbers as a 1x1 convolution (`MatMulToConvolution`). Which of the two is faster
depends on the CPU and on the shape: with AVX2 alone the convolution takes half of the time; with VNNI it wins at 197
rows and loses at 196. So each distinct shape of a network is measured in both forms, as a network of that one layer between
two quantizations, with what follows it in the model. The two run in turn, in blocks that are compiled anew, and a form is
chosen if the interval of the paired ratios (bootstrap, 95 %) excludes 1; otherwise the CPU's default stays. Where the
interval is so wide that it tells nothing, as on a machine with other work, more blocks follow.

The measurements are kept in the user's cache folder, for this CPU, this OpenVINO version and the same properties; those
that tell nothing are not, and a warning says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import openvino

from ovlpt import plugin_config
from ovlpt.canonicalize.mat_mul_to_convolution import MatMulToConvolution, followers, quantizer
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.config import PluginConfig
from ovlpt.device import cache
from ovlpt.device.compile import compile_quantized, transform
from ovlpt.device.loading import read_quantized
from ovlpt.device.model_cache import machine
from ovlpt.device.properties import UNCACHED
from ovlpt.errors import warn
from ovlpt.files import write_text
from ovlpt.graph.constants import constant, same_operation
from ovlpt.graph.mat_mul import sizes_by_weights
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies
from ovlpt.openvino_api import Core, Manager, Model, Node, Output, Type, opset1
from ovlpt.trace import InputError, Outcome, Trace

BLOCKS = 3  # compilations of each form: a kernel's memory may lie well or badly
MOST_BLOCKS = 6  # where the first ones tell nothing
UNCLEAR = 1.2  # of the upper end of an interval around 1 to the lower one, from which on it tells nothing
SECONDS = 0.2  # of measurement in each block

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Measured:
    """A MatMul of one shape, as a 1x1 convolution against as it is."""

    rows: int
    inputs: int
    outputs: int
    ratio: float  # median of the paired latencies, convolution / MatMul
    low: float  # the interval of that
    high: float
    layers: int = 1  # of the model that have the shape
    remembered: bool = False  # from an earlier call

    @property
    def shape(self) -> Shape:
        return self.rows, self.inputs, self.outputs

    @property
    def is_unclear(self) -> bool:
        """Whether either form may be much faster, for all that was measured."""
        return self.low <= 1 <= self.high and self.high > UNCLEAR * self.low

    def as_convolution(self, otherwise: bool) -> bool:
        """The faster form; ``otherwise`` where none is."""
        return True if self.high < 1 else False if self.low > 1 else otherwise


@dataclass(frozen=True)
class Tuned:
    """``config``: the settings to transform with. ``measured``: the measurements that they rest on, the largest gain first."""

    config: PluginConfig
    measured: tuple[Measured, ...]


def tune(
    model: Model | str | Path,
    device: str = "CPU",
    config: PluginConfig | None = None,
    properties: Mapping[str, object] | None = None,
    core: Core | None = None,
    progress: Callable[[float], object] = lambda part: None,
) -> Tuned:
    """Settings in which each MatMul with weights of ``model`` has the form that is faster on this machine.

    ``config``: settings to start from, by default the device's own. ``properties``: those that the model will be compiled
    with; they affect the measurement. ``progress`` is called with the part that is done, 0 to 1. A layer with dynamic
    sizes keeps the default. Raises `InputError` for a device that is not this machine's CPU, and as `transform`.
    """
    core = core or Core()
    physical = plugin_config.physical_devices(core, device)
    if [plugin_config.kind(each) for each in physical] != ["CPU"]:
        raise InputError(
            f'tuning measures layers on the CPU of this machine, not on "{device}"; leave it out, or give "CPU"'
        )
    source = read_quantized(model, core)
    own = plugin_config.settings_of(core, device, config)
    default = own.params.mat_mul_as_convolution
    layers, chosen, measured = _layers(source, device, own, core), [], []
    memory = _Memory(core, physical[0], {**UNCACHED, **(properties or {})})
    for done, (shape, nodes) in enumerate(layers.items()):
        progress(done / len(layers))
        wins = default if isinstance(default, bool) else shape in default
        if shape[0] != -1:
            found = memory.get(shape) or memory.keep(_measure(shape, nodes[0], own, memory.properties, core))
            measured.append(replace(found, layers=len(nodes)))
            wins = found.as_convolution(wins)
        chosen += [shape] if wins else []
    progress(1.0)
    if unclear := sum(each.is_unclear for each in measured):
        warn(
            f"other work on this machine left {unclear} of {len(measured)} layers' measurements unclear; they keep the default "
            "form, and are measured again next time"
        )
    params = replace(own.params, mat_mul_as_convolution=tuple(sorted(chosen))) if layers else own.params
    name = core.get_property(physical[0], "FULL_DEVICE_NAME")
    return Tuned(replace(own, params=params, tuned_for=name), tuple(sorted(measured, key=lambda each: each.ratio)))


def _layers(source: Model, device: str, config: PluginConfig, core: Core) -> dict[Shape, list[Node]]:
    """The MatMuls that can be convolutions, by their shapes."""
    trace, everything = Trace(), replace(config, params=replace(config.params, mat_mul_as_convolution=True))
    transform(source, device, everything, lowered=False, core=core, trace=trace)
    names = {
        event.node
        for event in trace.events
        if event.transformation == MatMulToConvolution.__name__ and event.outcome == Outcome.TRANSFORMED
    }
    work, manager = source.clone(), Manager()
    manager.register_pass(CommonOptimizations(plugin_config.kernels(device)))
    manager.run_passes(work)
    layers: dict[Shape, list[Node]] = {}
    for node in work.get_ordered_ops():
        if node.get_type_name() == "MatMul" and node.get_friendly_name() in names and (sizes := sizes_by_weights(node)):
            layers.setdefault(sizes, []).append(node)
    return layers


def _measure(shape: Shape, node: Node, config: PluginConfig, properties: Mapping[str, object], core: Core) -> Measured:
    model, blocks = _alone(node), list[np.ndarray]()
    found: Measured | None = None
    data = np.random.default_rng(0).uniform(-1, 1, tuple(model.input(0).shape)).astype(np.float32)
    while found is None or (found.is_unclear and len(blocks) < MOST_BLOCKS):
        runs = {
            name: _run(compile_quantized(model, "CPU", properties, _with(config, form), core=core), data)
            for name, form in (("MatMul", False), ("Convolution", True))
        }
        latencies = interleaved_latencies(runs, SECONDS, most=None, least=20)
        blocks.append(np.array(latencies["Convolution"]) / np.array(latencies["MatMul"]))
        if len(blocks) >= BLOCKS:
            found = Measured(*shape, float(np.median(np.concatenate(blocks))), *bootstrap_interval(blocks))
    return found


def _with(config: PluginConfig, as_convolution: bool) -> PluginConfig:
    return replace(config, params=replace(config.params, mat_mul_as_convolution=as_convolution))


def _run(compiled, data: np.ndarray) -> Callable[[], object]:
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(data))
    return request.infer


def _alone(node: Node) -> Model:
    """A model of one MatMul with weights of its shape, quantized as in its own, up to the next quantization.

    What reads the next quantization has to be more than an output, or it would not become part of the layer.
    """
    shape = shape_of(node.input_value(0))
    data = opset1.parameter(list(shape), Type.f32)
    value = _with_constants(quantizer(node.input_value(0)), data.output(0))
    weights = np.random.default_rng(0).integers(-63, 64, shape_of(node.input_value(1)))  # no CPU saturates
    stored = opset1.convert(constant(weights, "i8"), "f32")
    flags = (node.get_attributes()[flag] for flag in ("transpose_a", "transpose_b"))
    layer = opset1.matmul(value, opset1.multiply(stored, constant(0.01)), *flags).output(0)
    for follower in followers(node, len(shape)):
        layer = _with_constants(follower, layer)
    return Model([opset1.result(opset1.absolute(layer))], [data], "layer")


def _with_constants(node: Node, data: Output) -> Output:
    """The operation on other data, with constants of the same values: one value of any rank as a scalar, since in the
    model the data may have another rank where it is quantized.
    """
    constants = map(folded_constant, node.input_values())
    inputs = [
        data if values is None else constant(values.reshape(()) if values.size == 1 else values).output(0)
        for values in constants
    ]
    return same_operation(node, inputs).output(0)


class _Memory:
    """What was measured before, in a file of the user's cache for this machine, OpenVINO and ``properties``."""

    def __init__(self, core: Core, device: str, properties: Mapping[str, object]):
        self.properties = dict(properties)
        facts = [
            machine(core, device),
            openvino.get_version(),
            sorted((key, str(value)) for key, value in properties.items()),
        ]
        self._name = f"{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}.json"
        self._known = {each.shape: each for each in self._read()}
        self._is_written = True  # until it cannot be

    @property
    def _path(self) -> Path:
        return cache.folder() / "tuning" / self._name

    def get(self, shape: Shape) -> Measured | None:
        return found if (found := self._known.get(shape)) is not None and not found.is_unclear else None

    def keep(self, found: Measured) -> Measured:
        """Warns once where the folder cannot be written to. What tells nothing is not kept."""
        if found.is_unclear:
            return found
        self._known[found.shape] = found
        if self._is_written:
            try:
                cache.own_folder(self._path.parent.parent)
                cache.own_folder(self._path.parent)
                write_text(self._path, json.dumps([asdict(each) for each in self._known.values()]))
            except InputError as error:
                self._is_written = False
                warn(f"the measurements were not saved: {error}")
        return found

    def _read(self) -> Iterator[Measured]:
        try:
            for entry in json.loads(self._path.read_text()):
                yield replace(Measured(**entry), layers=1, remembered=True)
        except (OSError, ValueError, TypeError):
            return  # nothing was measured here, or another version wrote it
