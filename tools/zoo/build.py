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
from tools.zoo.alive import CALIBRATION, Sample, Unusable, distance, report, run
from tools.zoo.networks import Network
from tools.zoo.overflow_fix import save_quantized
from tools.zoo.signals import draw

FAITHFUL = 1e-3  # float against float: rounding that a deep random network has amplified


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


def convert(module: nn.Module, sample: Sample, dynamic_axes: tuple[int, ...] = ()) -> ov.Model:
    """The module as a model with the shapes (any size along ``dynamic_axes``) and the input names of the sample."""
    shapes = [
        [-1 if axis in dynamic_axes else size for axis, size in enumerate(array.shape)] for array in sample.values()
    ]
    model = ov.convert_model(module, example_input=tensors(sample), input=shapes)
    for value, name in zip(model.inputs, sample, strict=True):
        value.tensor.set_names({name})
        value.node.set_friendly_name(name)
    return model


def quantize(network: Network, model: ov.Model, samples: list[Sample], overflow_fix: bool) -> ov.Model:
    return nncf.quantize(
        model,
        nncf.Dataset(samples),
        preset=nncf.QuantizationPreset.MIXED if network.mixed or network.transformer else None,
        model_type=nncf.ModelType.TRANSFORMER if network.transformer else None,
        subset_size=len(samples),
        advanced_parameters=nncf.AdvancedQuantizationParameters(
            overflow_fix=nncf.OverflowFix.ENABLE if overflow_fix else None
        ),
    )


def build(name: str, make: Callable[[], Network], folder: Path, overflow_fix: bool = False) -> str:
    """Write ``folder/name.xml`` (quantized) and ``folder/name_float.xml``; return a line about them.

    Raises `Unusable` if the converted model does not compute what the module computes, or if an output of
    either model stays the same whatever the input.
    """
    torch.manual_seed(0)
    nncf.set_log_level("ERROR")
    network, rng = make(), np.random.default_rng(0)
    samples = [draw(rng, network.shapes) for _ in range(CALIBRATION)]
    module = TensorsOnly(network.module).requires_grad_(False)
    estimate_batch_norm(module, samples)
    model = convert(module, samples[0], network.dynamic_axes)
    quantized = quantize(network, model, samples, overflow_fix)

    expected = module(*tensors(samples[1]))
    expected = [expected] if isinstance(expected, Tensor) else list(expected)
    error = max(distance([y.numpy() for y in expected], [y[0] for y in run(model, samples[1:2])]))
    if not error < FAITHFUL:  # also when it is not a number
        raise Unusable(f"the converted model is off by {error:.1e} of the output's length")
    line = report(name, model, quantized, samples[:4])
    save_ir(model, folder / f"{name}_float.xml", compress_to_fp16=network.stored_in_f16)
    save_quantized(quantized, folder / f"{name}.xml", overflow_fix, compress_to_fp16=network.stored_in_f16)
    return line
