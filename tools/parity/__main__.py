"""``python -m tools.parity DIR|MODEL...``: our pass against the native one, network by network.

A MODEL is an IR of a quantized network, a DIR a folder of such files or one with ``pre.xml`` and ``post.xml``, the
model
before and after the native pass.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ovlpt import LowPrecision, plugin_config
from ovlpt.openvino_api import Manager, Model
from ovlpt.trace import InputError
from tools.ir import networks
from tools.parity.compare import Comparison, compare
from tools.parity.driver import core
from tools.parity.stock import before_and_after


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="DIR|MODEL")
    parser.add_argument("--differences", type=int, default=20, help="how many to print for each network (default 20)")
    options = parser.parse_args(arguments)
    unequal = 0
    for path in pairs_and_models(options.models):
        try:
            before, after = _models(path)
        except InputError as error:
            print(f"{path.stem:24} {error}")
            unequal += 1
            continue
        seconds, result = _compared(before, after)
        unequal += not result.equal
        print(
            f"{path.stem:24} {result.matched} / {result.total} nodes  {result.matched / result.total:.2%}  {seconds * 1e3:.0f} ms"
        )
        for line in result.differences[: options.differences]:
            print(f"    {line}")
    return 1 if unequal else 0


def pairs_and_models(paths: list[Path]) -> Iterator[Path]:
    """Models, and folders that hold a traced pair."""
    for path in paths:
        if (path / "pre.xml").exists():
            yield path
        else:
            yield from networks([path])
            yield from sorted(file.parent for file in path.glob("*/pre.xml"))


def _models(path: Path) -> tuple[Model, Model]:
    if path.is_dir():
        return core().read_model(path / "pre.xml"), core().read_model(path / "post.xml")
    return before_and_after(path)


def _compared(before: Model, after: Model) -> tuple[float, Comparison]:
    manager = Manager()
    manager.register_pass(LowPrecision.from_config(plugin_config.for_device(core()), native_only=True))
    start = time.perf_counter()
    manager.run_passes(before)
    seconds = time.perf_counter() - start
    return seconds, compare(after, before)


if __name__ == "__main__":
    sys.exit(main())
