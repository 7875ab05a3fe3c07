"""From a torch module with random weights to a quantized IR that is alive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nncf
import numpy as np
import openvino as ov
import torch
from torch import Tensor, nn

from tools.ir import save_ir
from tools.zoo.networks import Network, Sample

CALIBRATION = 16
FAITHFUL = 1e-3  # float against float: rounding that a deep random network has amplified
ALIVE = 0.02  # of the output's length; those of the living networks here move by a tenth at least


class TensorsOnly(nn.Module):
    """The module with the tensors of its output as a plain tuple, which tracing can follow."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        output = self.module(*inputs)
        if isinstance(output, Tensor):
            return output
        values = output if isinstance(output, tuple) else output.to_tuple()
        return tuple(value for value in values if isinstance(value, Tensor))


def tensors(sample: Sample) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(array) for array in sample.values())


@torch.no_grad()
def estimate_batch_norm(module: nn.Module, samples: list[Sample]) -> None:
    """Set the running statistics of every BatchNorm to those of the samples, as one batch.

    With the statistics of initialization (mean 0, variance 1) a deep random network dies: its signal decays
    layer by layer until quantization rounds it to a constant.
    """
    module.eval()
    layers = [layer for layer in module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    if not layers:
        return
    for layer in layers:
        layer.train()
        layer.momentum = 1.0
    module(*(torch.cat(arrays) for arrays in zip(*map(tensors, samples), strict=True)))
    module.eval()


def convert(module: nn.Module, sample: Sample) -> ov.Model:
    """The module as a model with the static shapes and the input names of the sample."""
    shapes = [array.shape for array in sample.values()]
    model = ov.convert_model(module, example_input=tensors(sample), input=shapes)
    for value, name in zip(model.inputs, sample, strict=True):
        value.tensor.set_names({name})
        value.node.set_friendly_name(name)
    return model


def quantize(network: Network, model: ov.Model, samples: list[Sample]) -> ov.Model:
    return nncf.quantize(
        model,
        nncf.Dataset(samples),
        preset=nncf.QuantizationPreset.MIXED if network.mixed or network.transformer else None,
        model_type=nncf.ModelType.TRANSFORMER if network.transformer else None,
        subset_size=len(samples),
    )


def run(model: ov.Model, samples: list[Sample]) -> list[np.ndarray]:
    """Every output of the model, stacked over the samples."""
    compiled = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = [[np.array(value) for value in compiled(sample).values()] for sample in samples]
    return [np.stack(values) for values in zip(*results, strict=True)]


def distance(outputs: list[np.ndarray], others: list[np.ndarray]) -> list[float]:
    """|a - b| / |a| of every output."""
    pairs = zip(outputs, others, strict=True)
    return [float(np.linalg.norm(a - b) / np.linalg.norm(a)) for a, b in pairs]


def movement(outputs: list[np.ndarray]) -> float:
    """How much the outputs change from input to input: |y - mean y| / |y| of the stillest one."""
    return min(distance(outputs, [y.mean(0) for y in outputs]))


class Unusable(Exception):
    """The network was built, but measuring anything on it would be vain."""


def build(name: str, make: Callable[[], Network], folder: Path) -> str:
    """Write ``folder/name.xml`` (quantized) and ``folder/name_float.xml``; return a line about them.

    Raises `Unusable` if the converted model does not compute what the module computes, or if an output of
    either model stays the same whatever the input.
    """
    torch.manual_seed(0)
    nncf.set_log_level("ERROR")
    network, rng = make(), np.random.default_rng(0)
    samples = [network.sample(rng) for _ in range(CALIBRATION)]
    module = TensorsOnly(network.module).requires_grad_(False)
    estimate_batch_norm(module, samples)
    model = convert(module, samples[0])
    quantized = quantize(network, model, samples)

    before, after = run(model, samples[:4]), run(quantized, samples[:4])
    expected = module(*tensors(samples[1]))
    expected = [expected] if isinstance(expected, Tensor) else list(expected)
    error = max(distance([y.numpy() for y in expected], [y[1] for y in before]))
    if not error < FAITHFUL:  # also when it is not a number
        raise Unusable(f"the converted model is off by {error:.1e} of the output's length")
    moved = movement(before), movement(after)
    if not min(moved) > ALIVE:
        raise Unusable(f"its output moves by {moved[0]:.1e} (float) and {moved[1]:.1e} (quantized) of its length only")

    save_ir(model, folder / f"{name}_float.xml")
    save_ir(quantized, folder / f"{name}.xml")
    count = sum(node.get_type_name() == "FakeQuantize" for node in quantized.get_ops())
    return f"{name}: {count} FakeQuantize, output moves by {moved[0]:.2f} (float), {moved[1]:.2f} (quantized)"
