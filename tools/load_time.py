"""Time until a model is ready to run: ``python -m tools.load_time MODEL.xml|DIR …``.

Three ways, each from the path of a file to the compiled model:

* stock: ``core.compile_model(path, "CPU")``, the plugin's own LPT included.
* baked: the same call on the file that ``ovlpt transform`` saved, with the plugin's own LPT off; transforming is not
  counted.
* ovlpt: ``ovlpt.compile_model(path)``: reading, common optimizations, LPT, lowering and compiling, all of it.

Every measurement has a fresh process, in which the modules are imported and the plugin is loaded before the clock
starts. A round takes each way once; the ratios are medians over the rounds of a way's time divided by stock's in the
same round. Exit status 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import json
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
from ovlpt.device.compile import lpt_properties
from tools.ir import networks

LOAD = """
import json, sys, time, openvino, ovlpt
path, way, properties = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
core = openvino.Core()
core.get_property("CPU", "FULL_DEVICE_NAME")
start = time.perf_counter()
compiled = ovlpt.compile_model(path, "CPU", core=core) if way == "ovlpt" else core.compile_model(path, "CPU", properties)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class LoadTime:
    """Milliseconds of each way, and the ratios to stock."""

    network: str
    stock: float
    baked: float
    ovlpt: float
    baked_ratio: float
    ovlpt_ratio: float


def seconds(path: Path, way: str, properties: dict[str, object]) -> float:
    """Of one way in a process of its own. Raises `CalledProcessError` where the model does not compile."""
    command = [sys.executable, "-W", "ignore", "-c", LOAD, str(path), way, json.dumps(properties)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(path: Path, rounds: int) -> LoadTime:
    """Raises `InputError` for a model that cannot be transformed."""
    with tempfile.TemporaryDirectory() as folder:
        baked = Path(folder) / "baked.xml"
        transformed = ovlpt.transform(path)
        properties = lpt_properties(transformed, "CPU")
        openvino.save_model(transformed, baked, compress_to_fp16=False)
        ways = {"stock": (path, {}), "baked": (baked, properties), "ovlpt": (path, {})}
        times = [{way: seconds(file, way, given) for way, (file, given) in ways.items()} for _ in range(rounds)]
    taken = (1e3 * median(time[way] for time in times) for way in ways)
    ratios = (median(time[way] / time["stock"] for time in times) for way in ("baked", "ovlpt"))
    return LoadTime(path.stem, *taken, *ratios)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.load_time", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.xml|DIR")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is taken (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--max-baked", type=float, metavar="RATIO", help="bound of the baked files' geometric mean")
    parser.add_argument("--max-ovlpt", type=float, metavar="RATIO", help="bound of ovlpt's geometric mean")
    options = parser.parse_args(arguments)
    table = Table("network", "stock ms", "baked ms", "ovlpt ms", "baked / stock", "ovlpt / stock")
    times = []
    for path in networks(options.models):
        time = measure(path, options.rounds)
        times.append(time)
        table.add_row(
            time.network, *(f"{value:.0f}" for value in (time.stock, time.baked, time.ovlpt)),
            *(f"{ratio:.2f}" for ratio in (time.baked_ratio, time.ovlpt_ratio)),
        )  # fmt: skip
        print(f"{time.network} {time.baked_ratio:.2f} {time.ovlpt_ratio:.2f}", file=sys.stderr)
    baked = geometric_mean(time.baked_ratio for time in times)
    mine = geometric_mean(time.ovlpt_ratio for time in times)
    if options.json:
        figures = {"networks": [asdict(time) for time in times], "baked_mean": baked, "ovlpt_mean": mine}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    Console(width=100).print(table)
    print(f"geometric means: baked / stock {baked:.2f}, ovlpt / stock {mine:.2f}")
    return int(baked > (options.max_baked or baked) or mine > (options.max_ovlpt or mine))


if __name__ == "__main__":
    sys.exit(main())
