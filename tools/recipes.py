"""``python -m tools.recipes [NAME …]``: run the recipes in docs/recipes whose parts are installed, as they are written.

Each block of a page is a process of its own, in one folder for the page: ``python`` and ``sh`` are run, and what has a
``title`` is written to a file of that name instead. In the folder lie ``model.xml``, a quantized network, ``float.xml``,
the same before quantization, ``float.onnx`` where onnx is installed, and ``images.npz``, its inputs and their labels.
Exit status 1 where a recipe fails. The light ones are part of the tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ovlpt import data

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in (ROOT / "docs" / "recipes").glob("*.md") if page.stem != "index")


class Block(NamedTuple):
    """Of a page; ``title``: the file that it is, "" for what is run."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = re.findall(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', page.read_text(), re.DOTALL | re.MULTILINE)
    return [Block(*each) for each in found]


def missing(page: Path) -> list[str]:
    """What the page's line "Needs:" names and this environment has not: packages after ``pip install``, else programs."""
    line = next((line for line in page.read_text().splitlines() if line.startswith("Needs:")), "")
    found = []
    for text in re.findall(r"`([^`]+)`", line):
        if text.startswith("pip install "):
            found += [name for name in text.split()[2:] if not _is_installed(name)]
        elif shutil.which(text, path=_path()) is None:
            found.append(text)
    return found


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def run(page: Path, folder: Path) -> Iterator[str]:
    """The blocks that fail, each with the last line that it printed."""
    prepare(folder)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PATH": _path()}
    for number, block in enumerate(blocks(page), 1):
        command = {"python": [sys.executable, "-c", block.text], "sh": ["bash", "-ec", block.text]}.get(block.language)
        if block.title:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        elif command is not None:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
                yield f"block {number}: status {done.returncode}, {' '.join(last)}"
                return


def _path() -> str:
    """Where programs are looked for: first beside this Python."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))


def prepare(folder: Path) -> None:
    """The files that recipes begin with."""
    for source, name in ((data.digits(), "model"), (data.digits_float(), "float")):
        for ending in (".xml", ".bin"):
            shutil.copy(source.with_suffix(ending), folder / f"{name}{ending}")
    images, labels = data.heldout()
    np.savez(folder / "images.npz", image=images[:100], labels=labels[:100])
    if find_spec("onnx") is not None:
        _save_onnx(folder / "float.onnx")


def _save_onnx(path: Path) -> None:
    """Two convolutions and a pool; input "image", output "logits"."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0)
    shapes = {"w0": (16, 1, 3, 3), "w1": (10, 16, 3, 3)}
    constants = [
        numpy_helper.from_array(weights.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["image", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["logits"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 32, 32])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "network", [image], [logits], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.recipes", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(page.stem for page in PAGES)}")
    chosen = parser.parse_args().names or [page.stem for page in PAGES]
    failed = 0
    for page in PAGES:
        if page.stem in chosen:
            with tempfile.TemporaryDirectory() as folder:
                absent = missing(page)
                wrong = [] if absent else [*run(page, Path(folder))]
            failed += bool(wrong)
            print(
                f"{page.stem}: {'; '.join(wrong) or (f'not here: {chr(44).join(absent)}' if absent else 'ran')}",
                flush=True,
            )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
