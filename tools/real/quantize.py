"""Five quantizations of a float model, with its open shapes kept open."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import nncf
import openvino as ov

from tools.real.networks import RealNetwork, Sample

OPSET = 17
_UNREAD = frozenset(("Gemm", "GlobalAveragePool", "Where"))  # as integer operations OpenVINO has no rule for them


def by_nncf(
    preset: nncf.QuantizationPreset, network: RealNetwork, path: Path, samples: list[Sample], target: Path
) -> Path:
    """``target.xml``, by NNCF's post-training quantization."""
    quantized = nncf.quantize(
        ov.Core().read_model(path),
        nncf.Dataset(samples),
        preset=preset,
        model_type=nncf.ModelType.TRANSFORMER if network.transformer else None,
        subset_size=len(samples),
    )
    written = target.with_suffix(".xml")
    ov.save_model(quantized, written, compress_to_fp16=False)
    return written


def by_onnx_runtime(
    activation: str,
    weight: str,
    per_channel: bool,
    form: str,
    network: RealNetwork,
    path: Path,
    samples: list[Sample],
    target: Path,
) -> Path:
    """``target.onnx`` by ONNX Runtime's static quantization. ``form``: "QDQ", with QuantizeLinear and DequantizeLinear, or
    "QOperator", with integer operations.

    Raises `ValueError` where the float model is not an ONNX file.
    """
    import onnx
    from onnx import version_converter
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.registry import QLinearOpsRegistry
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if path.suffix != ".onnx":
        raise ValueError(f"the float model is not an ONNX file but {path.suffix.removeprefix('.')}")

    class Reader(CalibrationDataReader):
        def __init__(self):
            self._samples = iter(samples)

        def get_next(self) -> Sample | None:
            return next(self._samples, None)

    logging.getLogger().setLevel(logging.ERROR)
    prepared, written = target.with_suffix(".prepared.onnx"), target.with_suffix(".onnx")
    model = onnx.load(path)
    if max(each.version for each in model.opset_import if not each.domain) < 13:  # no scale per channel before
        model = version_converter.convert_version(model, OPSET)
    onnx.save(model, prepared)
    quant_pre_process(str(prepared), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared), str(written), Reader(), QuantFormat[form],
        op_types_to_quantize=sorted(set(QLinearOpsRegistry) - _UNREAD) if form == "QOperator" else None,
        activation_type=QuantType[activation], weight_type=QuantType[weight], per_channel=per_channel,
    )  # fmt: skip
    prepared.unlink()
    return written


QUANTIZERS: dict[str, Callable[[RealNetwork, Path, list[Sample], Path], Path]] = {
    "default": lambda *given: by_nncf(nncf.QuantizationPreset.PERFORMANCE, *given),
    "mixed": lambda *given: by_nncf(nncf.QuantizationPreset.MIXED, *given),
    "qdq_u8i8": lambda *given: by_onnx_runtime("QUInt8", "QInt8", False, "QDQ", *given),
    "qdq_s8s8": lambda *given: by_onnx_runtime("QInt8", "QInt8", given[0].per_channel, "QDQ", *given),
    "qop_u8i8": lambda *given: by_onnx_runtime("QUInt8", "QInt8", False, "QOperator", *given),
}
