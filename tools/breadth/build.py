"""One family by one quantizer: the quantized model, and samples to measure it on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import nncf
import numpy as np
import openvino as ov
import torch
from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters as Advanced
from nncf.quantization.advanced_parameters import AdvancedSmoothQuantParameters as SmoothQuant

from tools.breadth.families import FAMILIES, Family
from tools.breadth.plan import DEFAULT
from tools.zoo.build import estimate_batch_norm
from tools.zoo.signals import draw, smooth

CALIBRATION, MEASURED = 6, 8  # samples; the first of those that are measured calibrate, too


Quantizer = Callable[[ov.Model, Family, list, torch.nn.Module], ov.Model]


def by_nncf(**settings: object) -> Quantizer:
    """Post-training quantization of the converted model."""

    def quantize(model: ov.Model, family: Family, samples: list, module: torch.nn.Module) -> ov.Model:
        given = {"model_type": nncf.ModelType.TRANSFORMER if family.transformer else None, **settings}
        feed = [dict(enumerate(sample.values())) for sample in samples]
        return nncf.quantize(model, nncf.Dataset(feed), subset_size=len(samples), **given)

    return quantize


def by_onnx_runtime(data: str, per_channel: bool) -> Quantizer:
    """ONNX Runtime's pairs of QuantizeLinear and DequantizeLinear, with weights in i8."""

    def quantize(model: ov.Model, family: Family, samples: list, module: torch.nn.Module) -> ov.Model:
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process

        class Reader(CalibrationDataReader):
            def __init__(self):
                self._samples = iter(samples)

            def get_next(self):
                return next(self._samples, None)

        with tempfile.TemporaryDirectory() as folder:
            before, after = str(Path(folder) / "before.onnx"), str(Path(folder) / "after.onnx")
            torch.onnx.export(
                module, tuple(torch.from_numpy(array) for array in samples[0].values()), before,
                input_names=list(samples[0]), dynamic_axes={name: {0: "batch"} for name in samples[0]},
                opset_version=17, dynamo=False,
            )  # fmt: skip
            quant_pre_process(before, before, skip_symbolic_shape=True)
            quantize_static(
                before, after, Reader(), QuantFormat.QDQ,
                activation_type=QuantType[data], weight_type=QuantType.QInt8, per_channel=per_channel,
            )  # fmt: skip
            return ov.convert_model(after)

    return quantize


QUANTIZERS = {
    DEFAULT: by_nncf(),
    "mixed": by_nncf(preset=nncf.QuantizationPreset.MIXED),
    "every_range_halved": by_nncf(advanced_parameters=Advanced(overflow_fix=nncf.OverflowFix.ENABLE)),
    "smooth_quant": by_nncf(
        model_type=nncf.ModelType.TRANSFORMER,
        advanced_parameters=Advanced(smooth_quant_alphas=SmoothQuant(convolution=0.5, matmul=0.7)),
    ),
    "onnx_runtime": by_onnx_runtime("QUInt8", False),
    "onnx_runtime_signed": by_onnx_runtime("QInt8", True),
}


def draw_sample(rng: np.random.Generator, family: Family) -> dict[str, np.ndarray]:
    """What feeds the family, by name."""
    if "signal" in family.shapes:
        (shape,) = family.shapes.values()
        return {"signal": smooth(rng, shape[1:] if len(shape) > 2 else shape).reshape(shape)}
    return draw(rng, family.shapes)


def build(name: str, quantizer: str) -> tuple[ov.Model, list[dict[str, np.ndarray]]]:
    """The quantized model, and samples to measure on."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    nncf.set_log_level("ERROR")
    family, rng = FAMILIES[name], np.random.default_rng(0)
    samples = [draw_sample(rng, family) for _ in range(MEASURED)]
    module = family.make().requires_grad_(False).eval()
    estimate_batch_norm(module, samples)
    example = tuple(torch.from_numpy(array) for array in samples[0].values())
    model = ov.convert_model(module, example_input=example if len(example) > 1 else example[0])
    model.reshape({index: list(array.shape) for index, array in enumerate(samples[0].values())})
    return QUANTIZERS[quantizer](model, family, samples[:CALIBRATION], module), samples
