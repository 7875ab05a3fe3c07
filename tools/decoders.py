"""``python -m tools.decoders MODEL... [--tokens 64]``: language models of `tools.zoo.decoders` in stock and ovlpt.

For each network, type of floats and number of threads: layers with weights in int8, layers that are executed, types of the
states, SQNR of all logits of a prompt and the tokens after it against the FakeQuantize simulation, and milliseconds for a
token, measured in turn. The sequence is the same for all: its tokens are given.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

import ovlpt
from ovlpt.device.compile import float_types
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.properties import UNCACHED
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.numbers.distance import Distance
from ovlpt.openvino_api import CompiledModel, Core
from tools.zoo.alive import Sample
from tools.zoo.decoders import GPT2, steps

PROMPT = 24


def generated(networks: Sequence[CompiledModel], sequence: Sequence[Sample]) -> list[tuple[Distance, list[float], str]]:
    """For each network its distance from the first one, milliseconds of each token, and the types of its states."""
    requests = [network.create_infer_request() for network in networks]
    times: list[list[float]] = [[] for _ in networks]
    distances = [Distance() for _ in networks]
    for number, step in enumerate(sequence):
        values: list[np.ndarray] = [np.empty(0)] * len(networks)
        order = range(len(networks)) if number % 2 else range(len(networks) - 1, -1, -1)
        for place in order:
            begin = time.perf_counter()
            values[place] = np.array(requests[place].infer(step)[0])
            if number:
                times[place].append((time.perf_counter() - begin) * 1e3)
        for distance, found in zip(distances, values, strict=True):
            distance.add(values[0], found)
    kinds = [Counter(state.state.element_type.to_string() for state in request.query_state()) for request in requests]
    return [
        (distance, each, ", ".join(f"{count} {kind}" for kind, count in kind_of.items()))
        for distance, each, kind_of in zip(distances, times, kinds, strict=True)
    ]


def layers(compiled: CompiledModel) -> tuple[str, int]:
    executed = list(ovlpt.execution_types(compiled).executed)
    weighted = [layer for layer in executed if layer.layer_type in WEIGHTED_LAYERS]
    return f"{sum(layer.is_int8 for layer in weighted)}/{len(weighted)}", len(executed)


def rows(path: Path, core: Core, tokens: int) -> list[str]:
    """Lines of the table for one network."""
    model, found = core.read_model(path), []
    sequence = steps(GPT2, [PROMPT] + [1] * tokens)
    truth = simulate(model, core)
    for precision in float_types(core):
        for threads in (1, 2):
            more = {
                "INFERENCE_PRECISION_HINT": precision,
                "INFERENCE_NUM_THREADS": threads,
                "PERFORMANCE_HINT": "LATENCY",
            }
            both = [
                core.compile_model(model, "CPU", {**UNCACHED, **more}),
                ovlpt.compile_model(model, "CPU", {**UNCACHED, **more}, core=core),
            ]
            _, stock, mine = generated([truth, *both], sequence)
            (int8, count), (my_int8, my_count) = map(layers, both)
            ratio = median(a / b for a, b in zip(mine[1], stock[1], strict=True))
            found.append(
                f"| {path.stem} | {precision}, {threads} | {int8}, {my_int8} | {count}, {my_count} | {stock[2]}; {mine[2]} "
                f"| {stock[0].sqnr:.1f}, {mine[0].sqnr:.1f} | {median(stock[1]):.2f}, {median(mine[1]):.2f} | {ratio:.2f} |"
            )
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.decoders", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--tokens", type=int, default=64, help="after the prompt (default 64)")
    options = parser.parse_args(arguments)
    core = Core()
    print("| network | floats, threads | int8: stock, ovlpt | executed | states | dB | ms a token | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in options.models:
        for row in rows(path, core, options.tokens):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
