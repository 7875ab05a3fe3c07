"""``ovlpt …``: arguments in, a command called, text out."""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Sequence

from ovlpt.display import printable
from ovlpt.trace import OvlptError

COMMANDS = (  # in the order of the help; each is a module of ovlpt.commands
    "run",
    "explain",
    "report",
    "check",
    "compare",
    "bench",
    "verify",
    "transform",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 the answer is no, 2 unusable input (one sentence on the standard error)."""
    options = parser().parse_args(arguments)
    warnings.showwarning = lambda message, *_: complain(message)
    try:
        return options.call(options)
    except OvlptError as error:
        complain(error)
        return 2


def complain(what: object) -> None:
    """One line on the standard error."""
    print(f"ovlpt: {printable(str(what), lines=False)}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    made = argparse.ArgumentParser(
        prog="ovlpt",
        description="OpenVINO's Low Precision Transformations in Python.",
        epilog="example: ovlpt run resnet50.xml    (ovlpt COMMAND --help: arguments, and an example of each)",
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"ovlpt.commands.{name}").add(commands)
    return made
