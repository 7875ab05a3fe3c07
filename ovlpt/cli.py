"""``ovlpt …``: arguments in, a command called, text out."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ovlpt.commands import activity, arguments
from ovlpt.commands.completion import script
from ovlpt.commands.printing import STDOUT
from ovlpt.display import printable
from ovlpt.files import check_writable, why_not
from ovlpt.interrupts import held_back, interrupts
from ovlpt.trace import InputError, OvlptError
from ovlpt.version import VERSION

_LONGEST = 900  # characters of a complaint

COMMANDS = {  # in the order of the help; each a function of ovlpt.commands.arguments and a module beside it
    "run": "run a quantized model in int8 and show which layers are",
    "explain": "say why operations are not in int8",
    "report": "write one page that says what ran in int8, what did not, why, and what it cost",
    "check": "exit 1 when numbers are wrong, or a layer does not run in the precision that is wanted",
    "compare": "split an accuracy drop into quantization, transformation and bf16",
    "complete": "quantize what a quantizer left out, where that is measured to pay",
    "bench": "measure a model against the plugin's own LPT, float, or another model",
    "verify": "compare each compiled int8 layer with exact integers",
    "fuse": "write a float model with its normalizations fused, to be quantized",
    "transform": "write a transformed model that compiles without ovlpt",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 the answer is no, 2 unusable input, 3 a defect (both one sentence on standard error)."""
    if sys.stderr is None:  # closed: print() would take standard output, which may be read by a program
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  as long as the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # of what the locale has no characters for
    warnings.showwarning = lambda message, *_: complain(message)
    with interrupts() as interrupt:
        try:
            status = _called(sys.argv[1:] if arguments is None else arguments)
        except KeyboardInterrupt:
            return 130
        except Exception as error:
            return 130 if interrupt.told else _failed(error)
    return 130 if interrupt.told else status


def _called(arguments: Sequence[str]) -> int:
    if not arguments:
        parser().print_help()
        return 0
    options = parser().parse_args(arguments)
    log(options.verbose)
    check_outputs(options)
    call = _imported(options)
    with activity.shown(not options.verbose):
        status = call(options)
    if sys.stdout is not None:
        sys.stdout.flush()
    return status


def _imported(options: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    """The command, and OpenVINO, imported whole: an interrupt can leave an import's lock held, for which OpenVINO's
    telemetry then waits in its thread. Silently, too: where the home folder is protected, the telemetry logs an error,
    and with that switches on the printing of everything that is logged.
    """
    printing = logging.root.handlers[:]
    logging.disable(logging.WARNING)
    try:
        with held_back():
            return importlib.import_module(f"ovlpt.commands.{options.command}").call
    finally:
        logging.disable(logging.NOTSET)
        logging.root.handlers[:] = printing


def _failed(error: Exception) -> int:
    if isinstance(error, OvlptError):
        complain(error)
        return 2
    if isinstance(error, BrokenPipeError):
        return _without_output(141)  # as of what the signal ends
    if isinstance(error, OSError):
        complain(f"cannot use {error.filename or 'standard output'}: {why_not(error)}")
        return 2 if error.filename else _without_output(2)
    return _defect(error)  # not Python's own status, which is 1, and to a gate means no


def _defect(error: Exception) -> int:
    """Of ovlpt or of what it calls. With ``-v`` where it happened."""
    if logging.getLogger("ovlpt").isEnabledFor(logging.INFO):
        sys.excepthook(type(error), error, error.__traceback__)
    what = next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
    complain(f"a bug in ovlpt, or in OpenVINO ({type(error).__name__}: {what.strip()}); -v shows where")
    return 3


def _without_output(status: int) -> int:
    """At its end Python would try once more to write what is left, and complain."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def check_outputs(options: argparse.Namespace) -> None:
    """Raise `InputError` where a file that a command is to write cannot be: before the work, not after it."""
    for name in ("output", "report_folder", "resume", "junit", "csv", "save_baseline", "save_counters"):
        if getattr(options, name, None) == STDOUT:
            raise InputError(f'cannot write "{STDOUT}": only --json writes to standard output; give a file name')
    for name in ("json", "junit", "csv", "save_baseline", "save_counters"):
        path = getattr(options, name, None)
        if path != STDOUT:
            check_writable(path)


def complain(what: object) -> None:
    """One line on standard error, of which what is long, as a name may be, is left out in its middle."""
    said = printable(str(what), lines=False)
    if len(said) > _LONGEST:
        said = f"{said[: _LONGEST // 2]} … {said[-_LONGEST // 2 :]}"
    with activity.paused():
        print(f"ovlpt: {said}", file=sys.stderr)


def log(verbosity: int) -> None:
    """What the package does, on standard error: nothing, its steps (1), or each operation, too (2)."""
    logger = logging.getLogger("ovlpt")
    logger.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])
    for handler in [each for each in logger.handlers if isinstance(each, _Log)]:
        logger.removeHandler(handler)
    if verbosity:
        logger.addHandler(_Log())


class _Log(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = _Parser(
        prog="ovlpt",
        description="OpenVINO's Low Precision Transformations in Python.",
        epilog="example: ovlpt run resnet50.xml    (ovlpt COMMAND --help: arguments, and an example of each)",
    )
    made.add_argument("--version", action=_Version, nargs=0, help="print the versions of ovlpt and OpenVINO")
    made.add_argument(
        "--completion",
        action=_Completion,
        choices=("bash", "zsh", "fish"),
        help="print what completes this command line in a shell",
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        getattr(arguments, name)(commands, summary)
    return made


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence, as of all that is unusable."""
        complain(f"{message}; see {self.prog} --help")
        self.exit(2)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_) -> None:
        from importlib.metadata import version

        print(f"ovlpt {VERSION}, OpenVINO {version('openvino')}")
        parser.exit()


class _Completion(argparse.Action):
    def __call__(self, asked: argparse.ArgumentParser, namespace: argparse.Namespace, shell: Any, *_) -> None:
        print(script(parser(), shell))
        asked.exit()
