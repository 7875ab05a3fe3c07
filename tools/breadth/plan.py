"""What is run, and what is worse than stock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tools.breadth.families import FAMILIES

DEFAULT = "default"
OTHERS = ("mixed", "every_range_halved", "smooth_quant", "onnx_runtime", "onnx_runtime_signed")
WAYS = ("static", "open")
FLOATS = "f32"
TENTH = 10
ROUNDING = 80.0  # dB: beyond, the rounding of f32 decides
FAR = 10.0  # dB: from the same at its fixed shape, where stock gives nothing to compare with


def plan(names: Sequence[str], types: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Family, quantizer and type of floats: for each type the names by the default, then by the others those that are
    among every tenth family.
    """
    tenth = list(FAMILIES)[::TENTH]
    for floats in types:
        yield from ((name, DEFAULT, floats) for name in names)
        yield from ((name, other, floats) for name in names if name in tenth for other in OTHERS)


def is_below(mine: Sequence[float], stock: Sequence[float]) -> bool:
    """Whether paired samples are lower beyond their own spread: what bf16 rounds differs by chance in each of them."""
    differences = np.subtract(np.clip(mine, -ROUNDING, ROUNDING), np.clip(stock, -ROUNDING, ROUNDING))
    return bool(differences.mean() < -2 * differences.std(ddof=1) / np.sqrt(len(differences)))


def flags(line: dict[str, Any]) -> list[str]:
    """What is worse than stock in a line of the results: the way and what it is, as "open SQNR"; and what is far from the
    same at its fixed shape, where stock fails or is as far.
    """
    found = []
    for way in WAYS:
        stock, mine = (line.get(way, {}).get(each, {}) for each in ("stock", "ovlpt"))
        if "failure" in mine:
            found += [] if "failure" in stock else [f"{way} failure"]
        elif mine and "failure" in stock:
            fixed = line.get("static", {}).get("ovlpt", {}).get("decibels", mine["decibels"])
            found += [f"{way} SQNR"] if mine["decibels"] < min(fixed, ROUNDING) - FAR else []
        elif mine and "failure" not in stock:
            worse = {
                "int8": bool(mine["lost"]) if "lost" in mine else mine["int8"] < stock["int8"],
                "layers": mine["executed"] > stock["executed"],
                "SQNR": mine["decibels"] < min(stock["decibels"], ROUNDING) - 1
                and (line.get("floats", FLOATS) == FLOATS or is_below(mine["each"], stock["each"])),
            }
            found += [f"{way} {what}" for what, is_worse in worse.items() if is_worse]
            if not worse["SQNR"] and is_far(mine, line.get("static", {}).get("ovlpt", {})):
                found.append(f"{way} SQNR")
    return found


def is_far(mine: dict[str, Any], fixed: dict[str, Any]) -> bool:
    """Whether a run is far from the same at its fixed shape in its samples together, however far stock is."""
    if "each" not in mine or "each" not in fixed:
        return False
    return mine["decibels"] < min(fixed["decibels"], ROUNDING) - FAR and is_below(mine["each"], fixed["each"])
