"""Integer kernels of TFLite, ONNX Runtime, Caffe2, PyTorch and OpenVINO, bit for bit, in numpy.

Every operator takes arrays of u8 or i8 integers with their `Quantization` and a ``method`` that says whose
arithmetic to use (`METHODS`). Tensors are NCHW, weights OIHW. An operator that a framework does not have
raises `InputError`.
"""

from ovlpt.reference.accumulation import convolution_accumulator, matrix_accumulator, transposed_accumulator
from ovlpt.reference.activations import leaky_relu, relu, sigmoid, softmax
from ovlpt.reference.affine import dequantize, quantize, requantize
from ovlpt.reference.arrangement import arg_max, concat, resize_bilinear
from ovlpt.reference.elementwise import bias_add, eltwise_sum
from ovlpt.reference.methods import METHODS
from ovlpt.reference.pooling import average_pool, max_pool, mean
from ovlpt.reference.quantization import Quantization
from ovlpt.reference.weighted import (
    convolution,
    deconvolution,
    fake_quantized,
    inner_product,
    weighted_rule,
)

__all__ = [
    "METHODS",
    "Quantization",
    "arg_max",
    "average_pool",
    "bias_add",
    "concat",
    "convolution",
    "convolution_accumulator",
    "deconvolution",
    "dequantize",
    "eltwise_sum",
    "fake_quantized",
    "inner_product",
    "leaky_relu",
    "matrix_accumulator",
    "max_pool",
    "mean",
    "quantize",
    "relu",
    "requantize",
    "resize_bilinear",
    "sigmoid",
    "softmax",
    "transposed_accumulator",
    "weighted_rule",
]
