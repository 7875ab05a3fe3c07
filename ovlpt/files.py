"""Files that a person names: one sentence where one cannot be read or written, and nothing lost by trying."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import takewhile
from pathlib import Path

from ovlpt.trace import InputError

_MOST = 64 << 20  # characters of a text that a person names


def why_not(error: Exception) -> str:
    """The message about a file that could not be used."""
    return getattr(error, "strerror", None) or str(error)


def mode_of(path: str | Path) -> int | None:
    """The kind of what ``path`` names (see `stat`), None for nothing. Raises `OSError` for what cannot be the name of a
    file.
    """
    try:
        return Path(path).stat().st_mode
    except FileNotFoundError:
        return None
    except ValueError as error:  # a zero byte, or what the file system cannot spell
        raise OSError(0, "no file can have this name") from error


def native(path: str | Path) -> str:
    """A path for OpenVINO, which before 2026.1 took UTF-8 whatever the locale. Raises `UnicodeError` for what is none."""
    from ovlpt.openvino_api import RELEASE  # here, not above: the command line's help is to be there at once

    return str(path) if RELEASE >= (2026, 1) else os.fsencode(path).decode("utf-8")


def read_text(path: str | Path, purpose: str, what: str = "") -> str:
    """The text of a file. ``purpose``: what it should be; ``what``: its name in a sentence. Raises `InputError`."""
    try:
        mode_of(path)
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(_MOST + 1)
        if len(text) > _MOST:  # of a device without an end, for instance
            raise OSError(0, f"it is longer than {_MOST >> 20} million characters")
        return text
    except (OSError, ValueError) as error:
        reason = "it is not text" if isinstance(error, UnicodeDecodeError) else why_not(error)
        raise InputError(f'cannot read {what}"{path}": {reason}; give {purpose}') from error


def check_writable(path: str | Path | None, folder: bool = False) -> None:
    """Raise `InputError` where no file (or ``folder``) can be written: before the work, not after it. None: nothing is."""
    if path is None:
        return
    try:
        place, mode = Path(path).absolute(), mode_of(path)
        if mode is not None and stat.S_ISDIR(mode) != folder:
            raise InputError(
                f'cannot write "{path}": it is a {"file; give a folder" if folder else "folder; give a file"}'
            )
        if mode is None:
            place, mode = place.parent, mode_of(place.parent)
            while folder and mode is None:
                place, mode = place.parent, mode_of(place.parent)
            if mode is None or not stat.S_ISDIR(mode):
                raise InputError(f'cannot write "{path}": there is no such folder')
        beside = (
            Path(os.path.realpath(place)).parent if stat.S_ISREG(mode) else place
        )  # a file is replaced, not changed
        for each in (place, beside):
            if not os.access(each, os.W_OK):
                what = "it" if each == place else f'its folder "{each}"'
                raise InputError(f'cannot write "{path}": {what} is protected')
    except OSError as error:
        raise InputError(f'cannot write "{path}": {why_not(error)}') from error


def write_text(path: str | Path, text: str, folders: bool = False) -> None:
    """Write a file that is whole or what it was before. Raises `InputError`.

    ``folders``: those that are missing are made, and go again where the file cannot be written.
    """
    check_writable(Path(path).parent if folders else path, folder=folders)
    path = Path(os.path.realpath(path))
    try:
        with _folder(path.parent) if folders else nullcontext():
            _write(path, text)
    except OSError as error:
        raise InputError(f'cannot write "{path}": {why_not(error)}') from error


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    missing = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


def _write(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():  # a device or a pipe
        path.write_text(text, encoding="utf-8")
        return
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ovlpt-") as folder:
        written = Path(folder, "written")
        written.write_text(text, encoding="utf-8")
        if path.exists():
            written.chmod(stat.S_IMODE(path.stat().st_mode))
        written.replace(path)


def csv_cell(value: object) -> object:
    """A cell that a spreadsheet shows: text that it would compute, beginning with = + - or @, is quoted as there."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
