"""``python -m tools.real.speed DIR [NAME …]``: time of one inference of each pretrained network, ovlpt / stock.

What ``python -m tools.zoo real -o DIR`` built is run on one sample of its task: paired runs in six blocks, in each of
which both sides are compiled anew, in f32 and in the CPU's default type of floats where that is another. The median of
the pairs' ratios, with its 95 % interval. Each file is measured in a process of its own; its figures go to FILE at once,
and a run that was stopped goes on where it was. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean

from ovlpt.inspect.bench import Bench, bench
from ovlpt.openvino_api import Core
from tools.real.networks import REAL
from tools.real.table import grid

HEAD = ("network", "variant", "f32", "in the CPU's default", "milliseconds, stock", "ovlpt")


def measure(path: Path, seconds: float) -> dict[str, list[float]]:
    """Figures of one quantized file: by type of floats the ratio, the ends of its interval, and both sides' milliseconds.

    Raises `InputError` where a side does not compile.
    """
    with (path.parent / "data.pickle").open("rb") as file:
        sample = pickle.load(file)["evaluation"][0]
    model = Core().read_model(path)
    arrays = [sample[port.get_any_name()] for port in model.inputs]
    found = bench(model, inputs=arrays, seconds=seconds, memory=False)
    again = found.in_f32
    figures = {"f32": _figures(again or found)}
    if again is not None:
        figures["default"] = _figures(found)
    return figures


def _figures(found: Bench) -> list[float]:
    mine, other = found.sides
    return [found.ratio, *found.interval, other.latency, mine.latency]


def rows(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> list[tuple[str, ...]]:
    """A row for each file, the slowest beside stock first."""
    found = []
    for name, by_type in sorted(figures.items(), key=lambda each: -each[1]["f32"][0]):
        ratios = [
            f"{ratio:.3f} ({low:.3f}–{high:.3f})" if ratio else ""
            for ratio, low, high, *_ in (by_type["f32"], by_type.get("default", (0, 0, 0)))
        ]
        *_, stock, mine = by_type.get("default", by_type["f32"])
        found.append((*name.split("/"), *ratios, f"{stock:.2f}", f"{mine:.2f}"))
    return found


def means(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Geometric means of the ratios by type of floats, and of the files of each quantization."""
    variants = dict.fromkeys(name.split("/")[1] for name in figures)
    said = []
    for variant in ("all", *variants):
        chosen = [each for name, each in figures.items() if variant in ("all", name.split("/")[1])]
        values = {key: [each[key][0] for each in chosen if key in each] for key in ("f32", "default")}
        texts = [f"{geometric_mean(ratios):.2f} ({key})" for key, ratios in values.items() if ratios]
        said.append(f"{variant}: {', '.join(texts)}")
    return "Geometric means: " + "; ".join(said) + "."


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.real.speed", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="what python -m tools.zoo real -o DIR wrote")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"networks; all of {', '.join(REAL)} by default")
    parser.add_argument("--json", type=Path, metavar="FILE", required=True, help="the figures, kept for the next run")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each side and type of floats (default 2)")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help="quantizations, such as qdq_s8s8; all by default")
    parser.add_argument("--one", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(options.one, options.seconds)))
        return 0
    figures = json.loads(options.json.read_text()) if options.json.exists() else {}
    failed = 0
    for path in quantized(options.folder, options.names or list(REAL)):
        if options.variants and path.stem not in options.variants:
            continue
        if (name := f"{path.parent.name}/{path.stem}") in figures:
            continue
        command = [sys.executable, "-m", "tools.real.speed", str(options.folder), "--json", str(options.json)]
        command += ["--seconds", str(options.seconds), "--one", str(path)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            failed += 1
            print(f"{name}: {(run.stderr.strip().splitlines() or ['no message'])[-1]}", file=sys.stderr, flush=True)
            continue
        figures[name] = json.loads(run.stdout.splitlines()[-1])
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"{name}: {figures[name]['f32'][0]:.3f}", file=sys.stderr, flush=True)
    if not figures:
        print(f"nothing to measure in {options.folder}; python -m tools.zoo real builds it", file=sys.stderr)
        return 2
    print(grid([HEAD, *rows(figures)]), "", means(figures), sep="\n")
    return int(failed > 0)


def quantized(folder: Path, names: Sequence[str]) -> list[Path]:
    """The quantized files of these networks, network by network."""
    files = [path for name in names for path in sorted((folder / name).glob("*")) if path.suffix in (".xml", ".onnx")]
    return [path for path in files if path.stem != "float"]


if __name__ == "__main__":
    sys.exit(main())
