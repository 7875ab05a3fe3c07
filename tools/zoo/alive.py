"""Whether a network is worth measuring on: its outputs must change with its inputs."""

from __future__ import annotations

import numpy as np
import openvino as ov

from ovlpt.openvino_api import Model

CALIBRATION = 16
ALIVE = 0.02  # of the output's length; those of the living networks here move by a tenth at least

Sample = dict[str, np.ndarray]


class Unusable(Exception):
    """The network was built, but measuring anything on it would be vain."""


def run(model: Model, samples: list[Sample]) -> list[np.ndarray]:
    """Every output of the model, stacked over the samples."""
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = [[np.array(value) for value in compiled(sample).values()] for sample in samples]
    return [np.stack(values) for values in zip(*results, strict=True)]


def distance(outputs: list[np.ndarray], others: list[np.ndarray]) -> list[float]:
    """|a - b| / |a| of every output."""
    pairs = zip(outputs, others, strict=True)
    return [float(np.linalg.norm(a - b) / np.linalg.norm(a)) for a, b in pairs]


def movement(outputs: list[np.ndarray]) -> float:
    """How much the outputs change from input to input: |y - mean y| / |y| of the stillest one."""
    return min(distance(outputs, [y.mean(0) for y in outputs]))


def report(name: str, model: Model, quantized: Model, samples: list[Sample]) -> str:
    """A line about a network before and after quantization.

    Raises `Unusable` if an output of either stays the same whatever the input.
    """
    moved = movement(run(model, samples)), movement(run(quantized, samples))
    if not min(moved) > ALIVE:  # also when it is not a number
        raise Unusable(f"its output moves by {moved[0]:.1e} (float) and {moved[1]:.1e} (quantized) of its length only")
    count = sum(node.get_type_name() == "FakeQuantize" for node in quantized.get_ops())
    return f"{name}: {count} FakeQuantize, output moves by {moved[0]:.2f} (float), {moved[1]:.2f} (quantized)"
