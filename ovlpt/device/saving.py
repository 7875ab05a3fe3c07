"""A model to a file that is whole or not there: what stood there before stays until the new one is complete."""

from __future__ import annotations

import os
import stat
import tempfile
from itertools import product
from pathlib import Path

import openvino

from ovlpt.device.execution_types import last_line
from ovlpt.files import check_writable, mode_of, native, why_not
from ovlpt.graph.bodies import all_nodes
from ovlpt.openvino_api import Constant, Core, Model
from ovlpt.trace import InputError

_DESCRIBED = 4000  # bytes of the text about a node, at most
_CHUNK = 1 << 20


def save_model(model: Model, path: str | Path) -> None:
    """Write ``model`` as IR, ``path`` and the ``.bin`` beside it, with its constants as they are.

    The files are written beside, read back, and renamed. So a full disk leaves what stood there, and a model whose
    weights are still mapped from ``path`` can be saved over itself. Raises `InputError` where it cannot be written.
    """
    path = Path(path).absolute()
    check_output(path)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ovlpt-") as folder:
            written = Path(folder, path.name)
            try:
                openvino.save_model(model, native(written), compress_to_fp16=False)
                read_back(written)
            except (RuntimeError, UnicodeError) as error:
                _check_room(model, folder)
                raise InputError(f'cannot write "{path}": {last_line(error)}') from error
            path.unlink(missing_ok=True)  # so that the structure of one model never lies beside the weights of another
            for part in (written.with_suffix(".bin"), written):
                part.replace(path.with_name(part.name))
    except OSError as error:
        raise InputError(f'cannot write "{path}": {why_not(error)}') from error


def _check_room(model: Model, folder: str) -> None:
    """Raises the `OSError` of a disk that is full, which OpenVINO does not hand on; 2024.6 says nothing at all."""
    sizes = [node.get_byte_size() if isinstance(node, Constant) else 0 for node in all_nodes(model)]
    with Path(folder, "room").open("wb") as file:
        for _ in range(0, sum(sizes) + len(sizes) * _DESCRIBED, _CHUNK):
            file.write(bytes(_CHUNK))


def read_back(path: Path) -> Model:
    """Raises `RuntimeError` for a file that was cut off."""
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # a transformed model holds operations that the CPU plugin brings
    return core.read_model(native(path))


def check_output(path: str | Path, source: object = None) -> None:
    """Raise `InputError` for an output that is not an ``.xml`` in a folder that is there, or is a file of ``source``."""
    path = Path(path)
    if path.suffix != ".xml":
        raise InputError(f'cannot write "{path}": a model is saved as IR; give the path of an .xml')
    for part in (path, path.with_suffix(".bin")):
        check_writable(part)
        if not stat.S_ISREG(mode_of(part) or stat.S_IFREG):
            raise InputError(f'cannot write "{part}": a folder has this name')
    if not isinstance(source, (str, Path)):
        return
    for written, read in product((path, path.with_suffix(".bin")), _files(Path(source), path.with_suffix(".bin"))):
        if written.exists() and read.exists() and os.path.samefile(written, read):
            raise InputError(f'cannot write "{path}": "{written}" is a file of the input; give another output')


def _files(source: Path, weights: Path) -> list[Path]:
    """The files that a model is read from, as far as one of them could be ``weights``."""
    if source.suffix == ".xml":
        return [source, source.with_suffix(".bin")]
    if source.suffix == ".onnx" and source.is_file() and weights.is_file():
        beside = [each for each in source.parent.iterdir() if each.is_file() and os.path.samefile(each, weights)]
        content = source.read_bytes()  # it names the files of its external data
        return [source, *(each for each in beside if each.name.encode() in content)]
    return [source]
