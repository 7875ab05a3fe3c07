"""Pretrained networks on the GPU plugin's own kernels: task and numbers of stock and ovlpt, executed on a virtual GPU.

    python -m tools.gpu_numbers --real DIR                      # each network that `python -m tools.zoo real -o DIR` built
    python -m tools.gpu_numbers --real DIR recognizer --variant mixed --precision f32 --samples 3

The truth is the FakeQuantize simulation on the CPU, in f32, each sample at its own fixed sizes. Needs the extras ``gpu``
and ``real``. Building a network's kernels takes minutes the first time; built ones are kept.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ovlpt
from ovlpt.device import virtual_gpu
from ovlpt.device.properties import EXACT, UNCACHED
from ovlpt.openvino_api import Core
from tools.gpu_numbers import LOSS, int8_layers
from tools.real.__main__ import SUFFIXES
from tools.real.measure import distance, infer, simulated
from tools.real.networks import REAL
from tools.real.wheels import Wheels


@dataclass(frozen=True)
class Side:
    """Of stock or ovlpt: what the task gives, 0 to 1, dB against the simulation, layers in int8, and executed layers."""

    task: float
    decibels: float
    int8: int
    executed: int


@dataclass(frozen=True)
class Row:
    network: str
    variant: str
    precision: str
    task: float  # of the simulation
    stock: Side
    ovlpt: Side

    @property
    def is_miss(self) -> bool:
        """A task that is worse than both others, numbers, or fewer layers in int8; floats in f16 give no more than 40 dB."""
        worse = self.ovlpt.decibels < min(self.stock.decibels - LOSS, 40.0)
        return worse or self.ovlpt.task < min(self.stock.task, self.task) or self.ovlpt.int8 < self.stock.int8


def measured(path: Path, gpu: str, precision: str, count: int) -> Row:
    """In a process of its own, with the variables of `virtual_gpu.environment`."""
    virtual_gpu.load(gpu, execute=True)
    core, home = Core(), path.parent
    core.get_property("CPU", "FULL_DEVICE_NAME")
    with (home / "data.pickle").open("rb") as file:
        data = pickle.load(file)
    network, samples, model = REAL[home.name], data["evaluation"][:count], core.read_model(path)
    score = network.score(Wheels(home.parent / "wheels"))
    reference = infer(core.compile_model(str(home / "float.xml"), "CPU", EXACT), samples)
    expected, truth = simulated(core, model, samples), reference if network.truth_is_float else data["truth"][:count]
    properties, sides = {**UNCACHED, "INFERENCE_PRECISION_HINT": precision}, []
    for compiles in (core.compile_model, ovlpt.compile_model):
        compiled = compiles(model, "GPU", properties)
        outputs = infer(compiled, samples)
        layers = len(ovlpt.execution_types(compiled).executed)
        task = float(np.mean(score(outputs, truth)))
        sides.append(Side(task, distance(expected, outputs), int8_layers(compiled), layers))
    return Row(home.name, path.stem, precision, float(np.mean(score(expected, truth))), *sides)


def table(rows: list[Row]) -> str:
    """Markdown, misses first, then by what ovlpt gains."""
    lines = [
        "| network | variant | floats | task: simulation, stock, ovlpt | stock, dB | ovlpt, dB | int8 layers | layers | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (not row.is_miss, row.ovlpt.decibels - row.stock.decibels)):
        both = [f"{theirs} / {mine}" for theirs, mine in zip(_counts(row.stock), _counts(row.ovlpt), strict=True)]
        task = ", ".join(f"{each:.3f}" for each in (row.task, row.stock.task, row.ovlpt.task))
        lines.append(
            f"| {row.network} | {row.variant} | {row.precision} | {task} | {row.stock.decibels:.1f} | "
            f"{row.ovlpt.decibels:.1f} | {both[0]} | {both[1]} | {'**miss**' if row.is_miss else ''} |"
        )
    return "\n".join(lines)


def _counts(side: Side) -> tuple[int, int]:
    return side.int8, side.executed


def files(folder: Path, names: Collection[str], variant: str) -> list[Path]:
    """The quantized models of these networks, of all without names."""
    found = (path for suffix in SUFFIXES for path in folder.glob(f"*/{variant}{suffix}"))
    return sorted(path for path in found if path.parent.name in (names or REAL))
