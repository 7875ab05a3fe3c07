"""Ctrl-C, which a terminal sends to each process of a command: all of them end, and none prints where it was."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

_POSIX = hasattr(os, "register_at_fork")  # elsewhere an interrupt is what Python makes of it
_SIGINT = (signal.SIGINT,)
_AGAIN = 0.5  # seconds


class Interrupts:
    """The handler of a command. ``told``: whether one came.

    Its exception can get lost: in a callback of the garbage collector, or as OpenVINO makes what a pass in Python raises
    its own. So it is raised again until it is under way to the top.
    """

    told = False

    def __call__(self, *_: object) -> None:
        if self.told:  # by the terminal, and by the process that waits for this one
            return
        self.told = True
        if _POSIX:
            signal.signal(signal.SIGALRM, self._again)
            signal.siginterrupt(signal.SIGALRM, False)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
        raise KeyboardInterrupt

    def _again(self, *_: object) -> None:
        error = sys.exc_info()[1]  # the exception that cleanup code is handling
        while error is not None and not isinstance(error, KeyboardInterrupt):
            error = error.__context__
        if error is None:
            raise KeyboardInterrupt

    def unless_told(self, hook: Callable[..., object]) -> Callable[[Any], object]:
        """A hook of Python that prints where an exception came up, which an interrupt makes superfluous."""
        return lambda raised: None if self.told else hook(raised)


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Handled by what is yielded, unless who calls has a handler of their own."""
    handler, before = Interrupts(), signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before not in (
        signal.default_int_handler,
        signal.SIG_DFL,
    ):
        yield handler
        return
    hooks = sys.unraisablehook, threading.excepthook
    sys.unraisablehook, threading.excepthook = (handler.unless_told(hook) for hook in hooks)
    signal.signal(signal.SIGINT, handler)
    try:
        yield handler
    finally:
        if handler.told and _POSIX:
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook, threading.excepthook = hooks


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """An interrupt comes at the end. Threads and processes that are started within hold it back for good, unless they
    `end_silently`.
    """
    if not _POSIX:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGINT)  # raises, too, for an interrupt that came before
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave(status: int) -> NoReturn:
    """End this process now. At its end Python waits for threads, and one of OpenVINO's telemetry can wait for the network, or
    for a lock that the interrupt came to where modules are imported.
    """
    processes = sys.modules.get("multiprocessing")
    for child in getattr(processes, "active_children", list)():
        child.terminate()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def end_silently() -> None:
    """From now on an interrupt ends this process at once and silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _POSIX:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGINT)


class _Forks(threading.local):
    """A process that a command forks, as OpenVINO's telemetry does, is not a command. Interrupts wait until it knows."""

    mask: set[signal.Signals | int]

    def before(self) -> None:
        self.mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, _SIGINT))

    def in_parent(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)

    def in_child(self) -> None:
        if isinstance(signal.getsignal(signal.SIGINT), Interrupts):
            end_silently()
        else:
            self.in_parent()


if _POSIX:
    _forks = _Forks()
    os.register_at_fork(before=_forks.before, after_in_parent=_forks.in_parent, after_in_child=_forks.in_child)
