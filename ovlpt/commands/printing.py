"""What commands print with: rich, and JSON files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def progress_bar(out, label: str) -> Iterator[Callable[[float], None]]:
    """A bar while something runs; it is told which part is done, 0 to 1, and vanishes at the end."""
    from rich.progress import Progress

    with Progress(console=out, transient=True) as progress:
        task = progress.add_task(label, total=1.0)
        yield lambda part: progress.update(task, completed=part)


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
