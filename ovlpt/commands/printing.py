"""What commands print with: rich, and JSON files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ovlpt.trace import InputError


def console():
    try:
        from rich.console import Console
    except ModuleNotFoundError as error:
        raise InputError("the command line needs the package rich: pip install 'ovlpt[cli]'") from error
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160  # a file or a pipe has no width of its own
    return Console(highlight=False, width=width)


def table(*columns: str):
    """Columns by their titles: ">" aligns to the right, "*" lets long text run over several lines."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(
            column.lstrip(">*"),
            justify="right" if column.startswith(">") else "left",
            overflow="fold",
            no_wrap=not column.startswith("*"),
            min_width=16 if column.startswith("*") else 0,
        )
    return made


def check_writable(path: str | None) -> None:
    """Raise `InputError` for a file in a folder that is not there: before the work, not after it."""
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise InputError(f'cannot write "{path}": there is no such folder')


def write_json(path: str | None, content: object) -> None:
    """Write ``content`` to a file, where one is named. Raises `InputError` when it cannot be written."""
    if path is None:
        return
    try:
        Path(path).write_text(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise InputError(f'cannot write "{path}": {error.strerror}') from error
