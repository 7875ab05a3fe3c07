"""The table of `tools.real`, as text and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ovlpt.device.instruction_sets import own
from ovlpt.openvino_api import RELEASE, Core
from tools.real.expected import EXPECTED
from tools.real.measure import FLOAT, OVLPT, RUNTIME, SIMULATION, STOCK, Result
from tools.real.networks import REAL

HEAD = (
    "network",
    "variant",
    "metric",
    FLOAT,
    RUNTIME,
    SIMULATION,
    STOCK,
    OVLPT,
    "dB stock",
    "dB ovlpt",
    "int8",
    "layers",
    "in the CPU's default",
    "worse than stock",
)
MARKDOWN = """# Real networks

Pretrained networks from wheels on the package index, quantized on real data and measured on their tasks.

    python -m tools.zoo real -o DIR && python -m tools.real DIR --markdown docs/real_networks.md

Each row is one quantization: `default` and `mixed` are presets of NNCF, `qdq_u8i8` (one scale a tensor) and `qdq_s8s8`
(a scale for each channel of the weights, except for Magika) are ONNX Runtime's, as is `qop_u8i8`, with its integer operations
in place of QuantizeLinear and DequantizeLinear. The metric of the task is given for the
float network, ONNX Runtime where it wrote the file, the FakeQuantize simulation, the plugin's own LPT (stock) and ovlpt; the decibels are those of the output that
is farthest from the simulation's; int8 and executed layers are ovlpt's, then stock's. All of these with floats in f32; in the
CPU's default type, where that is another, the decibels of stock and of ovlpt and the executed layers. Misses come first;
`throws` stands where the plugin's own LPT cannot compile the file. Two networks are TFLite files, which ONNX Runtime's quantizer cannot read, and OpenVINO cannot read what it makes of the pitch
network. ONNX Runtime ends the process where it optimizes the files of the sleep spindles, which run as they are written, and on their integer operations. Magika classifies files of the machine at hand: its accuracies are comparable within a row only. [What rounding
decides](rounding.md) says how close an int8 network can be. Measured with OpenVINO {release} on {cpu}.

## Results

{results}

## Networks

{networks}
"""
_TABLE = re.compile(r"(?m)(?:^\|.*\n?)+")


def rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A row for each result; what is worse than stock comes first, what is expected to be after that."""
    found = []
    for result in results:
        misses, allowed = result.misses(), EXPECTED.get((result.network, result.variant), {})
        said = [
            f"{what}: {sentence}" + (f" (expected: {allowed[what]})" if what in allowed else "")
            for what, sentence in misses.items()
        ]
        rank = 0 if set(misses) - set(allowed) else 1 if misses else 2
        metrics = [metric(result, name) for name in (FLOAT, RUNTIME, SIMULATION, STOCK, OVLPT)]
        counts = ["", "", "", "", ""]
        for end, (stock, mine) in result.pairs().items():
            theirs, low, layers = (
                ("throws", "throws", "throws")
                if stock.throws
                else (f"{stock.decibels:.1f}", f"{stock.int8}/{stock.weighted}", f"{stock.executed}")
            )
            if end:
                row = f"{theirs} and {mine.decibels:.1f} dB, {mine.executed}, {layers} layers in{end}"
                counts[4] = "; ".join(filter(None, (counts[4], row)))
            else:
                counts[:2] = theirs, f"{mine.decibels:.1f}"
                counts[2:4] = f"{mine.int8}/{mine.weighted}, {low}", f"{mine.executed}, {layers}"
        found.append(
            (rank, (result.network, result.variant, REAL[result.network].metric, *metrics, *counts, "; ".join(said)))
        )
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def metric(result: Result, name: str) -> str:
    """The sum of scores that are right or wrong, of how many; the mean of others."""
    if name not in result.runs:
        return ""
    if result.runs[name].throws:
        return "throws"
    scores = np.array(result.runs[name].scores)
    return f"{scores.sum():.0f}/{len(scores)}" if np.isin(scores, (0, 1)).all() else f"{scores.mean():.3f}"


def text(results: Sequence[Result]) -> str:
    """The table in columns."""
    table = [HEAD, *rows(results)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEAD) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in table
    )


def markdown(results: Sequence[Result]) -> str:
    """The table with what stands around it, as a file of Markdown."""
    networks = [
        ("network", "task", "wheel", "licence"),
        *((name, each.kind, each.wheel, each.licence) for name, each in REAL.items()),
    ]
    cpu = f"{Core().get_property('CPU', 'FULL_DEVICE_NAME').strip()} ({own().onednn})"
    release = ".".join(map(str, RELEASE))
    return MARKDOWN.format(results=grid([HEAD, *rows(results)]), networks=grid(networks), release=release, cpu=cpu)


def renewed(page: str, results: Sequence[Result]) -> str:
    """``page``, which `markdown` wrote before, with a new beginning and new tables; what else has been added to it stays."""
    (beginning, *new), (_, *old) = map(_sections, (markdown(results), page))
    by_heading = {_heading(each): each for each in new}
    return beginning + "".join(_with_table_of(each, by_heading.get(_heading(each), "")) for each in old)


def _sections(page: str) -> list[str]:
    return re.split(r"(?m)^(?=## )", page)


def _heading(section: str) -> str:
    return section.partition("\n")[0]


def _with_table_of(text: str, new: str) -> str:
    """The text with the table of another, where that has one."""
    found = _TABLE.search(new)
    return _TABLE.sub(lambda _: found[0], text, count=1) if found else text


def grid(table: Sequence[Sequence[str]]) -> str:
    """Rows as a table of Markdown; the first is the head."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
    return "\n".join([lines[0], "| " + " | ".join("---" for _ in table[0]) + " |", *lines[1:]])
