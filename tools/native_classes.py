"""``python -m tools.native_classes [FOLDER]``: the classes of the native low precision pass, and what is here for each.

FOLDER has the libraries of an installed OpenVINO, ``openvino/libs`` of a wheel; that of this Python without. Classes are
read off the names that C++ keeps of its types, and a plugin uses a class where its library names it. Ends with 1 where the
library has a class that ovlpt has not and that is not known here: a new release has gained something.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import openvino

import ovlpt
from ovlpt.low_precision import PASSES
from ovlpt.trace import InputError

_NAMESPACE = rb"N2ov4pass13low_precision"

# What is not a class of the same name here, and why.
ELSEWHERE: Mapping[str, str] = {
    "BaseMatcherPass": "`ovlpt.LayerTransformation`",
    "ConvertTransformation": "before 2025; a Convert is read as a part of the dequantization",
    "EltwiseBaseTransformation": "`ovlpt.main.elementwise`",
    "Exception": "`ovlpt.trace.OvlptError`",
    "InferenceEngineLptException": "`ovlpt.trace.OvlptError`",
    "MarkupOptimizations": "`ovlpt.LowPrecision`, which runs the eight passes of the markup by itself; no plugin runs it apart",
    "MultiplyTransformation": "`ovlpt.main.multiply_partial`, which took its place in the native main step, too",
    "ReduceBaseTransformation": '`ovlpt.operations`: rows of the kind "reduces"',
    "ResolvePrecisionAttribute": "none: the pass has the name, and no plugin's library names it",
    "SubtractTransformation": "before 2025; a Subtract is read as a part of the dequantization",
    "TransparentBaseTransformation": '`ovlpt.operations`: rows of the kind "passes"',
    "TypeRelaxedReplacer": "none: an operation becomes type-relaxed where it is transformed",
}


def classes(library: Path) -> list[str]:
    """The classes of ``ov::pass::low_precision`` that a library defines or names, sorted.

    A name is written as its length and itself; templates of the namespace are left out.
    """
    data, found = library.read_bytes(), set()
    for match in re.finditer(_NAMESPACE + rb"(\d+)([A-Z]\w*)E\0", data):
        if len(match[2]) == int(match[1]):
            found.add(match[2].decode())
    return sorted(found)


def users(folder: Path, names: list[str]) -> dict[str, list[str]]:
    """The plugins whose libraries name each class, by "CPU", "GPU" and so on."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for path in sorted(folder.glob("*openvino_intel_*_plugin.*")):
        data = path.read_bytes()
        for name in names:
            if re.search(_NAMESPACE + rf"{len(name)}{name}[EC]".encode(), data):
                found[name].append(path.name.split("_intel_")[1].split("_")[0].upper())
    return found


@functools.cache
def here() -> Mapping[str, str]:
    """Where each class of ovlpt is, by its name."""
    found: dict[str, str] = dict.fromkeys(PASSES, "`ovlpt.LowPrecision`, a step of it")
    root = Path(ovlpt.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if path.parent.name == "native":  # what the native library does otherwise, beside the class of the name
            continue
        module = ".".join(("ovlpt", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = f"`{module}`"
    return found


def table(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Class, the plugins that name it, and what is here for it; "" for nothing."""
    library = next(iter(sorted(folder.glob("libopenvino.so*"))), None)
    if library is None:
        raise InputError(f'"{folder}" has no library of OpenVINO; give the folder "openvino/libs" of a wheel')
    names, mine = classes(library), here()
    plugins = users(folder, names)
    for name in names:
        yield name, ", ".join(plugins[name]), mine.get(name) or ELSEWHERE.get(name, "")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.native_classes", description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(openvino.__file__).parent / "libs", metavar="FOLDER"
    )
    parser.add_argument("--missing", action="store_true", help="only classes that ovlpt has not")
    options = parser.parse_args(arguments)
    try:
        rows = list(table(options.folder))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    missing = [name for name, _, place in rows if not place]
    print("| class | named by the plugins | here |\n| --- | --- | --- |")
    for name, plugins, place in rows:
        if not place or not options.missing:
            print(f"| {name} | {plugins} | {place or 'nothing'} |")
    print(f"\n{len(rows)} classes, {len(missing)} of them are not in ovlpt", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
