"""``ovlpt …``: arguments in, a command called, text out."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from ovlpt.commands import check, explain, run, transform, verify
from ovlpt.trace import OvlptError

COMMANDS = (run, explain, check, transform, verify)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 the answer is no, 2 unusable input (one sentence on the standard error)."""
    parser = argparse.ArgumentParser(prog="ovlpt", description="OpenVINO's Low Precision Transformations in Python.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    warnings.showwarning = lambda message, *_: print(f"ovlpt: {message}", file=sys.stderr)
    try:
        return options.call(options)
    except OvlptError as error:
        print(f"ovlpt: {error}", file=sys.stderr)
        return 2
