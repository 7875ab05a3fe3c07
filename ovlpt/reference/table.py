"""The table of quantized operators: whose operator is computed how.

The rows and letters are those of SNPS-Caffe's document "Quantized models in different frameworks": t, o, c
for the arithmetic of TFLite, ONNX Runtime and Caffe2, ~ for dequantize, operator, quantize, nothing for a
combination that its authors had not met. Cells that they left empty are filled here where the framework has
the operator; the others raise `InputError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ovlpt.reference import activations, affine, arrangement, elementwise, pooling, weighted
from ovlpt.reference.methods import ALIASES, METHODS

FRAMEWORKS = {"TFLite": ALIASES["tflite"], "ONNX": "onnx", "Caffe2": "caffe2"}
"""The document's columns and the method that each means today."""

DOCUMENT = {
    "AveragePool": ("t", "o", "c"),
    "BiasAdd": ("", "o", ""),
    "Concat": ("~", "", ""),
    "Convolution": ("t", "o", "c"),
    "Deconvolution": ("", "", "c"),
    "EltwiseSum": ("t", "c", "c"),
    "InnerProduct": ("t", "t", ""),
    "LeakyReLU": ("t", "", ""),
    "Power": ("t", "o", "c"),
    "ReLU": ("~", "~", "~"),
    "ResizeBilinear": ("~", "", ""),
    "Sigmoid": ("~", "", ""),
    "Softmax": ("~", "", ""),
}
"""The document's rows. Its EltwiseSum of ONNX is c only on ARM, its InnerProduct of ONNX is really o."""

POWER = ("Quantize", "Dequantize", "Requantize")
"""What the row Power stands for."""

_ELEMENTWISE: dict[str, Mapping[str, Callable]] = {
    "AveragePool": pooling.AVERAGE_POOL,
    "Mean": pooling.MEAN,
    "BiasAdd": elementwise.BIAS_ADD,
    "Concat": arrangement.CONCAT,
    "EltwiseSum": elementwise.ELTWISE_SUM,
    "LeakyReLU": activations.LEAKY_RELU,
    "Quantize": affine.QUANTIZE,
    "Dequantize": affine.DEQUANTIZE,
    "Requantize": affine.REQUANTIZE,
    "ReLU": activations.RELU,
    "ResizeBilinear": arrangement.RESIZE_BILINEAR,
    "Sigmoid": activations.SIGMOID,
    "Softmax": activations.SOFTMAX,
}
_KINDS = {
    "Convolution": ("normal", "grouped", "depthwise"),
    "Deconvolution": ("transposed",),
    "InnerProduct": ("inner",),
}
_UNCHANGED = ("MaxPool", "ArgMax")

OPERATORS = (*_KINDS, *_ELEMENTWISE, *_UNCHANGED)


def rounding(operator: str, method: str) -> str | None:
    """How a method computes an operator, in one line; None where it has no such operator."""
    if operator in _UNCHANGED:
        return "the integers as they are" if method in METHODS else None
    if operator not in _KINDS:
        kernel = _ELEMENTWISE[operator].get(method)
        return kernel and (kernel.__doc__ or "").strip()
    rules: dict[str, list[str]] = {}
    for (kind, precision, granularity), rule in weighted.WEIGHTED.get(method, {}).items():
        special, _, plain = kind.rpartition(" ")
        if plain in _KINDS[operator] or (kind == "many groups" and operator == "Convolution"):
            name = f"{kind} " if len(_KINDS[operator]) > 1 or special == "single" else ""
            rules.setdefault(rule, []).append(f"{name}{precision} per {granularity}")
    if len(rules) == 1:
        return next(iter(rules))
    return "; ".join(f"{rule}: {', '.join(where)}" for rule, where in rules.items()) or None
