"""What the CPU plugin executes of a transformed model, against what it executes with its own LPT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ovlpt.choices import OVLPT
from ovlpt.choices import STOCK as STOCK_VARIANT
from ovlpt.inspect.check.execution import Executed, execute
from ovlpt.trace import OvlptError
from tools.fuzz.graphs import Graph, NoFloatRun, build
from tools.fuzz.numbers import STOCK, Failure, cause_of
from tools.parity.driver import core

WAY = "execution"


def failures(graph: Graph, only: str | None = None) -> Iterator[Failure]:
    """Layers with weights that run in int8 only with the plugin's own LPT, and layers that only ovlpt's model has."""
    if not graph.is_quantized:
        return
    try:
        model = build(graph)
        stock = execute(model, "CPU", [STOCK_VARIANT], core=core())
    except (NoFloatRun, OvlptError) as error:
        yield Failure(STOCK, cause_of(error), str(error)[-300:])
        return
    if only == STOCK:
        return
    try:
        mine = execute(model, "CPU", [OVLPT], core=core())
    except OvlptError as error:
        yield Failure(WAY, cause_of(error), str(error)[-300:])
        return
    both = Executed("", stock.layers | mine.layers, stock.operations)
    for difference in both.against_stock():
        if difference.fails:
            yield Failure(WAY, f"int8 {difference.kind}: {difference.layer_type}", str(difference))
            return
    counts = [
        Counter(layer.layer_type for layer in layers.executed)
        for layers in (both.layers[OVLPT], both.layers[STOCK_VARIANT])
    ]
    if counts[0].total() > counts[1].total():
        more = {kind: count for kind, count in (counts[0] - counts[1]).items()}
        yield Failure(
            WAY, f"more layers: {', '.join(sorted(more))}", f"{counts[0].total()} for {counts[1].total()}: {more}"
        )
