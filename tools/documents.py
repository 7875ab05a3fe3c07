"""Documents that lie outside docs/ become pages of it: a hook of ``mkdocs build``, which mkdocs.yml names.

The README is the first page; CONTRIBUTING.md and CHANGELOG.md keep their places, too, where people look for them.
"""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Each of `PAGES` is added, with its links as they are from within docs/."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text().replace("](docs/", "](")
        for other, its_page in PAGES.items():
            text = text.replace(f"]({other}", f"]({its_page}")
        files.append(File.generated(config, page, content=text))
    return files
