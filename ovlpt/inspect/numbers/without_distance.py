"""Outputs of integers, or of a size that data decide: the real numbers that they are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from ovlpt.graph.constants import is_constant_path, is_real, precision_of
from ovlpt.inspect.numbers.cases import Case
from ovlpt.inspect.numbers.runs import Compile, distances_of, started, with_expected
from ovlpt.inspect.numbers.variants import Variant
from ovlpt.openvino_api import Model, Output, opset1


def floats_above(source: Model, place: int, case: Case) -> list[tuple[str, int]] | None:
    """The real values that an output of integers, or of a size that data decide, is made of: by node and port.

    None for an output of real values in a shape that the inputs decide.
    """
    model = source.clone()
    with suppress(RuntimeError):  # then the shapes that are known have to do
        model.reshape({port: list(a.shape) for port, a in zip(model.inputs, case.samples[0][0], strict=True)})
    pending = [model.get_results()[place].input_value(0)]
    if _has_distance(pending[0]):
        return None
    found: dict[tuple[str, int], None] = {}
    seen = set()
    while pending:
        value = pending.pop()
        node, key = value.get_node(), (value.get_node().get_instance_id(), value.get_index())
        if key in seen or node.get_type_name() == "Parameter" or is_constant_path(node):
            continue
        seen.add(key)
        if _has_distance(value):
            found[node.get_friendly_name(), value.get_index()] = None
        else:
            pending += node.input_values()
    return list(found)


def _has_distance(value: Output) -> bool:
    return is_real(precision_of(value)) and value.get_partial_shape().is_static


def made_of(
    source: Model, sources: Sequence[tuple[str, int]], variant: Variant, simulate: Compile, case: Case
) -> tuple[float, float | None, str]:
    """The lowest SQNR of the ``sources`` with ovlpt and with stock, and what to say of it; not a number for ovlpt where
    there are none, or it does not run.
    """
    if not sources:
        return math.nan, None, "differs, and is not computed from real numbers"
    shown = source.clone()
    nodes = {node.get_friendly_name(): node for node in shown.get_ops()}
    shown.add_results([opset1.result(nodes[name].output(port)) for name, port in sources])
    simulated = with_expected(shown, [case], simulate, [])
    if not simulated:
        return math.nan, None, "differs"
    found: list[float | None] = []
    for run in (variant.ovlpt, variant.stock):
        distances, _ = distances_of(started(run, shown)[0], simulated[0], "")
        found.append(None if distances is None else min(each.sqnr for each in distances[len(source.outputs) :]))
    return math.nan if found[0] is None else found[0], found[1], "compared by the real numbers that it is computed from"
