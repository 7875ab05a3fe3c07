"""What commands print with: rich, and JSON in one envelope."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from typing import Any, Literal

from ovlpt.commands import activity
from ovlpt.display import printable
from ovlpt.files import write_text
from ovlpt.trace import InputError
from ovlpt.version import VERSION

SCHEMA = 1  # of what ``--json`` writes (`ovlpt.data.schema`): goes up when a key changes its meaning or is gone
STDOUT = "-"  # the name of a JSON file: what is printed for people then goes to standard error
_UNLIMITED = 10_000  # columns: what another program reads is not cut


def _width(stream) -> int | None:
    """Of what is printed: the variable COLUMNS, or the terminal's; None for a file or a pipe, which has none."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    return shutil.get_terminal_size().columns if stream is not None and stream.isatty() else None


def columns() -> dict[str, str]:
    """The variable that tells another process the width; it prints into a pipe."""
    width = _width(sys.stdout)
    return {} if width is None else {"COLUMNS": str(width)}


def say(text: str, json: str | None = None) -> None:
    """One line for people. ``json``: the file for programs, which may be standard output."""
    with activity.paused():
        print(text, file=sys.stderr if json == STDOUT else sys.stdout)


def console(json: str | None = None):
    """What prints every name as it is: nothing in it is markup, and nothing in it reaches the terminal as a command.

    ``json``: the file for programs, which may be standard output.
    """
    try:
        from rich.console import Console
    except ModuleNotFoundError as error:
        raise InputError("the command line needs the package rich: pip install 'ovlpt[cli]'") from error

    class Printer(Console):
        def print(self, *objects, **options) -> None:
            with activity.paused():
                super().print(*objects, **options)

        def render_str(self, text: str, **options):
            known = printable(text).encode(self.encoding, "backslashreplace").decode(self.encoding)
            return super().render_str(known, **options)  # as wide as what the locale has characters for

        def on_broken_pipe(self) -> None:  # which would end the process
            raise BrokenPipeError

    stream = sys.stderr if json == STDOUT else sys.stdout
    options: dict[str, Any] = {"stderr": json == STDOUT, "width": _width(stream) or _UNLIMITED}
    return Printer(highlight=False, markup=False, emoji=False, **options)


def table(*columns: str):
    """Columns by their titles: ">" aligns to the right. Where they are too wide for the terminal, all text is folded and
    none is cut.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        justify: Literal["right", "left"] = "right" if column.startswith(">") else "left"
        made.add_column(column.removeprefix(">"), justify=justify, overflow="fold")
    return made


def write_result(options: argparse.Namespace, result: dict[str, object], **envelope: object) -> None:
    """Write the result of a command where ``--json`` says, in the envelope that all commands share; "-" is the standard
    output. ``envelope``: what the options do not say of it (the model), or elsewhere (``path``). Raises `InputError` when
    it cannot be written.
    """
    import openvino  # here, not above: help is to be there at once

    path: Any = envelope.pop("path", options.json)
    head = {"schema": SCHEMA, "version": VERSION, "command": options.command, "model": options.model}
    content = {**head, "device": options.device, "openvino": openvino.__version__, **envelope, "result": result}
    text = json.dumps(_strict(content), indent=1, allow_nan=False) + "\n"
    if path == STDOUT:
        with activity.paused():
            sys.stdout.write(text)
    elif path is not None:
        write_text(path, text)


def _strict(value: object) -> object:
    """JSON cannot express numbers that are not finite; they are written as the text "inf", "-inf" or "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    return [_strict(each) for each in value] if isinstance(value, (list, tuple)) else value
