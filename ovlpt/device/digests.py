"""Digests of files, kept in a folder so that files that have not changed are not read again."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_FOLDER = "ovlpt.digests"  # of the folder that is given
_SETTLED = 2_000_000_000  # nanoseconds: files that changed later may change again at what counts as the same time


def digest(files: Iterable[str | Path]) -> str:
    """Of the content of files in order. Raises `OSError` where one cannot be read."""
    total = hashlib.sha256()
    for file in files:
        with Path(file).open("rb") as content:
            total.update(hashlib.file_digest(content, "sha256").digest())
    return total.hexdigest()


def kept_digest(files: Sequence[str | Path], folder: Path) -> str:
    """`digest`; without reading them where ``folder`` has it of these files, and the file system says that none has
    changed: the same file of the same size, last written and last altered at the same time.

    What cannot be kept is read each time; so are all files on Windows, which does not say when one was altered.
    """
    if os.name == "nt":
        return digest(files)
    facts = [_facts(file) for file in files]
    note = folder / _FOLDER / hashlib.sha256("\0".join(map(str, files)).encode()).hexdigest()
    with suppress(OSError, ValueError, TypeError, KeyError):
        known = json.loads(note.read_text())
        if known["files"] == facts:
            return str(known["digest"])
    found = digest(files)
    if time.time_ns() - max(max(written, altered) for *_, written, altered in facts) > _SETTLED:
        with suppress(OSError):
            _write(note, json.dumps({"files": facts, "digest": found}))
    return found


def _facts(file: str | Path) -> list[int]:
    status = os.stat(file)  # of hundreds of modules, a Path for each takes longer
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _write(note: Path, text: str) -> None:
    """Whole or not at all."""
    note.parent.mkdir(parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(dir=note.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(aside).replace(note)
    except OSError:
        Path(aside).unlink(missing_ok=True)
        raise
