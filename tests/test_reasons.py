"""The table of reasons and the sources that give them."""

from __future__ import annotations

import ast
from itertools import chain
from pathlib import Path

import pytest

from ovlpt import reasons
from ovlpt.trace import Reason

PACKAGES = [Path(__file__).parents[1] / name for name in ("ovlpt", "plugin_config")]
_PLACE_OF_CODE = {"Reason": 0, "reject": 0, "_check_sums": 3, "reject_unless": 1, "_of_row": 0}


def given() -> set[str]:
    """The codes with which the sources give a reason, or that they call ``code`` first; ABSENT stands for "absent"."""
    codes = set()
    for path in chain.from_iterable(package.rglob("*.py") for package in PACKAGES):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                place = _PLACE_OF_CODE.get(name, len(node.args))
                code = node.args[place] if place < len(node.args) else None
                if isinstance(code, ast.Constant):
                    codes.add(code.value)
                elif isinstance(code, ast.Name) and code.id.isupper():
                    codes.add(code.id.lower())
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "code":
                constants = {value.value for value in ast.walk(node.value) if isinstance(value, ast.Constant)}
                codes |= constants & set(reasons.ROWS)
    return codes


def test_each_code_is_given_somewhere():
    assert given() == set(reasons.ROWS)


def test_what_is_said_of_weights_is_said_of_data_by_a_code_of_data():
    pairs = [(row, reasons.ROWS[row.for_data]) for row in reasons.ROWS.values() if row.for_data]
    assert len(pairs) == 7
    assert all(row.of_weights and not other.of_weights for row, other in pairs)


def test_an_unknown_code():
    with pytest.raises(ValueError, match='"because" is not a reason'):
        Reason("because", "it is so")


def test_a_code_of_ones_own(request):
    request.addfinalizer(lambda: reasons.ROWS.pop("own"))
    reasons.add(reasons.Row("own", reasons.Cause.PLACEMENT, "quantize it in another way"))
    assert Reason("own", "it is mine").code == "own"
    with pytest.raises(ValueError, match='a reason "bias" already'):
        reasons.add(reasons.Row("bias"))
