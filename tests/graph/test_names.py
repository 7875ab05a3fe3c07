"""What is added to the names of nodes comes off again, and nothing else does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ovlpt
from ovlpt.graph import names
from ovlpt.graph.names import Made


@pytest.mark.parametrize("name", ["conv", "/features/0/Conv", "x_original_y", "Scale", "/Scales"])
def test_there_and_back(name):
    assert names.given(names.original(name)) == name
    assert names.original(names.original(name)) == names.original(name)
    assert names.renamed(names.made_for(names.original(name), Made.RANK_3)) == names.original(name)
    assert names.renamed(names.original(name)) == names.renamed(name) == name
    assert names.without_added(names.original(names.dequantization(name, "Multiply"))) == name
    assert names.without_added(names.made_for(names.original(name), Made.OF_VECTOR)) == name
    assert names.is_dequantization(names.dequantization(name, "Subtract"))
    assert not names.is_dequantization(names.made_for(name, Made.ZERO_POINT))


def test_nobody_else_writes_suffixes():
    """A text that begins with one of them stands in `ovlpt.graph.names` only."""
    written = {f"/{made}" for made in Made} | {names.ORIGINAL_SUFFIX}
    found = []
    for path in Path(ovlpt.__file__).parent.rglob("*.py"):
        if path.name == "names.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in written:
                found.append(f"{path.name}:{node.lineno}")
    assert found == [], "ovlpt.graph.names.made_for writes them"
