"""The four runs that `compare` sets against each other: how each compiles a model, and the networks it infers with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device import compile_quantized
from ovlpt.device.loading import compile_given
from ovlpt.device.properties import EXACT, F32, LATENCY
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import CompiledModel, Core, Model
from ovlpt.trace import InputError

_logger = logging.getLogger("ovlpt")

FLOAT, FAKE_QUANTIZED, INT8, DEFAULT = "float", "fake-quantized", "int8", "default"
QUANTIZATION, TRANSFORMATION, FLOAT_PRECISION = "quantization", "transformation", "float precision"
ERRORS = {  # error: its reference, the run that is examined
    QUANTIZATION: (FLOAT, FAKE_QUANTIZED),
    TRANSFORMATION: (FAKE_QUANTIZED, INT8),
    FLOAT_PRECISION: (INT8, DEFAULT),
}


class Network:
    """A compiled model and its one request: inputs in, all outputs out in order, as arrays of their own."""

    def __init__(self, compiled: CompiledModel):
        self._request, self._size = compiled.create_infer_request(), len(compiled.outputs)

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        self._request.infer(inputs)
        return [np.array(self._request.get_output_tensor(index).data) for index in range(self._size)]


class Runs:
    """How each run compiles a model, and the networks without further outputs.

    ``threads``: of an inference on a CPU; None: the plugin's choice.
    """

    def __init__(
        self,
        source: Model,
        original: Model | None,
        device: str,
        core: Core,
        config: PluginConfig | None,
        threads: int | None = None,
    ):
        self.source, self.original, self.device = source, original, device
        hints = latency_hints(device, threads)
        self.compile: dict[str, Callable[[Model], CompiledModel]] = {
            FLOAT: lambda model: compile_given(model, device, {**hints, **EXACT}, core),
            FAKE_QUANTIZED: lambda model: simulate(model, core, device, hints),
            INT8: lambda model: compile_quantized(model, device, {**hints, **F32}, config, core=core),
            DEFAULT: lambda model: compile_quantized(model, device, hints, config, core=core),
        }
        models = {FLOAT: original, FAKE_QUANTIZED: source, INT8: source, DEFAULT: source}
        self.plain = {}
        for run, model in models.items():
            if model is not None:
                _logger.info("compiles the %s run", run)
                self.plain[run] = self.compile[run](model)
        self.float_precision = precision_of_floats(self.plain[DEFAULT], device)
        self.errors = [error for error, pair in ERRORS.items() if all(run in self.plain for run in pair)]

    @property
    def layer_errors(self) -> list[str]:
        """The errors that layers can have: a default run in f32 is the int8 run."""
        return [error for error in self.errors if error != FLOAT_PRECISION or self.float_precision != "f32"]


def latency_hints(device: str, threads: int | None) -> dict[str, object]:
    """Properties for one inference at a time. ``threads``: of it on a CPU, None for the plugin's choice."""
    if threads is None or plugin_config.kind(device) != "CPU":
        return dict(LATENCY)
    # pinned, the one thread of each process on a machine would be put on the same first core
    return {**LATENCY, "INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}


def precision_of_floats(compiled: CompiledModel, device: str) -> str:
    """The precision in which a transformed model computes what is not quantized: "f32", "bf16", "f16".

    On a CPU that is asked for f16 that is f32 (`ovlpt.device.lowering.float_types`).
    """
    asked = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    return "f32" if asked == "f16" and plugin_config.kind(device) == "CPU" else asked


def check_counterpart(source: Model, original: Model) -> None:
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
