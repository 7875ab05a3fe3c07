"""The table of the results, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.breadth.expected import reasons
from tools.breadth.plan import FLOATS, WAYS, flags

HEAD = """# Families of architectures

Networks of timm, torchvision, transformers and torch with random weights, at small sizes, quantized and compiled with the
plugin's own LPT (stock) and with ovlpt, with a fixed shape and with a dynamic batch size at batch 1.

    python -m tools.breadth DIR --markdown docs/breadth.md

CPU: {cpu}. "Floats" is the type of what is not in int8. int8 and executed layers are ovlpt's, then stock's; the decibels
are those of the output that is farthest from the FakeQuantize simulation's (f32, at the fixed shape). Random deep networks
amplify rounding differences. Misses come first; "commit" is that of the code which was measured.
"""


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
    return "\n".join([
        HEAD.format(cpu=processors),
        f"{len(families)} families, {len(networks)} networks, {clean} of {len(built)} runs without a flag.\n", *rows, "",
        *(["## Not built", "", *failed, ""] if failed else []),
    ])  # fmt: skip


def row(line: dict[str, Any], way: str) -> str:
    """One way of one network."""
    stock, mine = (line[way].get(each, {}) for each in ("stock", "ovlpt"))
    failure = line[way].get("failure") or mine.get("failure") or stock.get("failure")
    numbers = ["", "", "", ""]
    if not failure:
        numbers = [
            f"{mine['int8']}/{mine['weighted']}, {stock['int8']}/{stock['weighted']}",
            f"{mine['executed']}, {stock['executed']}", f"{mine['decibels']:.1f}", f"{stock['decibels']:.1f}",
        ]  # fmt: skip
    found = ", ".join(flag.removeprefix(f"{way} ") for flag in flags(line) if flag.startswith(way))
    why = "; ".join(reasons(line, way)) if found else (failure or "")[:100]
    names = [line["family"], line["quantizer"], line.get("floats", FLOATS), way]
    return "| " + " | ".join([*names, *numbers, found, why.replace("|", "/"), line.get("commit", "")]) + " |"
