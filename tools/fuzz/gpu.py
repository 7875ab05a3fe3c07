"""What the GPU plugin's kernels compute of a transformed model in f16, executed on a virtual GPU, against what they compute
with the plugin's own LPT.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

import ovlpt
from ovlpt.device import virtual_gpu
from ovlpt.device.properties import LPT_OFF, UNCACHED
from ovlpt.openvino_api import Model
from tools.fuzz.graphs import Graph, build, reference
from tools.fuzz.numbers import STOCK, Failure, cause_of, nearby, of_numbers, simulate
from tools.gpu_numbers import int8_layers, outputs
from tools.parity.driver import core

WAY = "GPU"
_IN_F16 = {**UNCACHED, "INFERENCE_PRECISION_HINT": "f16"}


@functools.cache
def _gpu() -> None:
    """The virtual GPU of this process, which has the variables of `virtual_gpu.environment`."""
    virtual_gpu.load("xelp", execute=True)


def failures(graph: Graph, only: str | None = None) -> Iterator[Failure]:
    """Numbers that are wrong with ovlpt and not with stock, and layers with weights that are in int8 with stock alone."""
    if not graph.is_quantized:
        return
    _gpu()
    try:
        model, inputs, exact = build(graph), graph.inputs(), reference(graph)
        simulated = simulate(exact, inputs)[: len(graph.results)]
    except RuntimeError as error:  # nothing to compare with
        yield Failure(STOCK, cause_of(error), str(error)[-300:])
        return
    stock = theirs = None
    try:
        stock = core().compile_model(model.clone(), "GPU", _IN_F16)
        theirs = outputs(stock, inputs)
    except RuntimeError as error:
        yield Failure(STOCK, cause_of(error), str(error)[-300:])
    if only == STOCK:
        return
    try:
        mine = ovlpt.compile_model(model, "GPU", _IN_F16, core=core())
        found = outputs(mine, inputs)
    except Exception as error:  # whatever it is, it is a finding, unless the plugin fails at any form of the graph
        if theirs is not None or _without_lpt(model, inputs) is not None:
            yield Failure(WAY, cause_of(error), str(error)[-300:])
        return
    near = functools.cache(lambda: nearby(exact, inputs, len(simulated), {}))
    beside = _without_lpt(model, inputs) if theirs is None else theirs
    if failure := of_numbers(WAY, found, simulated, beside, near):
        yield failure
    if theirs is None:
        return
    counts = [int8_layers(each) for each in (mine, stock)]
    if counts[0] < counts[1]:
        yield Failure(WAY, "int8 lost", f"{counts[0]} layers for {counts[1]}")


def _without_lpt(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """What the plugin computes without any LPT; None where it fails."""
    try:
        return outputs(core().compile_model(model.clone(), "GPU", {**_IN_F16, **LPT_OFF["GPU"]}), inputs)
    except RuntimeError:
        return None
