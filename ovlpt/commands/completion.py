"""What completes the command line in a shell: a script, so that completing a word does not start Python."""

from __future__ import annotations

import argparse
import re
from typing import Any

from ovlpt.trace import InputError

_FILES = (
    "FILE",
    "FLOAT",
    "MODEL",
    "OTHER",
    "SIDE",
)  # metavars of arguments that are files, beside those with an extension


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for bash, zsh or fish. Raises `InputError` without the package shtab."""
    try:
        import shtab
    except ModuleNotFoundError as error:
        raise InputError("completion needs the package shtab: pip install 'ovlpt[completion]'") from error

    for action in _actions(parser):
        if action.metavar == "FOLDER":
            action.complete = shtab.DIRECTORY
        elif action.metavar in _FILES or "." in str(action.metavar):
            action.complete = shtab.FILE
    text = shtab.complete(parser, shell)
    # one dash and a word, as benchmark_app's options are, is not a letter to fish
    return re.sub(r"^(complete .*?) -s (?=\w\w)", r"\1 -o ", text, flags=re.MULTILINE) if shell == "fish" else text


def _actions(parser: argparse.ArgumentParser) -> list[Any]:  # shtab reads an attribute that they do not declare
    """Of the parser and of its commands."""
    found = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [each for command in action.choices.values() for each in _actions(command)]
    return found
