"""``ovlpt …``: arguments in, a command called, text out."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Sequence

from ovlpt.commands.settings import check_outputs
from ovlpt.display import printable
from ovlpt.files import why_not
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
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # of what the locale has no characters for
    warnings.showwarning = lambda message, *_: complain(message)
    try:
        options = parser().parse_args(arguments)
        check_outputs(options)
        status = options.call(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except OvlptError as error:
        complain(error)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _without_output(141)  # as of what the signal ends
    except OSError as error:
        complain(f"cannot use {error.filename or 'the standard output'}: {why_not(error)}")
        return 2 if error.filename else _without_output(2)


def _without_output(status: int) -> int:
    """At its end Python would try once more to write what is left, and complain."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


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
