"""Time of ``LowPrecision`` against the native pass: ``python -m tools.pass_time MODEL.xml …``.

Each round compiles the stock model under OV_ENABLE_PROFILE_PASS, which prints the time of the native pass, and runs
ours
on the model after the common optimizations, in a process of their own. The figure is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from statistics import median

from rich.console import Console
from rich.table import Table

ROUND = """
import sys, time, openvino, ovlpt
from ovlpt.openvino_api import Manager
from ovlpt.prerequisites.common_optimizations import CommonOptimizations
core = openvino.Core()
config = ovlpt.plugin_config.for_device(core, "CPU")
for turn in range(2):
    core.compile_model(sys.argv[1], "CPU")
    model = core.read_model(sys.argv[1])
    CommonOptimizations(ovlpt.plugin_config.kernels("CPU")).run_on_model(model)
    step = ovlpt.LowPrecision.from_config(config, native_only=True)
    start = time.perf_counter()
    step.run_on_model(model)
    print("ovlpt_ms", (time.perf_counter() - start) * 1e3, flush=True)
"""
NATIVE = re.compile(r"ov::pass::low_precision::LowPrecision\s+(\d+)ms")


def one_round(path: str) -> tuple[list[float], list[float]]:
    """Milliseconds of the native and of our pass, first and second run in one process."""
    environment = {**os.environ, "OV_ENABLE_PROFILE_PASS": "true"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ROUND, path], env=environment, capture_output=True, text=True, check=True
    )
    native = [float(value) for value in NATIVE.findall(done.stdout + done.stderr)]
    mine = [float(value) for value in re.findall(r"ovlpt_ms (\S+)", done.stdout)]
    return native, mine


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pass_time", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.xml")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    table = Table("network", "native ms", "ovlpt ms", "ratio", "ratio, first run in a process")
    for path in options.models:
        rounds = [one_round(path) for _ in range(options.rounds)]
        native, mine = (median(each[which][1] for each in rounds) for which in (0, 1))
        ratio = median(ours[1] / theirs[1] for theirs, ours in rounds)
        first = median(ours[0] / theirs[0] for theirs, ours in rounds)
        name = path.rsplit("/", 1)[-1].removesuffix(".xml")
        table.add_row(name, f"{native:.0f}", f"{mine:.0f}", f"{ratio:.2f}", f"{first:.2f}")
    Console(width=100).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
