"""The networks that a comparison of speed with the stock plugin should run: what each is for.

``obstacle`` says what keeps the stock plugin from int8 somewhere in the network, or "none".
"""

from __future__ import annotations

from typing import NamedTuple


class Contender(NamedTuple):
    name: str  # in `tools.zoo.catalogue.CATALOGUE`
    obstacle: str


BENCHMARK = (Contender("resnet50", "none"),)
