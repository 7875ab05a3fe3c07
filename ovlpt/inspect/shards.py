"""Data in shards: many files, a folder, a glob, an iterable; or one file or set of arrays, divided.

A shard is what one task reads. It is never more than a file or `_BYTES`, so memory stays flat however large the data is.
"""

from __future__ import annotations

import glob
import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ovlpt.files import mode_of, why_not
from ovlpt.fleet.parcel import Parcel
from ovlpt.inspect.inputs import load_samples
from ovlpt.openvino_api import Model
from ovlpt.trace import InputError

_BYTES = 16 << 20  # of files that one task reads, unless one alone is larger
_TASKS = 64  # at least, where the data suffices: few large ones would not end together
_FILES = 256
_SAMPLES = 128  # of arrays that one task gets
_ENDINGS = (".npy", ".npz")

Sample = list[np.ndarray]  # one array per input


@dataclass(frozen=True)
class Samples:
    """Samples in memory, and the labels of each: None, or as many as the sample has answers."""

    name: str
    samples: Sequence[Sample]
    labels: np.ndarray | None

    def load(self, model: Model) -> tuple[Sequence[Sample], np.ndarray | None]:
        return self.samples, self.labels

    @property
    def digest(self) -> str:
        digest = hashlib.sha256()
        for array in (*(each for sample in self.samples for each in sample), self.labels):
            if array is not None:
                digest.update(f"{array.dtype}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class DataFile:
    """A file of samples (see `load_samples`)."""

    parcel: Parcel

    @property
    def name(self) -> str:
        return self.parcel.paths[0]

    @property
    def digest(self) -> str:
        return self.parcel.digest

    def load(self, model: Model) -> tuple[Sequence[Sample], np.ndarray | None]:
        (path,) = self.parcel.here()
        return load_samples(path, model)


Part = Samples | DataFile
Inputs = str | Path | Sequence[np.ndarray] | Iterable[Any]
Shard = tuple[Part, ...]


@dataclass(frozen=True)
class Data:
    """All shards of a run. ``count``: how many, None while that is unknown. ``divided``: parts of what was given as one;
    what is wrong with it is then an error, and with one of many shards a note.
    """

    shards: Iterable[Shard]
    count: int | None
    divided: bool


def data_of(inputs: Inputs, model: Model, labels: Sequence[int] | None = None) -> Data:
    """The shards of ``inputs``: a file or arrays as for `load_samples`, which are divided; or many of them, as the
    pattern of names ("shards/*.npz"), a folder of ``.npz`` and ``.npy``, or an iterable of files, of arrays by input, or
    of lists of an array for each input.

    Raises `InputError` for a pattern or folder without files, and for unusable arrays.
    """
    given: Any = inputs  # whose kinds overlap
    if isinstance(given, (str, Path)):
        files = _files(given)
        if files is None:
            return divided(*load_samples(given, model), labels, str(given))
        given = files
    elif isinstance(given, np.ndarray) or (isinstance(given, Sequence) and all(map(_is_array, given))):
        return divided(*load_samples(list(given), model), labels, "the data")
    if labels is not None:
        raise InputError('with data in shards, labels belong in the shards; give each an array "labels"')
    if isinstance(given, Sequence) and all(isinstance(each, (str, Path)) for each in given):
        groups = _grouped([DataFile(Parcel.of(path, by_content=False)) for path in given])
        return Data(groups, len(groups), False)
    return Data(_Loaded(given, model), len(given) if isinstance(given, Sequence) else None, False)


def divided(
    samples: Sequence[Sample], found: np.ndarray | None, labels: Sequence[int] | None, name: str = "the data"
) -> Data:
    """Samples in memory as shards. ``found``: the labels that lie with them, which ``labels`` replace."""
    known = found if labels is None else np.asarray(labels).reshape(-1)
    if not samples:
        raise InputError("the data holds no sample; give at least one")
    size = min(_shard_size(samples[0]), -(-len(samples) // _TASKS))
    shards = []
    for start in range(0, len(samples), size):
        stop = min(start + size, len(samples))
        # whole numbers, whatever their sum is: the answers of each shard say whether there are as many
        ends = [None if known is None else at * known.size // len(samples) for at in (start, stop)]
        shards.append((Samples(name, samples[start:stop], None if known is None else known[slice(*ends)]),))
    return Data(shards, len(shards), True)


def _shard_size(sample: Sample) -> int:
    return max(1, min(_SAMPLES, _BYTES // max(1, sum(array.nbytes for array in sample))))


class _Loaded:
    """The items of an iterable, each loaded when it is asked for."""

    def __init__(self, items: Iterable[Any], model: Model):
        self._items, self._model = items, model

    def __iter__(self) -> Iterator[Shard]:
        for number, item in enumerate(self._items, 1):
            if isinstance(item, (str, Path)):
                yield (DataFile(Parcel.of(item, by_content=False)),)
                continue
            try:
                yield (Samples(f"shard {number}", *load_samples(item, self._model)),)
            except InputError as error:
                raise InputError(f"shard {number} of the data: {error}") from error


def _is_array(value: object) -> bool:
    return not isinstance(value, (str, Path, Mapping, list, tuple))


def _files(path: str | Path) -> list[Path] | None:
    """The files of a folder or a pattern; None for one file."""
    try:
        mode = mode_of(path)
        if mode is not None and stat.S_ISDIR(mode):
            found = sorted(each for each in Path(path).iterdir() if each.suffix in _ENDINGS)
            why = f'the folder "{path}" has no .npz or .npy; give one that has'
        elif mode is None and glob.has_magic(str(path)):
            found = sorted(map(Path, glob.glob(str(path), recursive=True)))
            why = f'no file matches "{path}"; give an .npz, a folder, or a pattern that fits'
        else:
            return None
    except OSError as error:
        raise InputError(f'cannot read "{path}": {why_not(error)}; give data that can be read') from error
    if not found:
        raise InputError(why)
    return found


def _grouped(files: Sequence[DataFile]) -> list[Shard]:
    """Small files together: a task for each of very many would cost more than the work."""
    most = min(_FILES, -(-len(files) // _TASKS))
    groups: list[list[DataFile]] = []
    taken = _BYTES
    for file in files:
        size = Path(file.name).stat().st_size
        if taken + size > _BYTES or len(groups[-1]) == most:
            groups.append([])
            taken = 0
        groups[-1].append(file)
        taken += size
    return [tuple(group) for group in groups]
