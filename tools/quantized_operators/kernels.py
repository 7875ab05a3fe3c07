"""A case computed by `ovlpt.reference`."""

from __future__ import annotations

import numpy as np

from ovlpt import reference
from tools.quantized_operators.cases import Case


def compute(case: Case, method: str) -> np.ndarray:  # noqa: C901, one branch for each operator
    """The result of the case by this method's arithmetic."""
    a, q, options = case.arrays, case.quantizations, {**case.options, "method": method}
    match case.operator:
        case "Convolution" | "Deconvolution" | "InnerProduct":
            names = {
                "Convolution": "convolution",
                "Deconvolution": "deconvolution",
                "InnerProduct": "inner_product",
            }
            function = getattr(reference, names[case.operator])
            return function(a["x"], q["x"], a["w"], q["w"], a.get("bias"), q["output"], **options)
        case "Quantize":
            return reference.quantize(a["x"], q["output"], **options)
        case "Dequantize":
            return reference.dequantize(a["x"], q["input"], **options)
        case "Requantize":
            return reference.requantize(a["x"], q["x"], q["output"], **options)
        case "EltwiseSum":
            return reference.eltwise_sum(a["a"], q["a"], a["b"], q["b"], q["output"], **options)
        case "BiasAdd":
            return reference.bias_add(a["x"], q["x"], a["bias"], q["bias"], q["output"], **options)
        case "AveragePool":
            return reference.average_pool(a["x"], q["x"], q["output"], **options)
        case "Mean":
            return reference.mean(a["x"], q["x"], q["output"], **options)
        case "LeakyReLU":
            return reference.leaky_relu(a["x"], q["x"], q["output"], **options)
        case "ReLU":
            return reference.relu(a["x"], q["x"], q["output"], **options)
        case "Sigmoid":
            return reference.sigmoid(a["x"], q["x"], q["output"], **options)
        case "Softmax":
            return reference.softmax(a["x"], q["x"], q["output"], **options)
        case "Concat":
            return reference.concat([a["a"], a["b"]], [q["a"], q["b"]], q["output"], **options)
        case "ResizeBilinear":
            return reference.resize_bilinear(a["x"], q["x"], **options)
        case "MaxPool":
            return reference.max_pool(a["x"], **options)
        case "ArgMax":
            return reference.arg_max(a["x"], **options)
    raise KeyError(case.operator)
