"""The two comparisons of one network: the task of a worker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from ovlpt import LowPrecision, plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device.virtual_gpu import GPUS, XMX
from ovlpt.openvino_api import Manager, Model
from ovlpt.trace import InputError
from tools.parity.compare import Comparison, compare
from tools.parity.driver import core, run_native_with
from tools.parity.pipeline import pipeline
from tools.parity.stock import before_and_after

Result = tuple[bool, str, list[str]]


def compared(function: Callable[..., Result], *arguments: object) -> Result:
    """One comparison, in whichever process: whether both are equal, a line on it, and the differences."""
    try:
        return function(*arguments)
    except InputError as error:
        return False, str(error), []


def _config(gpu: str, arm: bool) -> PluginConfig:
    if gpu:
        return plugin_config.gpu.config(systolic=GPUS[gpu] == XMX)
    return plugin_config.arm.config() if arm else plugin_config.for_device(core())


def of_pass(path: Path, gpu: str, arm: bool) -> Result:
    config = _config(gpu, arm)
    before, after = _models(path, gpu)
    if arm:
        after = run_native_with(config, before)
    seconds, result = _compared(before, after, config)
    share = f"{result.matched} / {result.total} nodes  {result.matched / result.total:.2%}  {seconds * 1e3:.0f} ms"
    return result.equal, share, result.differences


def of_pipeline(path: Path) -> Result:
    result = pipeline(path, core())
    ways = [each for each in (result, result.in_default) if each is not None]
    line = "  ".join(
        f"{variant} {each.low} int8 of {each.count} layers, {min(each.sqnr, default=math.inf):.1f} dB"
        + (f" in {way.floats}" if way is not result else "")
        for way in ways
        for variant, each in way.executed.items()
    )
    differences = [
        f"{variant} in {way.floats}: {each}"
        for way in ways
        for variant, found in way.differences.items()
        for each in found
    ]
    return result.equal, line, differences


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
