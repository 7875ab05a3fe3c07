"""Shows that a command still works, and on what: on standard error where that is a terminal, never in a file or a
pipe.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ovlpt.display import printable

DELAY = 2.0  # seconds without a sign of life that are not yet a wait

_shown: Activity | None = None  # of the command that runs


class Activity(logging.Handler):
    """A line with the time since the start, the last step that the package has logged, and the part that is done where
    it is known. It vanishes at the end, and while something else is printed.
    """

    def __init__(self, stream):
        super().__init__(logging.INFO)
        self._stream, self._bar, self._task = stream, None, None
        self._step, self._part, self._begin = "", None, time.monotonic()

    def start(self) -> None:
        """Show the line from now on."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.table import Column

        text = TextColumn(
            "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        )
        columns = (SpinnerColumn(), TimeElapsedColumn(), BarColumn(20), TimeRemainingColumn(), text)
        still: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False, "expand": True}
        with self.lock:
            self._bar = Progress(*columns, console=Console(file=self._stream, highlight=False), **still)
            self._task = self._bar.add_task(self._step, total=None)
            self._bar.tasks[0].start_time = self._bar.get_time() - (time.monotonic() - self._begin)
            self._bar.start()
            self._update()

    def stop(self) -> None:
        with self.lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self.lock:
            if self._bar is not None:
                self._bar.stop()
            yield
            if self._bar is not None:
                self._bar.start()

    def tell(self, step: str, part: float | None = None) -> None:
        """``part``: how much of the step is done, 0 to 1; None where that is not known."""
        with self.lock:
            self._step, self._part = printable(step, lines=False), part
            self._update()

    def emit(self, record: logging.LogRecord) -> None:
        self.tell(record.getMessage())

    def _update(self) -> None:
        if self._bar is not None:
            self._bar.tasks[0].total = None if self._part is None else 1.0
            self._bar.update(self._task, description=self._step, completed=self._part or 0.0)


@contextmanager
def shown(wanted: bool = True) -> Iterator[None]:
    """The line of the command that runs within, after `DELAY`; ``wanted``: False where its steps are printed anyway."""
    global _shown
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    logger, activity = logging.getLogger("ovlpt"), Activity(sys.stderr)
    timer = threading.Timer(DELAY, activity.start)
    timer.daemon = True
    logger.addHandler(activity)
    logger.setLevel(logging.INFO)
    timer.start()
    _shown = activity
    try:
        yield
    finally:
        _shown = None
        logger.removeHandler(activity)
        timer.cancel()
        if timer.is_alive():
            timer.join()  # it may be starting the line
        activity.stop()


@contextmanager
def paused() -> Iterator[None]:
    """While something is printed, which a line that moves would cut."""
    if _shown is None:
        yield
        return
    with _shown.paused():
        yield


def progress(step: str) -> Callable[[float], None]:
    """What is called with the part of a step that is done, 0 to 1."""
    return lambda part: None if _shown is None else _shown.tell(step, part)


def counted(step: str, unit: str) -> Callable[[int, int | None], None]:
    """What is called with how many of how many ``unit`` are done, by all workers; None where that is unknown."""
    begin = time.monotonic()

    def tell(done: int, total: int | None) -> None:
        if _shown is not None:
            of = f"{done} {unit}" if total is None else f"{done} of {total} {unit}"
            rate = done / max(time.monotonic() - begin, 1e-9)
            _shown.tell(f"{step}: {of}, {rate:.1f} a second", done / total if total else None)

    return tell
