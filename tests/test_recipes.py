"""The recipes run as they are written; those whose parts are not installed are run by ``python -m tools.recipes``."""

from __future__ import annotations

import json
import re

import pytest

from tools import recipes
from tools.recipes import PAGES, blocks, missing, run

INDEX = (recipes.ROOT / "docs" / "recipes" / "index.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_runs(page, tmp_path):
    if absent := missing(page):
        pytest.skip(f"not installed: {', '.join(absent)}")
    assert [*run(page, tmp_path)] == []


def test_the_index_has_each_recipe_by_its_title():
    listed = dict(re.findall(r"^\| \[(.*)\]\((\w+)\.md\) \|", INDEX, re.MULTILINE))
    assert {name: title for title, name in listed.items()} == {
        page.stem: page.read_text().splitlines()[0].removeprefix("# ") for page in PAGES
    }


def test_the_workflow_runs_the_step_that_is_tried():
    page = next(page for page in PAGES if page.stem == "github_workflow")
    (workflow,) = (block.text for block in blocks(page) if block.title)
    tried = [block.text.strip() for block in blocks(page) if block.language == "sh"]
    assert f"- run: {tried[-1]}\n" in workflow


def test_a_block_that_fails_is_named(tmp_path):
    (tmp_path / "page.md").write_text(
        'Needs: `bash`, `pip install numpy nothing-of-this-name`\n\n```json title="a/b.json"\n{"x": 1}\n```\n\n'
        "```sh\ntest -e a/b.json && test -e model.xml\n```\n\n```python\nraise SystemExit('no')\n```\n"
    )
    assert missing(tmp_path / "page.md") == ["nothing-of-this-name"]
    assert [*run(tmp_path / "page.md", tmp_path)] == ["block 3: status 1, no"]
    assert json.loads((tmp_path / "a" / "b.json").read_text()) == {"x": 1}
