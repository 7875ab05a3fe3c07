"""The folders that `omz_downloader` and `omz_converter` of openvino-dev write: ``public/NAME/FP32/NAME.xml``.

``public`` or ``intel``, a folder for each model (for the parts of one, too), in it one for each precision: FP16, FP32,
FP16-INT8, FP32-INT8, FP16-INT1, FP32-INT1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ovlpt.trace import InputError

_ROOTS = ("public", "intel")
_PRECISIONS = ("FP16", "FP32", "FP16-INT8", "FP32-INT8", "FP16-INT1", "FP32-INT1")
_SHOWN = 5  # in a sentence


def quantized_file(path: Path) -> Path:
    """The file that a folder of a model, or its name, means: the one in int8, or the only one.

    A name is looked for below the current folder. A path of anything else is returned as it is.
    Raises `InputError` with the files, or the models, of a folder that holds several.
    """
    return _file(path, lambda folder: folder.endswith("-INT8"))


def float_file(path: Path) -> Path:
    """The same for a model before quantization: the one in FP32, or the only one that is not in int8."""
    return _file(path, lambda folder: folder == "FP32", lambda folder: not folder.endswith("-INT8"))


def _file(path: Path, *preferred) -> Path:
    folder = path if path.is_dir() else _folder_of(path)
    if folder is None:
        return path
    found = sorted(_models(folder))
    for wanted in (*preferred, lambda _: True):
        chosen = [each for each in found if wanted(each.parent.name)]
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            break
    if found:
        raise InputError(
            f'"{path}" holds {_some([str(each.relative_to(folder)) for each in chosen])}; give one of them'
        )
    parts = sorted(each.name for each in folder.iterdir() if each.is_dir() and any(_models_below(each)))
    if parts:
        raise InputError(f'"{path}" is a folder of several models: {_some(parts)}; give one of them')
    return path


def _folder_of(name: Path) -> Path | None:
    """The folder of a model that is called by its name."""
    if name.exists() or len(name.parts) != 1:
        return None
    inside = [Path(root) for root in _ROOTS if Path(root).is_dir()]
    inside += [part for root in inside for part in root.iterdir() if part.is_dir()]
    return next((folder / name for folder in inside if (folder / name).is_dir()), None)


def _models(folder: Path) -> Iterator[Path]:
    yield from folder.glob("*.xml")
    for precision in _PRECISIONS:
        yield from (folder / precision).glob("*.xml")


def _models_below(folder: Path) -> Iterator[Path]:
    yield from _models(folder)
    for part in folder.iterdir():
        if part.is_dir() and part.name not in _PRECISIONS:
            yield from _models(part)


def _some(names: list[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    *shown, last = [*names[:_SHOWN], *more]
    return f"{', '.join(shown)} and {last}" if shown else last
