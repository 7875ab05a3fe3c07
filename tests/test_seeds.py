"""Every row of docs/seeds.md names code that is there, and a test or a documented command that shows it."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import re
from functools import reduce
from itertools import pairwise
from pathlib import Path

import pytest

from ovlpt.cli import COMMANDS, parser

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "seeds.md").read_text()


def rows(text: str = PAGE) -> list[list[str]]:
    """Of all tables: what is stated, where it is, what shows it."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"]
    titles = {id(row) for row, ruler in pairwise(cells) if set("".join(ruler)) <= set("- |")}
    kept = [row for row in cells if id(row) not in titles and not set("".join(row)) <= set("- |")]
    return [[row[0], *row[-2:]] for row in kept]


def named(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        try:
            reduce(getattr, parts[size:], module)
        except AttributeError:
            return False
        return True
    return False


def is_test(place: str) -> bool:
    path, _, name = place.partition("::")
    if not (ROOT / path).is_file():
        return False
    body = ast.parse((ROOT / path).read_text()).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return any(name in ("", node.name) and not is_left_out(node) for node in functions)


def is_left_out(test: ast.FunctionDef) -> bool:
    """Whether it is always skipped, or may fail."""
    return any(re.match(r"pytest\.mark\.(skip|xfail)\b", ast.unparse(each)) for each in test.decorator_list)


def options_of(command: str) -> set[str]:
    """What the command's own parser takes."""
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {option for action in commands.choices[command]._actions for option in action.option_strings}


def is_command(text: str) -> bool:
    """One of the package's with options of its own, or a tool that the documents name."""
    words = text.split()
    if words[0] == "ovlpt":
        return words[1] in COMMANDS and {word for word in words if word[0] == "-"} <= options_of(words[1])
    documented = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md") if page.name != "seeds.md")
    return words[:2] == ["python", "-m"] and importlib.util.find_spec(words[2]) is not None and text in documented


@pytest.mark.parametrize("statement, where, shown", rows(), ids=lambda text: text[:40])
def test_what_a_row_names_is_there(statement, where, shown):
    assert named(where) or where.startswith("no pass")
    assert named(shown)
    for name in named(where):
        assert "." not in name or is_there(name), name
    for place in named(shown):
        assert is_test(place) if place.startswith("tests/") else is_command(place), place


def test_what_is_not_there_is_found():
    assert not is_there("ovlpt.low_precision.NOTHING")
    assert not is_test("tests/test_seeds.py::test_nothing")
    assert not is_test("tests/test_seeds.py::is_test")  # a function, but no test
    assert not is_test("tests/test_nothing.py::test_what_is_not_there_is_found")
    assert not is_test("tests/graphs.py")
    assert is_left_out(ast.parse("@pytest.mark.skip(reason='')\ndef test_it(): ...").body[0])
    assert not is_left_out(ast.parse("@pytest.mark.skipif(True, reason='')\ndef test_it(): ...").body[0])
    assert not is_command("ovlpt explain --execute-nothing")
    assert not is_command("python -m tools.nothing")


def test_the_names_of_step_1_are_there():
    for name in re.findall(r"`(ovlpt\.[\w.]+)`", PAGE):
        assert is_there(name), name


STATEMENTS = {
    "OpenVINO's guide to LPT": 68,
    "The Add transformation": 13,
    "Fusions of AMCT": 29,
    "FakeQuantize in the CPU plugin": 30,
    "SNPS-Caffe's quantized operators": 27,
}
"""How many there are of each document; a row holds one."""


def test_no_document_is_left_out():
    titles = re.findall(r"^## (.*)", PAGE, re.M)
    assert titles == list(STATEMENTS)
    for title, text in zip(titles, re.split(r"^## .*", PAGE, flags=re.M)[1:], strict=True):
        own = [row[0] for row in rows(text.split("\n### ")[0])]
        assert len(set(own)) == len(own) == STATEMENTS[title], title
