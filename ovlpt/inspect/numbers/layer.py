"""The first layer after which the rule fails."""

from __future__ import annotations

from collections.abc import Sequence

from ovlpt.device import execution_types
from ovlpt.inspect.layer_errors import fused
from ovlpt.inspect.numbers.cases import Case
from ovlpt.inspect.numbers.distance import verdict
from ovlpt.inspect.numbers.runs import Compile, distances_of, started, with_expected
from ovlpt.inspect.numbers.variants import Variant
from ovlpt.inspect.segments import Segments, observed, up_to
from ovlpt.openvino_api import Model


def first_wrong_layer(source: Model, variant: Variant, simulate: Compile, case: Case) -> str:
    """The first layer after which the rule fails; "" where none does."""
    try:
        inside, _ = fused(source, execution_types(variant.ovlpt(source)))
    except RuntimeError:
        inside = set()
    cut = Segments(source, inside)
    points = cut.points
    places = [cut.place_of(segment.point) for segment in cut.segments]
    order = sorted(set(places), key=places.index)
    first = _first_failing(observed(source, inside, order), order, len(source.outputs), variant, simulate, case)
    if first is None:
        first = _first_ending(source, inside, order, variant, simulate, case)
    if first is None:
        return ""
    segment = cut.segments[places.index(first)]
    named = segment.layers or segment.quantized or [points[first].get_node()]
    return ", ".join(node.get_friendly_name() for node in named)


def _first_failing(
    shown: Model, order: Sequence[int], count: int, variant: Variant, simulate: Compile, case: Case
) -> int | None:
    """The first of the points that ``shown`` has as outputs, after ``count`` of its own, at which the rule fails."""
    simulated = with_expected(shown, [case], simulate, [])
    if not simulated:
        return None
    mine, _ = distances_of(started(variant.ovlpt, shown)[0], simulated[0], "")
    other, _ = distances_of(started(variant.stock, shown)[0], simulated[0], "")
    if mine is None:
        return None
    for number, place in enumerate(order):
        distance, stock = mine[count + number], None if other is None else other[count + number].sqnr
        if verdict(distance.sqnr, stock, bool(distance.broken)).fails:
            return place
    return None


def _first_ending(
    source: Model, inside: set[str], order: Sequence[int], variant: Variant, simulate: Compile, case: Case
) -> int | None:
    """The same, of networks that end at one point each; it is assumed that all go wrong from one of them on."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        ends = up_to(source, inside, order[middle])
        if _first_failing(ends, order[middle : middle + 1], 0, variant, simulate, case) is None:
            low = middle + 1
        else:
            high = middle
    return order[low] if low < len(order) else None
