"""What the GPU plugin's own kernels compute, executed on a virtual GPU, against the FakeQuantize simulation in float64.

A simulation in f32 rounds, too: a plugin that sums in its order and rounds as it does would count as exact, and one
that is nearer to the network's real numbers as wrong.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import ovlpt
from ovlpt.device import LayerExecution, virtual_gpu
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.properties import UNCACHED
from ovlpt.graph.names import Made, is_dequantization
from ovlpt.inspect.check.layers import executed_precision
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import CompiledModel, Core, Model
from tests.gpu_networks import NETWORKS
from tests.numpy_model import run

PRECISIONS = ("f16", "f32")
LOSS = 1.0  # dB below stock that is a miss


@dataclass(frozen=True)
class Row:
    """One network in one precision of floats: ratio of signal to noise, and weighted layers in int8, with each."""

    name: str
    precision: str
    stock: float  # dB
    ovlpt: float
    stock_int8: int
    ovlpt_int8: int
    seconds: float

    @property
    def is_miss(self) -> bool:
        return not self.ovlpt >= self.stock - LOSS or self.ovlpt_int8 < self.stock_int8


def ratio(expected: list[np.ndarray], found: list[np.ndarray]) -> float:
    """In dB, of the worst output; 200 where they are equal, -inf where a number is missing."""
    worst = 200.0
    for wanted, got in zip(expected, found, strict=True):
        noise = float(((wanted.astype(np.float64) - got) ** 2).sum())
        if not np.isfinite(noise):
            return -np.inf
        if noise:
            worst = min(worst, 10 * float(np.log10((wanted.astype(np.float64) ** 2).sum() / noise)))
    return worst


def inputs_for(model: Model) -> list[np.ndarray]:
    """Normally distributed, seeded; 3 for a dynamic size (2 first), small whole numbers for integers."""
    generator, found = np.random.default_rng(0), []
    for port in model.inputs:
        shape = [
            size.get_length() if size.is_static else 2 if not axis else 6
            for axis, size in enumerate(port.partial_shape)
        ]
        kind = port.element_type.to_dtype()
        found.append(
            (generator.standard_normal(shape) if kind.kind == "f" else generator.integers(0, 2, shape)).astype(kind)
        )
    return found


def outputs(compiled: CompiledModel, inputs: list[np.ndarray]) -> list[np.ndarray]:
    return [np.array(value) for value in compiled(inputs).values()]


def truth(model: Model, inputs: list[np.ndarray], core: Core) -> list[np.ndarray]:
    """What the network says, in float64; in f32 where it has an operation that `tests.numpy_model` has not."""
    fixed = model.clone()
    fixed.reshape({port: value.shape for port, value in zip(fixed.inputs, inputs, strict=True)})
    named = {port.get_node().get_friendly_name(): value for port, value in zip(fixed.inputs, inputs, strict=True)}
    try:
        return run(fixed, named, np.float64)
    except NotImplementedError as error:
        print(f"compared in f32, since {error} is not computed in float64 here", flush=True)
        return outputs(simulate(fixed, core), inputs)


def int8_layers(compiled: CompiledModel) -> int:
    return sum(map(is_int8_layer, ovlpt.execution_types(compiled).executed))


def is_int8_layer(layer: LayerExecution) -> bool:
    """Of the model: a per-channel scale that runs as a convolution is none, and it is no loss where there is none."""
    is_scale = is_dequantization(layer.name) or layer.name.endswith(f"/{Made.GROUP_CONVOLUTION}")
    return layer.layer_type in WEIGHTED_LAYERS and not is_scale and executed_precision(layer) in ("u8", "i8")


def compared(names: tuple[str, ...], gpu: str, precisions: tuple[str, ...], path: str | None = None) -> list[Row]:
    """In a process of its own (`ovlpt.device.subprocess_call`), with the variables of `virtual_gpu.environment`."""
    virtual_gpu.load(gpu, execute=True)
    core, rows = Core(), []
    core.get_property("CPU", "FULL_DEVICE_NAME")
    for name in names:
        net = core.read_model(path) if path else NETWORKS[name]()
        inputs = inputs_for(net)
        expected = truth(net, inputs, core)
        for precision in precisions:
            properties, start = {**UNCACHED, "INFERENCE_PRECISION_HINT": precision}, time.perf_counter()
            stock = core.compile_model(net, "GPU", properties)
            mine = ovlpt.compile_model(net, "GPU", properties, core=core)
            numbers = [ratio(expected, outputs(each, inputs)) for each in (stock, mine)]
            low = [int8_layers(each) for each in (stock, mine)]
            seconds = time.perf_counter() - start
            rows.append(Row(name, precision, numbers[0], numbers[1], low[0], low[1], seconds))
    return rows


def table(rows: list[Row]) -> str:
    """Markdown, misses first, then by how far ovlpt is ahead."""
    lines = ["| network | floats | stock, dB | ovlpt, dB | int8 layers, stock / ovlpt | |", "|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: (not row.is_miss, row.ovlpt - row.stock, row.name)):
        mark = "**miss**" if row.is_miss else ""
        lines.append(
            f"| {row.name} | {row.precision} | {row.stock:.1f} | {row.ovlpt:.1f} | {row.stock_int8} / {row.ovlpt_int8} | {mark} |"
        )
    return "\n".join(lines)
