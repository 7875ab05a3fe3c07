"""Which network covers which row of `ovlpt.operations`: the operations that the pass transforms in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ovlpt import LowPrecision, Trace
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.openvino_api import Manager, Model
from ovlpt.operations import OPERATIONS
from ovlpt.trace import Outcome

ROWS = tuple(name for name, row in OPERATIONS.items() if row.kind != "absent")


def transformed(model: Model) -> dict[str, int]:
    """How many operations of each row a transformation changes, the model as the plugin would hand it to its own LPT."""
    model, trace, manager = model.clone(), Trace(), Manager()
    manager.register_pass(CommonOptimizations(as_defined=False))
    manager.register_pass(LowPrecision(trace=trace))
    manager.run_passes(model)
    nodes = {
        (event.operation, event.node)
        for event in trace
        if event.outcome is Outcome.TRANSFORMED and event.operation in ROWS
    }
    counts = dict.fromkeys(ROWS, 0)
    for operation, _ in nodes:
        counts[operation] += 1
    return {operation: count for operation, count in counts.items() if count}


def versions(models: Iterable[Model]) -> set[str]:
    """The operations of rows in the models with their versions: "opset8.Gather"."""
    kinds = {(node.get_type_name(), node.get_type_info().version_id) for model in models for node in model.get_ops()}
    return {f"{version}.{kind}" for kind, version in kinds if kind in ROWS}


def listing(covered: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line for each row: the networks (by name) that transform it, and how often."""
    lines = []
    for row in ROWS:
        found = [f"{name} {counts[row]}" for name, counts in covered.items() if row in counts]
        lines.append(f"{row:24} {', '.join(found) or '-'}")
    return lines
