"""Ctrl-C at any moment of a command: ``python -m tools.interrupts [--runs 120]``.

Each run has a session of its own, whose processes all get the signal, as a terminal sends it. Asked of each: the status
is 130, nothing but the command's own output and progress is printed, it ends soon, and leaves no process. In every
second run the network answers nothing, so that what OpenVINO's telemetry starts is still there. In the first
tenth of a second Python itself is starting, and prints a traceback on an interrupt.
Exit status 1 where an answer is no.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ovlpt import data

MODEL = str(data.digits())
COMMANDS = (
    ("run", MODEL),
    ("explain", MODEL),
    ("check", MODEL),
    ("bench", MODEL, "-t", "1"),
    ("report", MODEL, "-o", "report.html"),
    ("compare", MODEL, "--workers", "2"),
    ("transform", MODEL, "-o", "transformed.xml"),
)
PATIENCE = 20.0  # seconds
SOON = 6.0  # of a command that Python ends at once; a compilation under way is waited for


@dataclass(frozen=True)
class Run:
    """One command that was interrupted ``moment`` seconds after its start."""

    command: Sequence[str]
    moment: float
    swallowed: bool  # all that it sent to the network
    status: int | None  # None: it did not end
    seconds: float  # from the signal to the end
    said: str  # on standard error
    left: tuple[str, ...]  # command lines of its processes that went on, and files

    @property
    def wrong(self) -> list[str]:
        """What is not as it should be."""
        found = []
        if self.status is None:
            found.append("does not end")
        elif self.status not in (130, -signal.SIGINT):  # a shell calls both 130
            found.append(f"status {self.status}")
        elif self.seconds > SOON:
            found.append(f"ends after {self.seconds:.1f} s")
        if any(word in self.said for word in ("Traceback", "Error", "Exception", "Interrupt", "ovlpt: ")):
            found.append("says something")
        return found + [f"left: {each}" for each in self.left]


def interrupted(program: Sequence[str], command: Sequence[str], moment: float, proxy: str | None) -> Run | None:
    """None where the command ended before, or had not begun."""
    with tempfile.TemporaryDirectory() as folder, _terminal() as (errors, said):
        environment = {**os.environ, "TMPDIR": folder, **({"https_proxy": proxy} if proxy else {})}
        running = subprocess.Popen(
            [*program, *command], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
        try:
            time.sleep(moment)
            if running.poll() is not None:
                return None
            os.killpg(running.pid, signal.SIGINT)
            sent = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(PATIENCE)
            seconds, status = time.monotonic() - sent, running.returncode
            time.sleep(0.5)
            left = tuple(_processes(running.pid)) if status is not None else ()
            left += tuple(  # what was asked for may be whole
                str(path) for path in Path(folder).iterdir() if path.suffix != ".lock" and path.stem != "transformed"
            )
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    text = b"".join(said).decode(errors="replace")
    if "Traceback" in text and not re.search(r'File ".*/(ovlpt|openvino\w*|multiprocessing|threading)\b.*\.py"', text):
        return None  # Python itself was starting
    return Run(command, moment, bool(proxy), status, seconds, text, left)


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[int, list[bytes]]]:
    """A terminal to write to, and what was written until its end."""
    reader, writer = os.openpty()
    said: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # nobody has it open
            while part := os.read(reader, 4096):
                said.append(part)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield writer, said
    finally:
        os.close(writer)
        reading.join()
        os.close(reader)


def _processes(session: int) -> Iterator[str]:
    """Command lines of a session that were not yet waited for."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                yield (folder / "cmdline").read_text().replace("\0", " ").strip()


@contextlib.contextmanager
def _silence() -> Iterator[str]:
    """A proxy that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as taking:
        yield f"http://127.0.0.1:{taking.getsockname()[1]}"


@contextlib.contextmanager
def _cluster() -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.interrupts", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=120, help="how many (default 120)")
    parser.add_argument("--first", type=float, default=0.15, metavar="SECONDS", help="earliest moment (default 0.15)")
    parser.add_argument("--last", type=float, default=3.0, metavar="SECONDS", help="latest moment (default 3)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a script would ignore it
    program = [str(Path(sys.executable).with_name("ovlpt"))]
    moments = random.Random(options.seed)
    wrong = done = 0
    with _silence() as proxy, _cluster() as scheduler:
        commands = itertools.cycle([*COMMANDS, ("compare", MODEL, "--scheduler", scheduler)])
        for number, command in zip(range(options.runs), commands, strict=False):
            moment = moments.uniform(options.first, options.last)
            swallowed = proxy if number // (len(COMMANDS) + 1) % 2 else None
            run = interrupted(program, command, moment, swallowed)
            if run is None:
                continue
            done += 1
            wrong += bool(run.wrong)
            answer = "; ".join(run.wrong) or "ok"
            print(
                f"{' '.join(command[::2]):25.25} {moment:.3f} s{' swallowed' * run.swallowed}: {answer} ({run.seconds:.1f} s)"
            )
            if run.wrong:
                print(run.said)
    print(f"{done} interrupted, {wrong} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
