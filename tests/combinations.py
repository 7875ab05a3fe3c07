"""Parameters of a test whose every combination is one of many that test the same."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest


def every_other(**factors: Sequence) -> pytest.MarkDecorator:
    """Parametrize with half of the combinations: whatever all factors but one are, both kinds of the other occur beside it
    somewhere, so that what a combination of all but one breaks is found.
    """
    chosen = [combination(places, factors) for places in every_other_place(*map(len, factors.values()))]
    return pytest.mark.parametrize(tuple(factors), chosen)


def combination(places: Sequence[int], factors: dict[str, Sequence]) -> tuple:
    return tuple(values[place] for place, values in zip(places, factors.values(), strict=True))


def every_other_place(*sizes: int) -> list[tuple[int, ...]]:
    """The combinations of places whose sum is even."""
    return [places for places in itertools.product(*map(range, sizes)) if sum(places) % 2 == 0]
