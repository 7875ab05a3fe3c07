"""Files of many types, as this Python and its packages bring them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

PATTERNS = {
    "python": "*.py", "pythonbytecode": "*.pyc", "c": "*.h", "elf": "*.so", "json": "*.json", "html": "*.html",
    "css": "*.css", "javascript": "*.js", "xml": "*.xml", "png": "*.png", "ttf": "*.ttf", "otf": "*.otf",
    "markdown": "*.md", "toml": "pyproject.toml", "csv": "*.csv", "npy": "*.npy", "npz": "*.npz",
    "shell": "*.sh", "rst": "*.rst",
}  # fmt: skip
ENOUGH = 300  # bytes: less says little about a type


def files(rng: np.random.Generator, count: int, folders: list[Path]) -> list[tuple[str, bytes]]:
    """``count`` pairs of a type's name and the content of a file of it, as even over the types as they come."""
    paths = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platlib")] + folders
    pool: dict[str, list[bytes]] = {}
    for kind, pattern in PATTERNS.items():
        found = sorted({path for folder in paths for path in folder.rglob(pattern)})
        found = [path for path in found if path.is_file() and ENOUGH < path.stat().st_size < 20_000_000]
        picked = rng.permutation(len(found))[: max(4, count // 8)]
        if found:
            pool[kind] = [found[index].read_bytes() for index in picked]
    for kind, content in made(pool.get("python", []), pool.get("png", [])):
        pool.setdefault(kind, []).append(content)
    queues = {kind: iter(contents) for kind, contents in pool.items()}
    chosen: list[tuple[str, bytes]] = []
    while queues and len(chosen) < count:
        for kind in list(queues):
            if (content := next(queues[kind], None)) is None:
                del queues[kind]
            else:
                chosen.append((kind, content))
    return [chosen[index] for index in rng.permutation(len(chosen))[:count]]


def made(texts: list[bytes], images: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Archives of texts and images in other formats, with their types' names."""
    from PIL import Image

    for index, text in enumerate(texts[:8]):
        yield "gzip", gzip.compress(text, mtime=0)
        yield "bzip", bz2.compress(text)
        yield "xz", lzma.compress(text)
        yield "pickle", pickle.dumps({"lines": text.decode(errors="replace").splitlines()}, protocol=4)
        archive, tape = io.BytesIO(), io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
            members.writestr(zipfile.ZipInfo(f"text{index}"), text)
        yield "zip", archive.getvalue()
        with tarfile.open(fileobj=tape, mode="w") as members:
            entry = tarfile.TarInfo(f"text{index}")
            entry.size = len(text)
            members.addfile(entry, io.BytesIO(text))
        yield "tar", tape.getvalue()
    for content in images[:8]:
        image = Image.open(io.BytesIO(content)).convert("RGB")
        for kind in ("jpeg", "bmp", "gif", "webp", "tiff"):
            stream = io.BytesIO()
            image.save(stream, kind)
            yield kind, stream.getvalue()


def ends(content: bytes, size: int = 1024, block: int = 4096, padding: int = 256) -> np.ndarray:
    """The first and the last bytes without white space around, int32 [1, 2 * size]: what the file classifier reads."""
    beginning, end = content[:block].lstrip()[:size], content[-block:].rstrip()[-size:]
    gap = [padding] * (size - len(beginning)) + [padding] * (size - len(end))
    return np.array([[*beginning, *gap, *end]], np.int32)
