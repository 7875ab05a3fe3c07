"""The notebooks are kept without outputs; ``python -m tools.notebooks`` runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tools" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path) -> list[dict]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_these_are_all():
    assert [path.stem for path in NOTEBOOKS] == [
        "first_steps",
        "own_transformations",
        "reading_text",
        "restrictions_and_callbacks",
        "why_is_this_layer_not_int8",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path):
    for cell in cells(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
