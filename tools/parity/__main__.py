"""``python -m tools.parity DIR|MODEL...``: our pass against the native one, network by network.

A MODEL is an IR of a quantized network, a DIR a folder of such files or one with ``pre.xml`` and ``post.xml``, the model
before and after the native pass. The native result is that of the stock CPU plugin; with ``--gpu`` that of the GPU plugin
on a virtual GPU; with ``--arm`` that of the native pass under the restrictions of an ARM CPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ovlpt import LowPrecision, plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device.virtual_gpu import GPUS, XMX
from ovlpt.openvino_api import Manager, Model
from ovlpt.trace import InputError
from tools.ir import networks
from tools.parity.compare import Comparison, compare
from tools.parity.driver import core, run_native_with
from tools.parity.stock import before_and_after


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="DIR|MODEL")
    parser.add_argument("--differences", type=int, default=20, help="how many to print for each network (default 20)")
    plugin = parser.add_mutually_exclusive_group()
    plugin.add_argument("--gpu", default="", choices=tuple(GPUS), help="as the GPU plugin on this virtual GPU")
    plugin.add_argument("--arm", action="store_true", help="as the CPU plugin on ARM")
    options = parser.parse_args(arguments)
    config = plugin_config.for_device(core())
    if options.gpu:
        config = plugin_config.gpu.config(systolic=GPUS[options.gpu] == XMX)
    elif options.arm:
        config = plugin_config.arm.config()
    unequal = 0
    for path in pairs_and_models(options.models):
        try:
            before, after = _models(path, options.gpu)
            if options.arm:
                after = run_native_with(config, before)
        except InputError as error:
            print(f"{path.stem:24} {error}")
            unequal += 1
            continue
        seconds, result = _compared(before, after, config)
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


def _models(path: Path, gpu: str) -> tuple[Model, Model]:
    if path.is_dir():
        return core().read_model(path / "pre.xml"), core().read_model(path / "post.xml")
    return before_and_after(path, gpu)


def _compared(before: Model, after: Model, config: PluginConfig) -> tuple[float, Comparison]:
    manager = Manager()
    manager.register_pass(LowPrecision.from_config(config, native_only=True))
    start = time.perf_counter()
    manager.run_passes(before)
    seconds = time.perf_counter() - start
    return seconds, compare(after, before)


if __name__ == "__main__":
    sys.exit(main())
