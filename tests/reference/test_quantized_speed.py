from time import perf_counter

import numpy as np
import pytest

from ovlpt.reference import Quantization, convolution
from ovlpt.reference.accumulation import sliding_windows


def seconds(function) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


@pytest.mark.parametrize("method", ["tflite-reference", "tflite-xnnpack", "onnx", "openvino"])
def test_an_integer_convolution_costs_at_most_four_float_ones(method):
    """ResNet-50's 3×3 layer, 64 → 64 channels, 56×56; the quickest of each, taken in turns."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(-128, 128, (1, 64, 56, 56)).astype(np.int8), rng.integers(-127, 128, (64, 64, 3, 3))
    x_quantization, output = Quantization(0.05, -7, "i8"), Quantization(3.0, 5, "i8")
    w_quantization = Quantization(rng.uniform(0.01, 0.02, 64), 0, "i8", 0)
    bias, weights, image = np.arange(64), w.reshape(64, -1).astype(np.float32), x.astype(np.float32)

    def in_floats():
        columns = sliding_windows(image, (3, 3), pads_begin=(1, 1)).transpose(0, 1, 4, 5, 2, 3)
        return weights @ columns.reshape(576, -1)

    def in_integers():
        return convolution(
            x,
            x_quantization,
            w.astype(np.int8),
            w_quantization,
            bias,
            output,
            pads_begin=(1, 1),
            method=method,
        )

    floats, integers = zip(*((seconds(in_floats), seconds(in_integers)) for _ in range(15)), strict=True)
    fastest_float, fastest_integer = min(floats), min(integers)
    for _ in range(60):  # a busy machine may need more tries before each has run undisturbed once
        if fastest_integer <= 4 * fastest_float:
            break
        fastest_float = min(fastest_float, seconds(in_floats))
        fastest_integer = min(fastest_integer, seconds(in_integers))
    assert fastest_integer <= 4 * fastest_float
