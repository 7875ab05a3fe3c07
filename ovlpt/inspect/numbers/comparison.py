"""Every variant of a model against the simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from ovlpt.crashes import left_out, optional
from ovlpt.inspect.inputs import output_names
from ovlpt.inspect.numbers.cases import REMEDY, Case
from ovlpt.inspect.numbers.distance import (
    BELOW,
    CHANCE,
    ENOUGH,
    POOR,
    Distance,
    Numbers,
    OutputNumbers,
    Verdict,
    verdict,
)
from ovlpt.inspect.numbers.layer import first_wrong_layer
from ovlpt.inspect.numbers.runs import Compile, Network, add, at_sizes, distances_of, sizes_of, started, with_expected
from ovlpt.inspect.numbers.steadiness import COARSE, FINE, steadiness
from ovlpt.inspect.numbers.variants import Variant
from ovlpt.inspect.numbers.without_distance import floats_above, made_of
from ovlpt.openvino_api import Model
from ovlpt.trace import InputError

# Where `SAMPLES` fail. Of a deep network with ties, stock and ovlpt as near as each other, 4 fail by chance in 3 to 6 of
# 100 comparisons, 16 in less than 1, 32 in less than 1 of 1000.
SURE = 32
STOCK = "the plugin with its own LPT"
STAND_IN = f"{STOCK} cannot run the model: compared with the same transformations done by ovlpt (native_only)"


def compare_numbers(
    source: Model,
    variants: Iterable[Variant],
    simulate: Compile,
    cases: Sequence[Case],
    progress: Callable[[float], object] = lambda part: None,
) -> Numbers:
    """Each of ``variants`` against the simulation, on ``cases``; the layer of the first that fails is looked for.

    ``simulate``: compiles a model whose FakeQuantize operations are computed as such. ``progress`` is called now and then
    with the part that is done, 0 to 1. Raises `InputError` where the model runs on none of the cases.
    """
    variants = list(variants)
    notes: list[str] = []
    simulated = with_expected(source, cases, simulate, notes)
    if simulated == []:
        raise InputError(f"{notes[-1]}, and on no others, so its numbers cannot be compared; {REMEDY}")
    cases = simulated or []
    names = output_names(source)
    records: list[OutputNumbers] = []
    failed: tuple[Variant, Case] | None = None
    stocks: dict[str, Network | None] = {}  # by setting; None where nothing compiles the model
    for number, variant in enumerate(variants if cases else ()):
        progress((number + 1) / (len(variants) + 1))
        network, error = started(variant.ovlpt, source)
        for case in cases:
            distances, why = distances_of(network, case, error)
            near = distances is not None and all(distance.sqnr >= ENOUGH for distance in distances)
            others = None
            if number == 0 or not near:  # what is near needs nothing to be compared with
                if variant.setting not in stocks:
                    stocks[variant.setting] = _stock(variant, source, notes)
                with optional(STOCK):
                    others, _ = distances_of(stocks[variant.setting], case, "")
            if distances is None:
                if others is None:
                    notes.append(f"{variant}, inputs {case.inputs}: neither ovlpt nor the plugin runs it ({why})")
                    continue
                text = f"does not run: {why}"
                records.append(
                    OutputNumbers(names[0], *_place(variant, case), -math.inf, others[0].sqnr, Verdict.WRONG, text)
                )
                failed = failed or (variant, case)
                continue
            found = _records(source, variant, simulate, case, distances, others)
            if any(record.verdict is Verdict.BELOW for record in found):
                sides = (network, distances), (stocks.get(variant.setting), others)
                wide = _with_more(source, simulate, case, sides) or case
                found = _records(source, variant, simulate, wide, distances, others, sure=True)
            records += found
            if failed is None and any(record.fails for record in found):
                failed = variant, case
    notes += _still(names, cases)
    layer = first_wrong_layer(source, failed[0], simulate, failed[1]) if failed else ""
    progress(1.0)
    return Numbers(tuple(records), layer, tuple(dict.fromkeys(notes)))


def _stock(variant: Variant, source: Model, notes: list[str]) -> Network | None:
    """The plugin's own LPT; where it throws, the same transformations by ovlpt, which leave out the same roundings."""
    network = None
    if left_out(STOCK):
        notes.append(f"{STOCK} ended the process")
    else:
        with optional(STOCK):
            network, _ = started(variant.stock, source)
    if network is None and variant.native is not None:
        network, _ = started(variant.native, source)
        if network is not None:
            notes.append(STAND_IN)
    return network


def _records(
    source: Model,
    variant: Variant,
    simulate: Compile,
    case: Case,
    distances: Sequence[Distance],
    others: Sequence[Distance] | None,
    sure: bool = False,
) -> list[OutputNumbers]:
    """What is said of each output, by the distances of ovlpt and of the plugin's own LPT on ``case``. ``sure``: there are no
    more samples.
    """
    found, doubtful = [], POOR if variant.saturates else ENOUGH - CHANCE
    steady = cache(partial(steadiness, source, variant.simulation or simulate, case, COARSE))
    ties = [cache(partial(steadiness, source, simulate, case, moves)) for moves in (FINE, FINE[::-1])]
    for place, (name, distance) in enumerate(zip(output_names(source), distances, strict=True)):
        other = others[place] if others is not None else None
        sources = None
        if distance.broken or distance.noise:
            sources = floats_above(source, place, case)
        made = None if sources is None else partial(made_of, source, sources, variant, simulate, case)
        mine, stock, judged, text = _judged(distance, other, made, variant.floats)
        if made is None and distance.signal:
            if sure and judged is Verdict.BELOW and -math.inf < min(tie()[place] for tie in ties) <= mine + BELOW:
                judged = Verdict.NEAR
            elif not judged.fails and mine < doubtful and mine < steady()[place] - CHANCE:
                judged, text = Verdict.FAR, text or "as with the plugin's own LPT"
        found.append(OutputNumbers(name, *_place(variant, case), mine, stock, judged, text))
    return found


def _with_more(
    source: Model,
    simulate: Compile,
    case: Case,
    sides: Sequence[tuple[Network | None, Sequence[Distance] | None]],
) -> Case | None:
    """The case with `SURE` samples, whose distances are added to those of both ``sides``; None where there are no more."""
    if case.draw is None:
        return None
    samples, found = list(map(case.draw, range(len(case.samples), SURE))), [*case.expected]
    sizes = sizes_of(source, case)
    try:
        simulated = Network(simulate(at_sizes(source, dict(enumerate(sizes))) if sizes else source))
        for sample in samples:
            found.append(expected := simulated(sample))
            for network, distances in sides:
                if network is not None and distances is not None:
                    add(distances, expected, network(sample))
    except RuntimeError:  # the model does not take every sample
        return None
    return replace(case, samples=[*case.samples, *samples], expected=found)


def _judged(
    distance: Distance,
    other: Distance | None,
    made: Callable[[], tuple[float, float | None, str]] | None,
    floats: str,
) -> tuple[float, float | None, Verdict, str]:
    """SQNR of ovlpt and of the plugin's own LPT, the verdict, and what is wrong.

    ``made``: the same of the real numbers that an output without distance is made of, where there are such. ``floats``:
    in f16 they overflow, whoever transforms the model.
    """
    stock, text = None if other is None else other.sqnr, distance.broken
    mine, broken = distance.sqnr, bool(distance.broken)
    if made is not None:
        if mine < (math.inf if stock is None else stock):
            mine, stock, text = made()
            broken = math.isnan(mine)
            mine = -math.inf if broken else mine
        else:
            mine, broken = stock, False
    if broken and other is not None and other.broken:
        broken, stock = floats != "f16", -math.inf
        text = f"{text}, as with the plugin's own LPT"
    needed = stock is not None or mine < ENOUGH
    return mine, stock, verdict(mine, stock, broken) if needed else Verdict.NEAR, text


def _place(variant: Variant, case: Case) -> tuple[str, str, str]:
    return variant.form, variant.setting, case.inputs


def _still(names: Sequence[str], cases: Sequence[Case]) -> Iterator[str]:
    """Outputs that are the same number throughout, which proves little."""
    for place, name in enumerate(names):
        values = [step[place] for case in cases for sample in case.expected for step in sample]
        values = [array for array in values if array.size and np.issubdtype(array.dtype, np.floating)]
        if (
            sum(array.size for array in values) > 1
            and len({float(end) for a in values for end in (a.min(), a.max())}) == 1
        ):
            yield f'output "{name}" is {values[0].flat[0]:g} throughout: its comparison proves little; give inputs with -i'
