"""The package's version: of the installed package, or of the sources where it is none."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

try:
    VERSION = version("ovlpt")
except PackageNotFoundError:
    VERSION = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["version"]
