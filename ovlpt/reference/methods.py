"""Whose arithmetic: the values of every ``method`` argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ovlpt.trace import InputError

T = TypeVar("T")

METHODS = {
    "tflite-reference": "LiteRT's reference kernels (BUILTIN_REF)",
    "tflite-optimized": "LiteRT's optimized x86 kernels (BUILTIN_WITHOUT_DEFAULT_DELEGATES)",
    "tflite-2.5": "the optimized x86 kernels of TensorFlow 2.5, its default",
    "tflite-xnnpack": "LiteRT with the XNNPACK delegate, today's default",
    "onnx": "ONNX Runtime on x86",
    "caffe2": "Caffe2's Int8 operators (QNNPACK)",
    "openvino": "OpenVINO's CPU plugin on x86",
    "torch-qnnpack": "PyTorch today, engine qnnpack",
    "torch-fbgemm": "PyTorch today, engine fbgemm",
    "torch-x86": "PyTorch today, engine x86",
    "torch-onednn": "PyTorch today, engine onednn",
    "snps": "SNPS-Caffe's document, its matrix of TFLite's convolutions",
}
RUNTIMES = tuple(name for name in METHODS if name != "snps")  # the methods that a runtime can be asked about
ALIASES = {"tflite": "tflite-xnnpack"}
TFLITE = ("tflite-reference", "tflite-optimized", "tflite-2.5", "tflite-xnnpack")
TORCH = ("torch-qnnpack", "torch-fbgemm", "torch-x86", "torch-onednn")


def resolve(method: str) -> str:
    """The full name of a method. Raises `InputError` for a name that does not exist."""
    method = ALIASES.get(method, method)
    if method not in METHODS:
        raise InputError(f"The method {method!r} is unknown: use one of {', '.join([*ALIASES, *METHODS])}.")
    return method


def cell(operator: str, cells: Mapping[str, T], method: str) -> T:
    """The entry of a method in an operator's row of the table; an empty cell raises `InputError`."""
    name = resolve(method)
    if name not in cells:
        raise InputError(
            f"{METHODS[name]} has no such quantized operator: {operator}; use one of the methods {', '.join(cells)}."
        )
    return cells[name]
