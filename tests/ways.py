"""Ways to run a graph, of which the graphs of a test take one in turn.

A test of 3 shapes, 2 intervals and 3 forms has 18 cases, of 6 graphs. What is wrong with a graph is wrong in all forms, or
it is one value of a parameter that is wrong in one of them: each graph is run in one form, and in more only until each value
has been run in each form. In which form depends on the release, and is another on a limited instruction set: what is left
out of one run is in the next. ``pytest --each-way`` runs all cases, as does a choice by ``-k`` or by a case's name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from operator import itemgetter

import pytest

from ovlpt.openvino_api import RELEASE
from tools.spread import SHARE

# The names of parameters that say how a graph is run. What a graph is made of has other names.
WAYS = frozenset(("form", "how", "is_saved", "serializable", "threads", "way"))
TURN = 2 if SHARE in os.environ else int(RELEASE < (2025, 0))

Case = dict[str, object]  # by names of parameters, their values


def chosen(cases: Sequence[Case], turn: int = TURN) -> list[int]:
    """The numbers of those cases of a test that are run: each graph, and each pair of a value and a way."""
    places = {
        name: {value: at for at, value in enumerate(dict.fromkeys(map(itemgetter(name), cases)))} for name in cases[0]
    }
    graphs: dict[tuple[tuple[str, object], ...], list[int]] = {}
    for number, case in enumerate(cases):
        graphs.setdefault(tuple(each for each in case.items() if each[0] not in WAYS), []).append(number)
    missing, found = set[object]().union(*map(_pairs, cases)), []
    for graph, numbers in graphs.items():
        # as in a Latin square: neighbours in each direction are run in other ways
        first = (sum(places[name][value] for name, value in graph) + turn) % len(numbers)
        in_turn = numbers[first:] + numbers[:first]
        found.append(max(in_turn, key=lambda number: len(missing & _pairs(cases[number]))))
        missing -= _pairs(cases[found[-1]])
    for number, case in enumerate(cases):
        if not missing.isdisjoint(_pairs(case)):
            found.append(number)
            missing -= _pairs(case)
    return sorted(found)


def _pairs(case: Case) -> set[object]:
    return {(way, value) for way in case.items() if way[0] in WAYS for value in case.items()}


def _case(item: pytest.Item) -> Case:
    """The values are the same objects in all cases of a test, and not all have a hash. Names of one mark belong together."""
    values = dict(item.callspec.params) if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    found: Case = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].replace(",", " ").split() if isinstance(mark.args[0], str) else mark.args[0]
        found[" ".join(names)] = tuple(id(values.pop(name)) for name in names)
    return found | {name: id(value) for name, value in values.items()}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--each-way") or config.option.keyword:
        return
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = set[pytest.Item]()
    for family in families.values():
        cases = [*map(_case, family)]
        if not WAYS.isdisjoint(cases[0]):
            left_out |= {*family} - {family[number] for number in chosen(cases)}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
