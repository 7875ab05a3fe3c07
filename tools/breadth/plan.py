"""What is run, and what is worse than stock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tools.breadth.families import FAMILIES

DEFAULT = "default"
OTHERS = ("mixed", "every_range_halved", "smooth_quant", "onnx_runtime", "onnx_runtime_signed")
WAYS = ("static", "open")
TENTH = 10
ROUNDING = 80.0  # dB: beyond, the rounding of f32 decides


def plan(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Family and quantizer: each of the names by the default, then those among every tenth family by the others."""
    tenth = list(FAMILIES)[::TENTH]
    yield from ((name, DEFAULT) for name in names)
    yield from ((name, other) for name in names if name in tenth for other in OTHERS)


def flags(line: dict[str, Any]) -> list[str]:
    """What is worse than stock in a line of the results: the way and what it is, as "open SQNR"."""
    found = []
    for way in WAYS:
        stock, mine = (line.get(way, {}).get(each, {}) for each in ("stock", "ovlpt"))
        if "failure" in mine:
            found += [] if "failure" in stock else [f"{way} failure"]
        elif mine and "failure" not in stock:
            worse = {
                "int8": mine["int8"] < stock["int8"],
                "layers": mine["executed"] > stock["executed"],
                "SQNR": mine["decibels"] < min(stock["decibels"], ROUNDING) - 1,
            }
            found += [f"{way} {what}" for what, is_worse in worse.items() if is_worse]
    return found
