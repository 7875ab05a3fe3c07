"""What `ovlpt.explain` says of the layers of a graph, against what is executed before and after its advices are applied."""

from __future__ import annotations

from collections.abc import Iterator

from ovlpt.device.properties import F32, UNCACHED
from ovlpt.trace import InputError
from tools.fuzz.graphs import Graph, NoFloatRun, build
from tools.fuzz.numbers import STOCK, Failure, cause_of
from tools.network_answers import judged
from tools.parity.driver import core

WAY = "answers"


def failures(graph: Graph, only: str | None = None) -> Iterator[Failure]:
    """Layers with weights of which something false is said, or whose advices do not make them int8."""
    if not graph.is_quantized:
        return
    try:
        model = build(graph)
        core().compile_model(model, "CPU", {**F32, **UNCACHED})
    except (NoFloatRun, RuntimeError) as error:
        yield Failure(STOCK, cause_of(error), str(error)[-300:])
        return
    if only == STOCK:
        return
    try:
        layers = judged(model, graph.inputs(), "graph", core())
    except (InputError, RuntimeError, ValueError) as error:
        yield Failure(WAY, cause_of(error), str(error)[-300:])
        return
    for layer in layers:
        if not layer.is_true or not layer.is_advised:
            yield Failure(WAY, f"{layer.fault}: {layer.operation.kind}", str(layer))
