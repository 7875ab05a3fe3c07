"""What the package builds once and loads again later: files in the user's cache folder that nobody else can have written.

A file is made aside and renamed, so that it is whole or not there, and its digest lies beside it: one that was cut off or
changed is made anew.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from ovlpt.trace import InputError


def folder() -> Path:
    """The package's folder in the user's cache. What XDG_CACHE_HOME says counts only as an absolute path (its standard).

    Raises `InputError` for a user without a home folder.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return Path(given if given.is_absolute() else Path.home() / ".cache", "ovlpt")
    except RuntimeError as error:
        raise InputError(f"you have no home folder; {_REMEDY}") from error


def own_folder(path: Path) -> None:
    """Make a folder that the user alone can write to; one of the user's that others could write to is closed to them.

    What they may have left there is not trusted: `file` looks at the owner of each file. Raises `InputError` where the
    folder is another user's, or a link, or cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat(follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode) and _is_users(found):
            path.chmod(stat.S_IMODE(found.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
            return
    except OSError as error:
        raise InputError(f'cannot write "{path}": {error.strerror}; {_REMEDY}') from error
    raise InputError(f'"{path}" is not a folder of yours, so nothing is loaded from it; {_REMEDY}')


def file(name: str, file_name: str, make: Callable[[Path], None]) -> Path:
    """The file of ``file_name`` in the folder ``name``; where it is not whole, ``make`` writes it to the path it is given.

    Raises `InputError` as `own_folder`.
    """
    own_folder(folder())
    own_folder(place := folder() / name)
    target, digest = place / file_name, place / "digest"
    if not _is_whole(target, digest):
        try:
            with tempfile.TemporaryDirectory(dir=place) as aside:
                made, noted = Path(aside, file_name), Path(aside, "digest")
                make(made)
                made.chmod(0o700)
                noted.write_text(_digest(made))
                made.replace(target)
                noted.replace(digest)
        except OSError as error:
            raise InputError(f'cannot write "{target}": {error.strerror}; {_REMEDY}') from error
    return target


_REMEDY = "set XDG_CACHE_HOME to a folder of yours"


def _is_users(found: os.stat_result) -> bool:
    """Windows numbers no users; a home folder is its user's there."""
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()


def _is_whole(target: Path, digest: Path) -> bool:
    try:
        found = target.stat(follow_symlinks=False)
        is_own = stat.S_ISREG(found.st_mode) and _is_users(found)
        is_own = is_own and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return is_own and _digest(target) == digest.read_text()
    except OSError:
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
