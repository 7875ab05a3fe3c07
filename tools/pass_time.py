"""Time of ``LowPrecision`` against the native pass: ``python -m tools.pass_time MODEL.xml|DIR …``.

What is compared is one pass, begun on the same graph and ended with the same result (``native_only``, plugin settings):

* native: the plugin's own ``low_precision::LowPrecision`` within a compile of the stock model, as OpenVINO times it
  itself (OV_ENABLE_PROFILE_PASS, in nanoseconds).
* ovlpt: ``LowPrecision.run_on_model`` on the model after the common optimizations.

Both figures hold the prerequisites, markup, main and cleanup steps, and the folding of constants; ours also the copy
that keeps a failing pass from leaving a half-changed model. Neither holds the reading of the file, the common
optimizations before the pass, the lowering after it or the making of kernels. Both sides write the profile.

Each network has a process of its own, in which both passes run in turn. The first pair is reported by itself (it
imports, reads templates, and fills caches); the figures are medians over the pairs after it, the ratio the median of
the pairs' ratios. Exit status 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean, median

import openvino
from rich.console import Console
from rich.table import Table

import ovlpt
from tools.ir import networks

PAIRS = """
import gc, pickle, sys, time, openvino, ovlpt
from ovlpt.common_optimizations import CommonOptimizations
path, pairs, config = sys.argv[1], int(sys.argv[2]), pickle.loads(bytes.fromhex(sys.argv[3]))
core = openvino.Core()
for _ in range(pairs + 1):
    core.compile_model(path, "CPU")
    model = core.read_model(path)
    CommonOptimizations(ovlpt.plugin_config.kernels("CPU"), as_defined=False).run_on_model(model)
    step = ovlpt.LowPrecision.from_config(config, native_only=True)
    gc.collect()  # garbage of the steps before is not the pass's
    start = time.perf_counter_ns()
    step.run_on_model(model)
    print("ovlpt", time.perf_counter_ns() - start, flush=True)  # OpenVINO prints too
"""
NATIVE = "t;ov::pass::low_precision::LowPrecision;"


@dataclass(frozen=True)
class PassTime:
    """Milliseconds of both passes on one network, and their ratio, ovlpt / native."""

    network: str
    native: float
    ovlpt: float
    ratio: float
    first_ratio: float  # of the first run in a process


def measure(path: Path, pairs: int) -> PassTime:
    """Raises `CalledProcessError` where the model does not compile, `ValueError` where the native pass does not run."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile.csv"
        environment = {**os.environ, "OV_ENABLE_PROFILE_PASS": str(profile)}
        # asked here: to ask, a network is compiled, which would be in the profile
        config = pickle.dumps(ovlpt.plugin_config.for_device(openvino.Core(), "CPU")).hex()
        command = [sys.executable, "-W", "ignore", "-c", PAIRS, str(path), str(pairs), config]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        lines = [line for line in profile.read_text().splitlines() if line.startswith(NATIVE)]
    native = [int(line.split(";")[3]) / 1e6 for line in lines]
    mine = [int(line.split()[1]) / 1e6 for line in done.stdout.splitlines() if line.startswith("ovlpt ")]
    if len(native) != len(mine):
        raise ValueError(f"the native pass does not run on {path}; is it a quantized model?")
    first, *ratios = (ours / theirs for ours, theirs in zip(mine, native, strict=True))
    return PassTime(path.stem, median(native[1:]), median(mine[1:]), median(ratios), first)


def markdown(times: list[PassTime]) -> str:
    """The table of docs/benchmarks.md: ratios, largest first."""
    ordered = sorted(times, key=lambda time: -time.ratio)
    rows = [f"| {time.network} | {time.native:.0f} | {time.ovlpt:.0f} | {time.ratio:.2f} |" for time in ordered]
    mean = f"| geometric mean | | | {geometric_mean(time.ratio for time in times):.2f} |"
    return "\n".join(["| network | native ms | ovlpt ms | ratio |", "| --- | --- | --- | --- |", *rows, mean])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pass_time", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.xml|DIR")
    parser.add_argument("--pairs", type=int, default=5, help="how often each pass runs, after a first pair (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/benchmarks.md")
    parser.add_argument("--max-mean", type=float, metavar="RATIO", help="bound of the geometric mean of the ratios")
    parser.add_argument("--max-ratio", type=float, metavar="RATIO", help="bound of each network's ratio")
    options = parser.parse_args(arguments)
    times = []
    for path in networks(options.models):
        times.append(measure(path, options.pairs))
        print(f"{path.stem} {times[-1].ratio:.2f}", file=sys.stderr)
    mean, largest = geometric_mean(time.ratio for time in times), max(times, key=lambda time: time.ratio)
    if options.json:
        figures = {"networks": [asdict(time) for time in times], "geometric_mean": mean, "largest": largest.ratio}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.markdown:
        print(markdown(times))
    else:
        table = Table("network", "native ms", "ovlpt ms", "ratio", "ratio, first run in a process")
        for time in times:
            table.add_row(
                time.network, f"{time.native:.0f}", f"{time.ovlpt:.0f}", f"{time.ratio:.2f}", f"{time.first_ratio:.2f}"
            )
        Console(width=100).print(table)
        print(f"geometric mean {mean:.2f}, largest {largest.ratio:.2f} ({largest.network})")
    return int(mean > (options.max_mean or mean) or largest.ratio > (options.max_ratio or largest.ratio))


if __name__ == "__main__":
    sys.exit(main())
