"""What ends a command's process, as plugins do by faults: told in one sentence, and left out where the command can do without.

The program forks before it imports OpenVINO: the child is the command, the parent waits for it. Elsewhere than on POSIX, and
for who calls `ovlpt.cli.main` or the package, nothing is forked.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator

_SIZE = 1024  # bytes
_FAULTS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP")

_under_way: mmap.mmap | None = None  # shared: what the child does that it could do without
_left_out: set[str] = set()


@contextlib.contextmanager
def optional(what: str) -> Iterator[None]:
    """If the process ends within, the command starts anew, and finds ``what`` to be `left_out`."""
    _say(what)
    try:
        yield
    finally:
        _say("")


def left_out(what: str) -> bool:
    """Whether it ended the process before."""
    return what in _left_out


def supervised(command: Callable[[], int]) -> int:
    """The status of a command that runs in a child of this process."""
    global _under_way
    if not hasattr(os, "fork"):
        return command()
    _under_way = mmap.mmap(-1, _SIZE)
    while True:
        _say("")
        signals = _signals()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # until they can be passed on
        child = os.fork()
        if not child:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return command()
        status = _waited_for(child, signals, before)
        if status >= 0:
            return status
        name, what = signal.Signals(-status).name, _under_way[:].rstrip(b"\0").decode(errors="replace")
        if name not in _FAULTS:  # for who waits for this process, the same
            with contextlib.suppress(OSError):  # of SIGKILL
                signal.signal(-status, signal.SIG_DFL)
            signal.raise_signal(-status)
        if what and what not in _left_out:
            _left_out.add(what)
            continue
        print(f"ovlpt: {name} ended the process: a bug in OpenVINO, or in ovlpt", file=sys.stderr)
        return 3


def _say(what: str) -> None:
    if _under_way is not None:
        _under_way[:] = what.encode()[:_SIZE].ljust(_SIZE, b"\0")


def _waited_for(child: int, signals: list[signal.Signals], mask: set[int | signal.Signals]) -> int:
    """Its status, or the negative number of the signal that ended it. What this process is told, it passes on: ``signals``,
    which are blocked so far; ``mask``: what is blocked from then on.
    """
    before = {each: signal.signal(each, lambda number, _: _pass_on(child, number)) for each in signals}
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _signals() -> list[signal.Signals]:
    """Those that this process was not told to ignore, as nohup does."""
    found = [getattr(signal, name) for name in _PASSED_ON]
    return [each for each in found if signal.getsignal(each) is not signal.SIG_IGN]


def _pass_on(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
