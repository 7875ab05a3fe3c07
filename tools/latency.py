"""Latency against the plugin's own LPT: ``python -m tools.latency MODEL.xml … [--against float]``.

Both compiled models run in turn, one inference each, in an order that alternates; a block is a number of such pairs.
The figure is the median of the paired ratios ovlpt / other, with a bootstrap interval over the blocks' pairs.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
import openvino
from rich.console import Console
from rich.table import Table

import ovlpt
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.inspect.inputs import random_inputs

HINTS = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}


def paired_ratios(mine, other, inputs, blocks: int, pairs: int) -> np.ndarray:
    """Ratios [blocks, pairs] of two compiled models' latencies."""
    requests = mine.create_infer_request(), other.create_infer_request()
    for _ in range(10):
        for request in requests:
            request.infer(inputs)
    ratios = np.empty((blocks, pairs))
    for block in range(blocks):
        for pair in range(pairs):
            times = [0.0, 0.0]
            for index in (0, 1) if pair % 2 == 0 else (1, 0):
                start = time.perf_counter()
                requests[index].infer(inputs)
                times[index] = time.perf_counter() - start
            ratios[block, pair] = times[0] / times[1]
    return ratios


def bootstrap_interval(ratios: np.ndarray, samples: int = 2000, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the median, resampling blocks and then pairs within them."""
    generator = np.random.default_rng(0)
    blocks, pairs = ratios.shape
    medians = [
        np.median(ratios[generator.integers(0, blocks, blocks)][:, generator.integers(0, pairs, pairs)])
        for _ in range(samples)
    ]
    tail = 100 * (1 - confidence) / 2
    return tuple(np.percentile(medians, (tail, 100 - tail)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.latency", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.xml")
    parser.add_argument("--against", choices=("stock", "float"), default="stock")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=50)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table = Table("network", "ratio", "95 % interval", "medians of the blocks")
    for path in options.models:
        core = openvino.Core()
        model = core.read_model(path)
        other = model if options.against == "stock" else without_fake_quantize(model)
        mine = ovlpt.compile_model(model, "CPU", HINTS, core=core)
        ratios = paired_ratios(
            mine, core.compile_model(other, "CPU", HINTS), random_inputs(model), options.blocks, options.pairs
        )
        low, high = bootstrap_interval(ratios)
        blocks = " ".join(f"{value:.3f}" for value in np.median(ratios, 1))
        name = path.rsplit("/", 1)[-1].removesuffix(".xml")
        table.add_row(name, f"{np.median(ratios):.3f}", f"{low:.3f} … {high:.3f}", blocks)
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
