"""For people who work on the package or measure it; each is a command, ``python -m tools.NAME`` (docs/tools.md)."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import TracebackType


def needed(module: str) -> str:
    """The sentence about a package that is not installed, with the extra that brings it."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
    extras = [
        extra
        for extra, packages in project["optional-dependencies"].items()
        if module in (re.split(r"[\[<>=]", package)[0].replace("-", "_") for package in packages)
    ]
    return f"this needs the package {module}" + (f": pip install -e '.[{extras[0]}]'" if extras else "")


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """One sentence in place of the trace."""
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if missing in ("", "ovlpt", "tools", "tests"):
        sys.__excepthook__(kind, error, trace)
    else:
        print(needed(missing), file=sys.stderr)


sys.excepthook = _told
