"""The documented table is what running gives."""

from __future__ import annotations

from pathlib import Path

from ovlpt.openvino_api import RELEASE
from tools.fusions_table import before_and_after, lines

DOCUMENT = Path(__file__).parents[2] / "docs/fusions.md"


def test_table_is_true() -> None:
    """OpenVINO's own column holds for the release that the text names, ovlpt's for every one."""
    text = DOCUMENT.read_text()
    text = text[text.index("| structure ") :].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()][2:]
    if RELEASE == (2026, 4):
        assert [list(line) for line in lines()] == rows
    else:
        assert {(name, layout, own) for name, layout, _, _, own in lines()} == {(r[0], r[1], r[4]) for r in rows}


def test_the_networks_before_and_after() -> None:
    assert before_and_after() in DOCUMENT.read_text()
