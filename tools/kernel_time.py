"""Time of an integer convolution against its float product: ``python -m tools.kernel_time``.

ResNet-50's 3×3 layer, 64 → 64 channels, 56×56: the integer kernel of each method and numpy's float32 im2col product run
in turn; the figure is the median of the paired ratios.
"""

from __future__ import annotations

import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from ovlpt.inspect.latency import interleaved_latencies, median_ratio
from ovlpt.reference import Quantization, convolution
from ovlpt.reference.accumulation import sliding_windows

METHODS = ("tflite-reference", "tflite-xnnpack", "onnx", "openvino")


def main() -> int:
    rng = np.random.default_rng(0)
    x, w = (
        rng.integers(-128, 128, (1, 64, 56, 56)).astype(np.int8),
        rng.integers(-127, 128, (64, 64, 3, 3)).astype(np.int8),
    )
    x_quantization, output = Quantization(0.05, -7, "i8"), Quantization(3.0, 5, "i8")
    w_quantization = Quantization(rng.uniform(0.01, 0.02, 64), 0, "i8", 0)
    bias, weights, image = np.arange(64), w.reshape(64, -1).astype(np.float32), x.astype(np.float32)

    def in_floats():
        columns = sliding_windows(image, (3, 3), pads_begin=(1, 1)).transpose(0, 1, 4, 5, 2, 3)
        return weights @ columns.reshape(576, -1)

    def in_integers(method: str):
        return convolution(x, x_quantization, w, w_quantization, bias, output, pads_begin=(1, 1), method=method)

    table = Table("method", "times the float product")
    for method in METHODS:
        runs = {"float": in_floats, method: lambda method=method: in_integers(method)}
        latencies = interleaved_latencies(runs, seconds=5.0)
        table.add_row(method, f"{median_ratio(latencies[method], latencies['float']):.2f}")
    Console(width=80).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
