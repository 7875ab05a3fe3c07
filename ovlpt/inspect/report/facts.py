"""Everything that the report says, collected in one run of the model."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openvino

from ovlpt import plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import execution_types, transform, virtual_gpu
from ovlpt.device.compile import default_precision, inference_precision, lpt_properties
from ovlpt.device.loading import compile_given, read_float, read_quantized
from ovlpt.device.overflow import REMEDY, OverflowRisk
from ovlpt.device.properties import F32, LATENCY
from ovlpt.device.this_cpu import saturates
from ovlpt.files import csv_cell, write_text
from ovlpt.inspect.executed import Layers, layers_of_bodies
from ovlpt.inspect.explain import explanation
from ovlpt.inspect.explain.diagnosis import diagnosed
from ovlpt.inspect.explain.execution import as_executed
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.inspect.inputs import load_inputs, random_inputs
from ovlpt.inspect.report.borders import Border, borders
from ovlpt.inspect.report.causes import Bottleneck, Facts, Verdict, bottlenecks, memory_bound, verdict
from ovlpt.inspect.report.layers import Kind, Layer, read_layers, with_shapes
from ovlpt.inspect.report.overhead import Latencies, latencies
from ovlpt.openvino_api import Core, Model
from ovlpt.own_transformations import knows_own_operations
from ovlpt.trace import Trace

if TYPE_CHECKING:
    from ovlpt.device.hazards import Hazard

# Counters cost about 1% of a small network's latency, a second compilation far more time than the rest of the report.
# No type is asked for: what is not int8 runs in the device's own, as with the float network.
_PROPERTIES = {**LATENCY, "PERF_COUNT": True}
_RUNS = 50  # of the network, for the times of its layers


@dataclass(frozen=True)
class Report:
    """What `report` found. ``latency``, ``float_latency``: milliseconds of the whole model in int8 and in float; None
    where times mean nothing, and the times of layers are 0 then. ``in_f32``: both in f32, on a CPU that computes floats in
    another type by default.
    """

    model: str
    device: str
    openvino: str
    facts: Facts
    verdict: Verdict
    latency: float | None
    float_latency: float | None
    layers: Sequence[Layer]
    bottlenecks: Sequence[Bottleneck]
    borders: Sequence[Border]
    overflow_risks: Sequence[OverflowRisk]
    hazards: Sequence[Hazard]
    trace: Trace
    in_f32: tuple[float, float] | None = None

    @property
    def executed(self) -> list[Layer]:
        return [layer for layer in self.layers if layer.executed]

    def time_shares(self) -> dict[Kind, float]:
        """Part of the layers' time that each kind takes."""
        total = sum(layer.milliseconds for layer in self.executed) or 1.0
        return {kind: sum(layer.milliseconds for layer in self.executed if layer.kind is kind) / total for kind in Kind}

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "model": self.model,
            "device": self.device,
            "openvino": self.openvino,
            "verdict": self.verdict.to_json(),
            "saturates_16_bits": self.facts.saturates,
            "latency_ms": self.latency,
            "float_latency_ms": self.float_latency,
            "latency_ms_in_f32": self.in_f32[0] if self.in_f32 else None,
            "float_latency_ms_in_f32": self.in_f32[1] if self.in_f32 else None,
            "float_precision": self.facts.float_precision if self.facts.timed else None,
            "speed": self.facts.speed if self.facts.timed else None,
            "speed_interval_95": list(self.facts.speed_interval) if self.facts.timed else None,
            "overhead_ms": self.facts.overhead if self.facts.timed else None,
            "time_shares": {str(kind): share for kind, share in self.time_shares().items()}
            if self.facts.timed
            else None,
            "int8_multiply_accumulate_share": self.facts.int8_work_share,
            "multiply_accumulates": sum(layer.multiply_accumulates for layer in self.layers),
            "bottlenecks": [self._timed(each.to_json()) for each in self.bottlenecks],
            "borders": [self._timed(each.to_json()) for each in self.borders],
            "overflow_risks": [each.to_json() for each in self.overflow_risks],
            "overflow_remedy": REMEDY if self.overflow_risks else None,
            "hazards": [each.to_json() for each in self.hazards],
            "layers": [{"index": layer.index, **self._timed(layer.to_json())} for layer in self.layers],
            "trace": [
                {
                    "outcome": str(event.outcome),
                    "transformation": event.transformation,
                    "operation": event.operation,
                    "node": event.node,
                    "reason": event.reason.text if event.reason else None,
                }
                for event in self.trace
            ],
        }

    def _timed(self, row: dict[str, object]) -> dict[str, object]:
        """The row, its times None where they mean nothing."""
        times = () if self.facts.timed else ("milliseconds", "time_share")
        return {key: None if key in times else value for key, value in row.items()}

    def write_csv(self, path: str | Path) -> None:
        """One line per executed layer. Raises `InputError` for a file that cannot be written."""
        columns = ("name", "type", "kind", "exec_type", "precision", "output_precision", "milliseconds",
                   "multiply_accumulates", "reason", "root", "help")  # fmt: skip
        text = io.StringIO()
        rows = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
        rows.writeheader()
        for layer in self.executed:
            row = {**self._timed(layer.to_json()), "reason": layer.reason.text if layer.reason else None}
            rows.writerow({key: csv_cell(value) for key, value in row.items()})
        write_text(path, text.getvalue())


@other_names(plugin="config", device_name="device")
@knows_own_operations
def report(
    model: Model | str | Path,
    device: str = "CPU",
    inputs: str | Path | None = None,
    float_model: Model | str | Path | None = None,
    config: PluginConfig | None = None,
    native_only: bool = False,
    core: Core | None = None,
    seconds: float = 2.0,
    virtual: str | None = None,
) -> Report:
    """Transform, compile and run a quantized model, and find what keeps it from being faster.

    ``inputs``: an ``.npz``; by default random. ``float_model``: the network before quantization; by default the
    quantized network with FakeQuantize bypassed. ``seconds``: how long latencies are measured. ``virtual``: the
    virtual GPU that this process has loaded (`ovlpt.device.virtual_gpu`), which runs nothing and has no times. Raises
    `InputError` as `transform` does.
    """
    core = core or Core()
    source = read_quantized(model, core)
    own = plugin_config.settings_of(core, device, config, force=True)  # what has no int8 is reported to have none
    physical = plugin_config.physical_devices(core, device)[0]
    arrays = load_inputs(inputs, source) if inputs is not None else random_inputs(source)
    trace, hints = Trace(), _PROPERTIES if virtual is None else _virtual_hints(virtual)
    transformed = transform(model, device, own, lowered=False, native_only=native_only, core=core, trace=trace)
    precision = inference_precision(core, physical, hints)
    ready = transform(transformed, device, own, core=core, serializable=False, precision=precision)
    settings = {**hints, **lpt_properties(ready, device)}
    try:
        compiled = core.compile_model(ready, device, settings)
    except RuntimeError:
        compile_given(source, device, hints, core)
        raise
    ran = execution_types(compiled, None if virtual else arrays, runs=_RUNS)
    inner = layers_of_bodies(ready, ran, lambda each: core.compile_model(each, device, settings))
    graph = explanation(transformed, trace, native_only, source)
    found = diagnosed(as_executed(graph, Layers([*ran, *inner], ready)), source)
    layers = read_layers(compiled, ran, ready, with_shapes(ready, arrays), found)
    measured = None
    if virtual is None:
        plain = read_float(float_model, core) if float_model is not None else without_fake_quantize(source)
        both = {"int8": compiled, "float": compile_given(plain, device, _PROPERTIES, core)}
        if plugin_config.kind(physical) == "CPU" and default_precision(core, physical) != "f32":
            both["int8 in f32"] = core.compile_model(ready, device, {**settings, **F32})
            both["float in f32"] = compile_given(plain, device, {**_PROPERTIES, **F32}, core)
        measured = latencies(both, arrays, core, device, _PROPERTIES, seconds * len(both) / 2)
    facts, worst = _facts(core, device, physical, layers, measured), bottlenecks(layers, config is not None)
    return Report(
        model=str(model) if not isinstance(model, Model) else source.get_friendly_name(),
        device=plugin_config.label(core, device),
        openvino=openvino.__version__.split("-")[0],
        facts=facts,
        verdict=verdict(facts, worst, memory_bound(layers)),
        latency=measured.medians["int8"] if measured else None,
        float_latency=measured.medians["float"] if measured else None,
        layers=layers,
        bottlenecks=worst,
        borders=borders(layers),
        overflow_risks=found.overflow_risks,
        hazards=found.hazards,
        trace=trace,
        in_f32=_in_f32(measured),
    )


def _in_f32(measured: Latencies | None) -> tuple[float, float] | None:
    """The latencies in int8 and in float that were measured so."""
    medians = measured.medians if measured else {}
    return (medians["int8 in f32"], medians["float in f32"]) if "int8 in f32" in medians else None


def _virtual_hints(device: str) -> dict[str, object]:
    return _PROPERTIES | F32 | {"PERF_COUNT": False, **virtual_gpu.properties(device)}


def _facts(core: Core, device: str, physical: str, layers: Sequence[Layer], measured: Latencies | None) -> Facts:
    executed = [layer for layer in layers if layer.executed]
    work, time = sum(layer.multiply_accumulates for layer in layers), sum(layer.milliseconds for layer in layers)
    shares: dict[str, Any] = {
        "has_int8": "INT8" in list(core.get_property(physical, "OPTIMIZATION_CAPABILITIES")),
        "saturates": saturates(core, physical),
        "int8_time_share": sum(each.milliseconds for each in layers if each.kind is Kind.INT8) / time if time else 0.0,
        "int8_work_share": sum(each.int8_multiply_accumulates for each in layers) / work if work else 1.0,
        "layers": len(executed),
    }
    if measured is None:
        return Facts(device, milliseconds=0.0, overhead=0.0, timed=False, **shares)
    return Facts(
        device,
        milliseconds=measured.fastest["int8"],
        overhead=min(measured.overhead(len(executed)), measured.fastest["int8"]),
        latency=measured.medians["int8"],
        float_latency=measured.medians["float"],
        float_precision=default_precision(core, physical),
        speed=measured.speed,
        speed_interval=measured.speed_interval,
        **shares,
    )
