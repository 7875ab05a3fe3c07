"""``python -m tools.parity DIR|MODEL...``: ovlpt against the native library, network by network.

First the pass, between the plugin's own dumps, node by node; then the whole pipeline, from the model that a user has: what
is executed, in which types, with which numbers, with ``native_only`` and without.

A MODEL is a file of a quantized network (IR, ONNX …), a DIR a folder of such files or one with ``pre.xml`` and
``post.xml``, the model before and after the native pass, where there is no pipeline to compare. The native result is that
of the stock CPU plugin; with ``--gpu`` that of the GPU plugin on a virtual GPU, with ``--arm`` that of the native pass
under the restrictions of an ARM CPU, both of the pass only.
"""

from __future__ import annotations

import argparse
import math
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
from tools.parity.pipeline import pipeline
from tools.parity.stock import before_and_after


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="DIR|MODEL")
    parser.add_argument("--differences", type=int, default=20, help="how many to print for each network (default 20)")
    parser.add_argument("--only", choices=("pass", "pipeline"), help="one of the two comparisons")
    plugin = parser.add_mutually_exclusive_group()
    plugin.add_argument("--gpu", default="", choices=tuple(GPUS), help="as the GPU plugin on this virtual GPU")
    plugin.add_argument("--arm", action="store_true", help="as the CPU plugin on ARM")
    options = parser.parse_args(arguments)
    config = plugin_config.for_device(core())
    if options.gpu:
        config = plugin_config.gpu.config(systolic=GPUS[options.gpu] == XMX)
    elif options.arm:
        config = plugin_config.arm.config()
    has_pipeline = not options.gpu and not options.arm and options.only != "pass"
    if options.only == "pipeline" and not has_pipeline:
        parser.error("the whole pipeline is compared on the CPU of this machine only")
    unequal = 0
    for path in pairs_and_models(options.models):
        parts = [lambda path=path: _pass(path, options, config)] if options.only != "pipeline" else []
        if has_pipeline and not path.is_dir():
            parts.append(lambda path=path: _pipeline(path))
        for part in parts:
            try:
                equal, line, differences = part()
            except InputError as error:
                equal, line, differences = False, str(error), []
            unequal += not equal
            print(f"{path.stem:24} {line}", flush=True)
            for difference in differences[: options.differences]:
                print(f"    {difference}")
    return 1 if unequal else 0


def _pass(path: Path, options: argparse.Namespace, config: PluginConfig) -> tuple[bool, str, list[str]]:
    before, after = _models(path, options.gpu)
    if options.arm:
        after = run_native_with(config, before)
    seconds, result = _compared(before, after, config)
    share = f"{result.matched} / {result.total} nodes  {result.matched / result.total:.2%}  {seconds * 1e3:.0f} ms"
    return result.equal, share, result.differences


def _pipeline(path: Path) -> tuple[bool, str, list[str]]:
    result = pipeline(path, core())
    line = "  ".join(
        f"{variant} {each.low} int8 of {each.count} layers, {min(each.sqnr, default=math.inf):.1f} dB"
        for variant, each in result.executed.items()
    )
    return result.equal, line, [f"{variant}: {each}" for variant, found in result.differences.items() for each in found]


def pairs_and_models(paths: list[Path]) -> Iterator[Path]:
    """Models, and folders that hold a traced pair."""
    for path in paths:
        if (path / "pre.xml").exists():
            yield path
        else:
            yield from networks([path])
            yield from sorted(path.glob("*.onnx"))
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
