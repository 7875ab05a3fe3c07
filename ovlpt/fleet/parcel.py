"""Files for tasks: read where a worker finds them, and sent to a worker that does not, once."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ovlpt.files import why_not
from ovlpt.trace import InputError

_MOST = 64  # parcels that a worker unpacks and keeps


class MissingError(Exception):
    """A worker needs the content of a parcel: neither has it been sent, nor are its files here."""

    def __init__(self, by_content: bool):
        super().__init__("a parcel")
        self.by_content = by_content


@dataclass(frozen=True)
class Parcel:
    """Files of the starting machine, and the digest that tells whether another machine has the same.

    ``by_content``: the digest is of what the files hold; else of their sizes and times of change, for data that is too
    much to be read twice. ``content``: what they hold, on the way to a worker that has asked for it.
    """

    digest: str
    paths: tuple[str, ...]
    by_content: bool
    content: tuple[bytes, ...] | None = None

    @classmethod
    def of(cls, *paths: str | Path, by_content: bool = True) -> Parcel:
        """A parcel of these files. Raises `InputError` where one cannot be read."""
        found = tuple(str(Path(path).absolute()) for path in paths)
        return cls(_digest(found, by_content), found, by_content)

    def here(self) -> tuple[Path, ...]:
        """Where this process reads the files. Raises `MissingError` where they are not here and were not sent."""
        with _LOCK:
            if self.digest in _UNPACKED:
                _UNPACKED.move_to_end(self.digest)
                return _UNPACKED[self.digest][1]
            if self.content is not None:
                return self._unpacked()
        if self._is_here():
            return tuple(map(Path, self.paths))
        raise MissingError(self.by_content)

    def packed(self) -> Parcel:
        """With its content. Raises `InputError` where the files are no longer those that the run began with."""
        try:
            content = tuple(Path(path).read_bytes() for path in self.paths)
            if _digest(self.paths, self.by_content) == self.digest:
                return replace(self, content=content)
        except OSError as error:
            raise InputError(f'cannot read "{error.filename}": {why_not(error)}; a worker needs it') from error
        raise InputError(f'"{self.paths[0]}" has changed while the run was under way; start it again')

    def _is_here(self) -> bool:
        try:
            return _digest(self.paths, self.by_content) == self.digest
        except InputError:
            return False

    def _unpacked(self) -> tuple[Path, ...]:
        folder = tempfile.TemporaryDirectory(prefix="ovlpt-", ignore_cleanup_errors=True)
        files = tuple(Path(folder.name, Path(path).name) for path in self.paths)
        for file, content in zip(files, self.content, strict=True):
            file.write_bytes(content)
        _UNPACKED[self.digest] = folder, files
        if len(_UNPACKED) > _MOST:
            _UNPACKED.popitem(last=False)
        return files


_UNPACKED: OrderedDict[str, tuple[tempfile.TemporaryDirectory, tuple[Path, ...]]] = OrderedDict()
_LOCK = threading.Lock()


def _digest(paths: Sequence[str], by_content: bool) -> str:
    digest = hashlib.sha256()
    for path in paths:
        try:
            status = Path(path).stat()
            digest.update(f"{Path(path).name}\0{status.st_size}\0".encode(errors="surrogateescape"))
            if by_content:
                with open(path, "rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            else:
                digest.update(f"{path}\0{status.st_mtime_ns}".encode(errors="surrogateescape"))
        except (OSError, ValueError) as error:  # a zero byte is a ValueError
            raise InputError(f'cannot read "{path}": {why_not(error)}; give a file that can be read') from error
    return digest.hexdigest()
