"""Finished tasks of a run in a file that only grows, so that the run can go on after whatever ended it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ovlpt.files import check_writable, why_not
from ovlpt.trace import InputError

_FORM = "ovlpt journal 1"
_HEAD = json.dumps({"form": _FORM})[:-1].encode()


class Journal:
    """A line for each finished task, on the disk before the task counts.

    The first line says of which ``run`` the file is: a journal of another run is refused. What a process left half
    written at the end does not count, and is cut off. ``finished``: the answers by the tasks' keys. ``machine``: the one
    that they were computed on.

    Raises `InputError` for a file that is none, or is in use.
    """

    def __init__(self, path: str | Path, run: Mapping[str, object]):
        check_writable(path)
        self.path = Path(path)
        self.finished: dict[str, object] = {}
        self.machine: dict[str, str] | None = None
        try:
            self._file = self.path.open("a+b")
            self._lock()
            self._read(dict(run))
        except OSError as error:
            raise InputError(f'cannot use the journal "{path}": {why_not(error)}') from error

    def add(self, key: str, value: object, machine: Mapping[str, str]) -> None:
        """A task is finished."""
        if self.machine is None:
            self.machine = dict(machine)
            self._write({"machine": self.machine})
        self._write({"task": key, "answer": value})
        self.finished[key] = value

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lock(self) -> None:
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._file.close()
                raise InputError(f'another run writes the journal "{self.path}"; give a file of its own') from None

    def _write(self, content: Mapping[str, object]) -> None:
        self._file.write(json.dumps(content).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, run: Mapping[str, object]) -> None:
        self._file.seek(0)
        rows = self._file.read().split(b"\n")
        contents = [self._parsed(row, number) for number, row in enumerate(rows[:-1], 1)]
        if not contents and not _HEAD.startswith(rows[0][: len(_HEAD)]):
            self._parsed(b"", 1)
        self._file.truncate(sum(len(row) + 1 for row in rows[:-1]))  # what follows the last line end is half a line
        if not contents:
            self._write({"form": _FORM, "run": run})
            return
        self._check(contents[0], json.loads(json.dumps(run)))
        for content in contents[1:]:
            if "machine" in content:
                self.machine = content["machine"]
            else:
                self.finished[content["task"]] = content["answer"]

    def _parsed(self, row: bytes, number: int) -> dict[str, Any]:
        try:
            content = json.loads(row)
            if not isinstance(content, dict) or not ({"form", "machine"} & content.keys() or "answer" in content):
                raise ValueError
        except ValueError:
            self._file.close()
            raise InputError(
                f'"{self.path}" is not a journal: line {number} is unreadable; give a new file, or the right one'
            ) from None
        return content

    def _check(self, head: Mapping[str, object], run: Mapping[str, object]) -> None:
        found = head.get("run", {})
        if head.get("form") == _FORM and found == run:
            return
        self._file.close()
        other = [name for name in run if not isinstance(found, dict) or found.get(name) != run[name]]
        raise InputError(
            f'the journal "{self.path}" is of another run ({", ".join(other) or "form"} differ); give a new file, or start '
            "that run again"
        )
