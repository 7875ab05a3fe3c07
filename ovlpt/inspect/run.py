"""The main job: transform, compile, infer, and say what ran in int8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from ovlpt import data, plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import ExecutionTypes, execution_types, transform
from ovlpt.device.compile import default_precision, inference_precision, lpt_properties
from ovlpt.device.execution_types import last_line
from ovlpt.device.loading import compile_given, read_float, read_quantized
from ovlpt.device.properties import F32, LATENCY
from ovlpt.device.states import anew
from ovlpt.inspect.float_model import simulate, without_fake_quantize
from ovlpt.inspect.inputs import load_inputs, random_inputs
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies
from ovlpt.openvino_api import CompiledModel, Core, Model
from ovlpt.own_transformations import knows_own_operations

_PARTS = 5  # of the runs, for the interval: neighbours resemble each other more than the first and the last
_IN_F32 = {**LATENCY, **F32}
OVLPT, PLUGIN, FLOAT, SIMULATION = "ovlpt", "plugin's own LPT", "float", "FakeQuantize simulation"


@dataclass(frozen=True)
class Run:
    """What `run` found. Latencies are medians, in milliseconds, of alternating runs; there are none where times mean nothing."""

    model: str
    device: str
    layers: ExecutionTypes
    latencies: dict[str, float]
    ratios: dict[str, float]  # median paired ratio ovlpt / other; below 1: ovlpt is faster
    intervals: dict[str, tuple[float, float]]  # of the ratios, 95 %: of these compiled models, each compiled once
    difference: float | None  # largest relative difference of an output from the plugin's own LPT, in f32
    accuracy: dict[str, float] | None  # of the bundled model on its held-out images
    precision: str = "f32"  # in which floats were computed: what the device does by default
    without_stock: str = ""  # why the plugin with its own LPT cannot compile the model

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "model": self.model,
            "device": self.device,
            "layers": [{**asdict(layer), "is_int8": layer.is_int8} for layer in self.layers],
            "summary": {
                kind: {"total": total, "int8": low, "float": total - low}
                for kind, (total, low) in self.layers.summary().items()
            },
            "int8_time_share": self.layers.int8_time_share if self.latencies else None,
            "latency_ms": self.latencies,
            "latency_ratio": self.ratios,
            "latency_ratio_interval_95": {name: list(interval) for name, interval in self.intervals.items()},
            "largest_relative_difference": self.difference,
            "without_stock": self.without_stock,
            "accuracy": self.accuracy,
            "precision": self.precision,
        }


@other_names(plugin="config", device_name="device")
@knows_own_operations
def run(
    model: str | Path | Model | None = None,
    device: str = "CPU",
    inputs: str | Path | None = None,
    float_model: str | Path | Model | None = None,
    core: Core | None = None,
    config: PluginConfig | None = None,
    virtual: str | None = None,
) -> Run:
    """Run a quantized model with ovlpt, with the plugin's own LPT, in float, and as a FakeQuantize simulation.

    Floats are computed in the device's own type, as a user would run it, but for the simulation; where that is not f32, ovlpt
    and the float network run in f32 as well, and outputs are compared in f32. Executed virtual GPUs run in f32.
    Without ``model``: the bundled digits network, with its accuracy. ``inputs``: an ``.npz``; by default random.
    ``float_model``: the network before quantization; without one, the quantized network with FakeQuantize bypassed.
    ``config``: settings other than the device's own. ``virtual``: the virtual GPU that this process has loaded
    (`ovlpt.device.virtual_gpu`), to execute; it has no latencies.
    Raises `InputError` for anything unusable.
    """
    core = core or Core()
    bundled = model is None
    if bundled:
        model, float_model = data.digits(), data.digits_float()
    source = read_quantized(model, core)
    config = plugin_config.settings_of(core, device, config)
    arrays = (
        load_inputs(inputs, source)
        if inputs is not None
        else [data.heldout()[0][:1]]
        if bundled
        else random_inputs(source)
    )
    plain = read_float(float_model, core) if float_model is not None else without_fake_quantize(source)
    sides = _Sides(model, source, plain, device, config, core)
    precision = default_precision(core, device) if virtual is None else "f32"
    compiled = sides.compiled({} if virtual is None else F32) | {SIMULATION: simulate(source, core, device, _IN_F32)}
    exact, latencies = compiled, {}
    if precision != "f32":
        exact = sides.compiled(F32)
        compiled |= {f"{name} in f32": exact[name] for name in (OVLPT, FLOAT)}
    if virtual is None:
        layers = execution_types(sides.of_ovlpt({"PERF_COUNT": True}), arrays)
        requests = {name: each.create_infer_request() for name, each in compiled.items()}
        latencies = interleaved_latencies({name: anew(request, arrays) for name, request in requests.items()})
    else:
        layers = execution_types(compiled[OVLPT])
    ratios = {name: np.divide(latencies[OVLPT], latencies[name]) for name in latencies if name != OVLPT}
    return Run(
        model="bundled digits network"
        if bundled
        else str(model if not isinstance(model, Model) else source.get_friendly_name()),
        device=plugin_config.label(core, device),
        layers=layers,
        latencies={name: float(np.median(times)) for name, times in latencies.items()},
        ratios={name: float(np.median(each)) for name, each in ratios.items()},
        intervals={name: bootstrap_interval(np.array_split(each, _PARTS)) for name, each in ratios.items()},
        difference=relative_difference(exact[OVLPT](arrays).values(), exact[PLUGIN](arrays).values())
        if PLUGIN in exact
        else None,
        accuracy={name: _accuracy(compiled[name]) for name in (FLOAT, PLUGIN, OVLPT)} if bundled else None,
        precision=precision,
        without_stock=next(iter(sides.stock_errors), ""),
    )


@dataclass(frozen=True)
class _Sides:
    """A model as ovlpt, the plugin's own LPT and the float network run it, on a device."""

    model: str | Path | Model
    source: Model
    plain: Model
    device: str
    config: PluginConfig
    core: Core
    stock_errors: list[str] = field(default_factory=list)

    def compiled(self, properties: Mapping[str, object]) -> dict[str, CompiledModel]:
        hints = {**LATENCY, **properties}
        found = {OVLPT: self.of_ovlpt(properties)}
        try:
            found[PLUGIN] = self.core.compile_model(self.source, self.device, hints)
        except RuntimeError as error:  # it may be what ovlpt is for
            self.stock_errors.append(last_line(error))
        return found | {FLOAT: compile_given(self.plain, self.device, hints, self.core)}

    def of_ovlpt(self, properties: Mapping[str, object]) -> CompiledModel:
        hints = {**LATENCY, **properties}
        precision = inference_precision(self.core, plugin_config.physical_devices(self.core, self.device)[0], hints)
        ready = transform(self.model, self.device, self.config, core=self.core, serializable=False, precision=precision)
        return compile_given(ready, self.device, {**hints, **lpt_properties(ready, self.device)}, self.core)


def relative_difference(mine: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Largest difference of an element, relative to the largest magnitude of its output."""
    worst = 0.0
    for a, b in zip(mine, other, strict=True):
        if b.size:
            scale = float(np.abs(b).max()) or 1.0
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max()) / scale)
    return worst


def _accuracy(compiled: CompiledModel) -> float:
    images, labels = data.heldout()
    answers = [int(compiled([image[None]])[0].argmax()) for image in images]
    return float(np.mean(np.array(answers) == labels))
