"""Recorded answers of the real runtimes: cases and results in one small file per family."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ovlpt.reference import Quantization
from tools.quantized_operators.cases import Case

FOLDER = Path(__file__).parents[2] / "tests" / "reference" / "vectors"


@dataclass
class Recording:
    """One case and what each method's runtime answered: the result, or None where it refused."""

    case: Case
    answers: dict[str, np.ndarray | None]


class _Packer:
    """Arrays end to end, one stream per type: an archive of a thousand members would be mostly headers."""

    def __init__(self) -> None:
        self.streams: dict[str, list[np.ndarray]] = {}
        self.lengths: dict[str, int] = {}

    def add(self, array: np.ndarray) -> list:
        array = np.asarray(array)
        array = array.astype(np.int32) if array.dtype == np.int64 else array
        name, offset = array.dtype.name, self.lengths.get(array.dtype.name, 0)
        self.streams.setdefault(name, []).append(array.ravel())
        self.lengths[name] = offset + array.size
        return [name, offset, *array.shape]


def save(family: str, recordings: list[Recording], versions: dict[str, str]) -> Path:
    """Write the recordings of a family with the versions of the runtimes that answered."""
    packer, entries = _Packer(), []
    for recording in recordings:
        case = recording.case
        entries.append(
            {
                "operator": case.operator,
                "name": case.name,
                "options": case.options,
                "arrays": {name: packer.add(array) for name, array in case.arrays.items()},
                "quantizations": {
                    name: [packer.add(q.scale), packer.add(q.zero_point), q.precision, q.axis]
                    for name, q in case.quantizations.items()
                },
                "answers": {name: y if y is None else packer.add(y) for name, y in recording.answers.items()},
            }
        )
    text = json.dumps({"versions": versions, "entries": entries}, separators=(",", ":"))
    streams = {name: np.concatenate(parts) for name, parts in packer.streams.items()}
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{family}.npz"
    np.savez_compressed(path, index=np.frombuffer(text.encode(), np.uint8), **streams)
    return path


def families() -> list[str]:
    """The families that have been recorded."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def versions(family: str) -> dict[str, str]:
    """method → version of the runtime that answered."""
    with np.load(FOLDER / f"{family}.npz") as archive:
        return json.loads(archive["index"].tobytes())["versions"]


def load(family: str) -> Iterator[Recording]:
    """The recordings of a family."""
    with np.load(FOLDER / f"{family}.npz") as archive:
        streams = {name: archive[name] for name in archive.files}
    entries = json.loads(streams.pop("index").tobytes())["entries"]

    def array(place: list) -> np.ndarray:
        name, offset, *shape = place
        return streams[name][offset : offset + int(np.prod(shape, dtype=int))].reshape(shape)

    for entry in entries:
        quantizations = {
            name: Quantization(array(scale), array(zero_point), precision, axis)
            for name, (scale, zero_point, precision, axis) in entry["quantizations"].items()
        }
        arrays = {name: array(place) for name, place in entry["arrays"].items()}
        case = Case(family, entry["operator"], entry["name"], arrays, quantizations, entry["options"])
        yield Recording(case, {name: place and array(place) for name, place in entry["answers"].items()})
