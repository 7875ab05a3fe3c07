"""Time until a model is ready to run: ``python -m tools.load_time MODEL.xml|DIR …``.

Each way goes from the path of a file to the compiled model:

* stock: ``core.compile_model(path, "CPU")``, the plugin's own LPT included.
* baked: the same call on the file that ``ovlpt transform`` saved, with the plugin's own LPT off; transforming is not
  counted.
* ovlpt: ``ovlpt.compile_model(path)``: reading, common optimizations, LPT, lowering and compiling, all of it.
* kept: ``ovlpt.compile_model(path, cache_dir=…)`` where the transformed model is kept, and the plugin caches nothing.
* stock again, ovlpt again: with a CACHE_DIR in which the plugin has cached what either way compiles.

Every measurement has a fresh process, in which the modules are imported and the plugin is loaded before the clock
starts. A round takes each way once; the ratios are medians over the rounds of a way's time divided by that of stock (of
stock again) in the same round. Exit status 1 when a bound is missed.
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

# Each ratio is of one way to another.
RATIOS = {"baked": "stock", "ovlpt": "stock", "kept": "stock", "ovlpt again": "stock again"}

LOAD = """
import json, sys, time, openvino, ovlpt
path, package, properties, folder = *sys.argv[1:3], *map(json.loads, sys.argv[3:])
core = openvino.Core()
core.get_property("CPU", "FULL_DEVICE_NAME")
ovlpt.compile_model  # a name of the package is imported when it is first used
start = time.perf_counter()
if package == "ovlpt":
    compiled = ovlpt.compile_model(path, "CPU", properties, core=core, cache_dir=folder)
else:
    compiled = core.compile_model(path, "CPU", properties)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class LoadTime:
    """Milliseconds of each way, and the ratios of `RATIOS`."""

    network: str
    milliseconds: dict[str, float]
    ratios: dict[str, float]


@dataclass(frozen=True)
class Way:
    path: Path
    package: str
    properties: dict[str, object]
    folder: str | None = None

    def seconds(self) -> float:
        """In a process of its own. Raises `CalledProcessError` where the model does not compile."""
        given = (str(self.path), self.package, json.dumps(self.properties), json.dumps(self.folder))
        command = [sys.executable, "-W", "ignore", "-c", LOAD, *given]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(path: Path, rounds: int) -> LoadTime:
    """Raises `InputError` for a model that cannot be transformed."""
    with tempfile.TemporaryDirectory() as folder:
        baked = Path(folder) / "baked.xml"
        transformed = ovlpt.transform(path)
        openvino.save_model(transformed, baked, compress_to_fp16=False)
        cached = {"CACHE_DIR": f"{folder}/cache"}
        ways = {
            "stock": Way(path, "openvino", {}),
            "baked": Way(baked, "openvino", lpt_properties(transformed, "CPU")),
            "ovlpt": Way(path, "ovlpt", {}),
            "kept": Way(path, "ovlpt", {"CACHE_DIR": ""}, f"{folder}/kept"),
            "stock again": Way(path, "openvino", cached),
            "ovlpt again": Way(path, "ovlpt", cached),
        }
        for way in ways.values():
            way.seconds()  # fills its cache
        times = [{name: way.seconds() for name, way in ways.items()} for _ in range(rounds)]
    taken = {name: 1e3 * median(time[name] for time in times) for name in ways}
    ratios = {name: median(time[name] / time[other] for time in times) for name, other in RATIOS.items()}
    return LoadTime(path.stem, taken, ratios)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.load_time", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.xml|DIR")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is taken (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    for name in RATIOS:
        parser.add_argument(
            f"--max-{name.replace(' ', '-')}", type=float, metavar="RATIO",
            help=f"bound of the geometric mean of {name} / {RATIOS[name]}",
        )  # fmt: skip
    options = parser.parse_args(arguments)
    times = []
    for path in networks(options.models):
        times.append(measure(path, options.rounds))
        print(times[-1].network, *(f"{ratio:.2f}" for ratio in times[-1].ratios.values()), file=sys.stderr)
    table = Table(
        "network", *(f"{name} ms" for name in times[0].milliseconds), *(f"{a} / {b}" for a, b in RATIOS.items())
    )
    for time in times:
        figures = (f"{each:.0f}" for each in time.milliseconds.values())
        table.add_row(time.network, *figures, *(f"{each:.2f}" for each in time.ratios.values()))
    means = {name: geometric_mean(time.ratios[name] for time in times) for name in RATIOS}
    if options.json:
        figures = {"networks": [asdict(time) for time in times], "geometric_means": means}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    Console(width=160).print(table)
    print("geometric means:", ", ".join(f"{name} / {RATIOS[name]} {mean:.2f}" for name, mean in means.items()))
    bounds = {name: getattr(options, f"max_{name.replace(' ', '_')}") for name in RATIOS}
    return int(any(bound is not None and means[name] > bound for name, bound in bounds.items()))


if __name__ == "__main__":
    sys.exit(main())
