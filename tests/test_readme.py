"""What the README says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.operations_table import table

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_table_of_operations_is_the_tables():
    assert table() in README


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_the_examples_run(code, tmp_path, monkeypatch):
    """Each example stands alone but for the model at ``path``, which the text introduces."""
    monkeypatch.chdir(tmp_path)
    from ovlpt import data

    exec(compile(code, "README.md", "exec"), {"path": str(data.digits()), "__name__": "example"})
