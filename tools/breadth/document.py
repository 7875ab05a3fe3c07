"""The table of the results, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.breadth.expected import reasons
from tools.breadth.families import FAMILIES
from tools.breadth.plan import FLOATS, OTHERS, WAYS, flags

HEAD = """# Families of architectures

Networks of timm, torchvision, transformers and torch with random weights, at small sizes, quantized and compiled with the
plugin's own LPT (stock) and with ovlpt, with a fixed shape and with a dynamic batch size at batch 1.

    python -m tools.breadth DIR --markdown docs/breadth.md

CPU: {cpu}. "Floats" is the type of what is not in int8. int8 and executed layers are ovlpt's, then stock's; the decibels
are those of the output that is farthest from the FakeQuantize simulation's (f32, at the fixed shape). Random deep networks
amplify rounding differences. Misses come first; "commit" is that of the code which was measured.
"""
APART = "## Settings of quantizers"


def kept(written: str) -> str:
    """What an earlier document has of settings of quantizers, which are measured apart."""
    return "\n" + written[written.index(APART) :] if APART in written else ""


def document(lines: Sequence[dict[str, Any]]) -> str:
    """The whole document."""
    built = sorted((line for line in lines if "failure" not in line), key=lambda line: not flags(line))
    clean = sum(not flags(line) for line in built)
    families = {line["family"] for line in built}
    networks = {(line["family"], line["quantizer"]) for line in built}
    processors = ", ".join(dict.fromkeys(line["cpu"] for line in built if line.get("cpu")))
    rows = [
        "| family | quantizer | floats | batch | int8 | layers | dB ovlpt | dB stock | worse than stock | why | commit |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(row(line, way) for line in built for way in WAYS),
    ]
    failed = [
        f"- {line['family']} ({line['quantizer']}): {line['failure'][:160]}" for line in lines if "failure" in line
    ]
    absent = not_measured(lines)
    return "\n".join([
        HEAD.format(cpu=processors),
        f"{len(families)} families, {len(networks)} networks, {clean} of {len(built)} runs without a flag.\n", *rows, "",
        *(["## Not built", "", *failed, ""] if failed else []),
        *(["## Not measured", "", *absent, ""] if absent else []),
    ])  # fmt: skip


def not_measured(lines: Sequence[dict[str, Any]]) -> list[str]:
    """What of the plan no line is about: families, quantizers, and floats in another type than f32."""
    measured = {what: {line.get(what, FLOATS) for line in lines} for what in ("family", "quantizer", "floats")}
    families = [name for name in FAMILIES if name not in measured["family"]]
    quantizers = [name for name in OTHERS if name not in measured["quantizer"]]
    found = [
        f"- {what}: {', '.join(names)}" for what, names in (("families", families), ("quantizers", quantizers)) if names
    ]
    if measured["floats"] == {FLOATS}:
        return [*found, "- floats in a CPU's default type, where that is not f32"]
    of_type = {floats: _networks(lines, floats) for floats in measured["floats"]}
    missing = {floats: len(of_type.get(FLOATS, set()) - networks) for floats, networks in sorted(of_type.items())}
    return [*found, *(f"- floats in {floats}: {count} networks" for floats, count in missing.items() if count)]


def _networks(lines: Sequence[dict[str, Any]], floats: str) -> set[tuple[str, str]]:
    return {(line["family"], line["quantizer"]) for line in lines if line.get("floats", FLOATS) == floats}


def row(line: dict[str, Any], way: str) -> str:
    """One way of one network; of what throws, who it is, and what the other computes."""
    runs = {name: line[way].get(name, {}) for name in ("ovlpt", "stock")}
    counts = [", ".join(map(cell, runs.values())) for cell in (_int8, _executed)] if any(runs.values()) else ["", ""]
    numbers = [*counts, *map(_decibels, runs.values())]
    found = ", ".join(flag.removeprefix(f"{way} ") for flag in flags(line) if flag.startswith(way))
    failed = [f"{name} throws: {run['failure'][:160]}" for name, run in runs.items() if "failure" in run]
    why = "; ".join([*reasons(line, way), *failed]) if found else line[way].get("failure", "; ".join(failed))
    names = [line["family"], line["quantizer"], line.get("floats", FLOATS), way]
    return "| " + " | ".join([*names, *numbers, found, why.replace("|", "/"), line.get("commit", "")]) + " |"


def _int8(run: dict[str, Any]) -> str:
    return f"{run['int8']}/{run['weighted']}" if "int8" in run else "-"


def _executed(run: dict[str, Any]) -> str:
    return str(run.get("executed", "-"))


def _decibels(run: dict[str, Any]) -> str:
    return f"{run['decibels']:.1f}" if "decibels" in run else ""
