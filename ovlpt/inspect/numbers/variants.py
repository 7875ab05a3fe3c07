"""In which forms and with which settings a model is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import openvino

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device import this_cpu, transform
from ovlpt.device.compile import default_precision, inference_precision, lpt_properties
from ovlpt.device.properties import UNCACHED
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.numbers.runs import Compile
from ovlpt.openvino_api import CompiledModel, Core, Model, opset1

COMPILED = "compiled"  # a transformed model as `compile_model` compiles it
SAVED = "saved"  # as `transform` saves it
_STOCK, _NATIVE = "stock", "native"


@dataclass(frozen=True)
class Variant:
    """One way of running both sides. ``native``: the plugin's own transformations done by ovlpt, where it throws on them.
    ``floats``: the type of what is not quantized. ``simulation``: with the same settings; none for that of the comparison.
    """

    form: str
    setting: str
    ovlpt: Compile
    stock: Compile
    native: Compile | None = None
    floats: str = "f32"
    simulation: Compile | None = None
    saturates: bool = False  # kernels of int8, which cut sums of two products to 16 bits

    def __str__(self) -> str:
        return f"{self.form}, {self.setting}"


def simulation_with(properties: Mapping[str, object], device: str, core: Core) -> Compile:
    """Compiles the simulation of a model with these, floats and threads as they say."""
    return partial(simulate, core=core, device=device, properties=properties, in_f32=False)


class Variants:
    """The ways in which a transformed model is run. ``folder``: for the form that is saved."""

    def __init__(
        self, device: str, core: Core, config: PluginConfig | None, properties: Mapping[str, object], folder: Path
    ):
        self._device, self._core, self._config, self._folder = device, core, config, folder
        self._physical = plugin_config.physical_devices(core, device)[0]
        self._properties = {**properties, **UNCACHED}
        self._ready: dict[tuple[int, str, str], tuple[Model, Model]] = {}  # a model stays while its id is a key

    def __iter__(self) -> Iterator[Variant]:
        for name, more in self._settings():
            properties = {key: value for key, value in {**self._properties, **more}.items() if value is not None}
            floats = inference_precision(self._core, self._physical, properties)
            simulation = simulation_with(properties, self._physical, self._core)
            saturates = this_cpu.saturates(self._core, self._physical)
            for form in (COMPILED, SAVED):
                run = partial(partial, self._run, properties)
                yield Variant(form, name, run(form), run(_STOCK), run(_NATIVE), floats, simulation, saturates)

    def _run(self, properties: Mapping[str, object], form: str, model: Model) -> CompiledModel:
        if form == _STOCK:
            return self._core.compile_model(model, self._device, properties)
        ready = self._transformed(model, form, properties)
        return self._core.compile_model(ready, self._device, {**properties, **lpt_properties(ready, self._device)})

    def _transformed(self, model: Model, form: str, properties: Mapping[str, object]) -> Model:
        precision = inference_precision(self._core, self._physical, properties)
        key = id(model), form, precision
        if key not in self._ready:
            more = {"serializable": form == SAVED, "precision": precision, "native_only": form == _NATIVE}
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
