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
ALIVE = 0.02  # a dead network's output does not move at all; the living ones here move by 0.05 to 1.4


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
    return model


def quantize(network: Network, model: ov.Model, samples: list[Sample]) -> ov.Model:
    return nncf.quantize(
        model,
        nncf.Dataset(samples),
        preset=nncf.QuantizationPreset.MIXED if network.mixed or network.transformer else None,
        model_type=nncf.ModelType.TRANSFORMER if network.transformer else None,
        subset_size=len(samples),
    )


def movement(model: ov.Model, samples: list[Sample]) -> float:
    """How much the outputs change from input to input: the least, over the outputs, of |y - mean y| / |y|."""
    compiled = ov.compile_model(model, "CPU")
    results = [[np.array(value) for value in compiled(sample).values()] for sample in samples]
    outputs = [np.stack(values) for values in zip(*results, strict=True)]
    return min(float(np.linalg.norm(y - y.mean(0)) / np.linalg.norm(y)) for y in outputs)


class Dead(Exception):
    """The network's output does not depend on its input."""


def build(name: str, make: Callable[[], Network], folder: Path) -> str:
    """Write ``folder/name.xml`` (quantized) and ``folder/name_float.xml``; return a line about them.

    Raises `Dead` if an output of either stays the same whatever the input.
    """
    torch.manual_seed(0)
    nncf.set_log_level("ERROR")
    network, rng = make(), np.random.default_rng(0)
    samples = [network.sample(rng) for _ in range(CALIBRATION)]
    module = TensorsOnly(network.module).requires_grad_(False)
    estimate_batch_norm(module, samples)
    model = convert(module, samples[0])
    quantized = quantize(network, model, samples)
    moved = [movement(each, samples[:4]) for each in (model, quantized)]
    if not min(moved) > ALIVE:  # also when it is not a number
        raise Dead(f"its output moves by {moved[0]:.1e} (float) and {moved[1]:.1e} (quantized) of its length")
    save_ir(model, folder / f"{name}_float.xml")
    save_ir(quantized, folder / f"{name}.xml")
    count = sum(node.get_type_name() == "FakeQuantize" for node in quantized.get_ops())
    return f"{name}: {count} FakeQuantize, output moves by {moved[0]:.2f} (float), {moved[1]:.2f} (quantized)"
