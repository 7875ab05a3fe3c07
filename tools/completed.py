"""What `ovlpt.complete` makes of networks of the zoo: ``python -m tools.completed decide|measure NAME … --models DIR -o OUT``.

``decide`` completes DIR/NAME.xml against DIR/NAME_float.xml, on inputs drawn as those of its calibration, and writes
OUT/NAME.xml, and OUT/NAME.json with the decisions and the SQNR on other inputs: of the given and of the completed model,
as FakeQuantize operations in f32 (the simulation) and as int8 layers with float islands in f32.

``measure`` times what lies in OUT with the hints that a user has by default: the completed model compiled by ovlpt, and the
given one compiled by ovlpt and by stock, in turn, in six blocks in each of which all three are compiled anew. It prints a
table and the geometric means; 70 to 90 seconds for each network. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import ovlpt
from ovlpt.device.properties import EXACT, F32, LATENCY
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies
from ovlpt.openvino_api import CompiledModel, Core, Model
from tools.benchmark.measure import samples
from tools.benchmark.sqnr import sqnr

NAMES = ("bert", "vit", "swin", "segformer", "regnet", "leaky", "dpt", "unet")
CALIBRATION, EVALUATION, OTHERS = 16, 16, 2  # inputs, inputs, and the seed of the latter
BLOCKS, SECONDS = 6, 3.0  # of measuring, for the three together
Compile = Callable[[], CompiledModel]


def decide(name: str, models: Path, out: Path, core: Core, seconds: float, max_loss: float) -> str:
    """Complete one network; a line that says what came of it."""
    given, original = core.read_model(models / f"{name}.xml"), core.read_model(models / f"{name}_float.xml")
    drawn = [[each[port.get_any_name()] for port in given.inputs] for each in islice(samples(given), CALIBRATION)]
    arrays = [np.stack(column) for column in zip(*drawn, strict=True)]
    found = ovlpt.complete(
        *(given, arrays, original),
        max_loss=max_loss,
        seconds=seconds,
        core=core,
        progress=lambda line: print(f"  {line}", file=sys.stderr),
    )
    ovlpt.save_model(found.model, out / f"{name}.xml")
    numbers = {"given": _numbers(given, original, core), "completed": _numbers(found.model, original, core)}
    (out / f"{name}.json").write_text(json.dumps({**found.to_json(), "sqnr_on_others": numbers}, indent=1))
    kept = sum(len(each.candidate.layers) for each in found.kept)
    return f"{name}: {found.before.in_int8} -> {found.after.in_int8} of {found.after.layers}, {kept} layers kept, {numbers}"


def _numbers(model: Model, original: Model, core: Core) -> dict[str, float]:
    """dB against the float model, the mean over the inputs."""
    reference = core.compile_model(original, "CPU", {**LATENCY, **EXACT})
    sides = {
        "simulation": simulate(model, core, properties={**LATENCY, **F32}),
        "int8": ovlpt.compile_model(model, "CPU", {**LATENCY, **F32}, core=core),
    }
    found: dict[str, list[float]] = {side: [] for side in sides}
    for sample in islice(samples(model, OTHERS), EVALUATION):
        expected = [np.array(value) for value in reference(sample).values()]
        for side, compiled in sides.items():
            found[side].append(sqnr(expected, [np.array(value) for value in compiled(sample).values()]))
    return {side: round(float(np.mean(values)), 2) for side, values in found.items()}


def measure(name: str, models: Path, out: Path, core: Core) -> dict[str, object]:
    """Paired ratios of latencies, completed by the given one, with their 95 % intervals; and milliseconds."""
    given, completed = core.read_model(models / f"{name}.xml"), core.read_model(out / f"{name}.xml")
    sides: dict[str, Compile] = {
        "stock": lambda: core.compile_model(given, "CPU", LATENCY),
        "given": lambda: ovlpt.compile_model(given, "CPU", LATENCY, core=core),
        "completed": lambda: ovlpt.compile_model(completed, "CPU", LATENCY, core=core),
    }
    blocks = [_block(sides, next(samples(given)), at) for at in range(BLOCKS)]
    found: dict[str, object] = {
        "milliseconds": {side: float(np.median(np.concatenate([each[side] for each in blocks]))) for side in sides}
    }
    for other in ("stock", "given"):
        ratios = [np.divide(each["completed"], each[other]) for each in blocks]
        found[other] = float(np.median(np.concatenate(ratios))), *bootstrap_interval(ratios)
    return found


def _block(sides: Mapping[str, Compile], sample: Mapping[str, np.ndarray], at: int) -> dict[str, list[float]]:
    order = list(sides)[:: -1 if at % 2 else 1]
    requests = {side: sides[side]().create_infer_request() for side in order}
    runs = {side: lambda request=request: request.infer(sample) for side, request in requests.items()}
    return interleaved_latencies(runs, SECONDS, None)


def _row(name: str, decided: Mapping, found: Mapping) -> str:
    before, after = decided["before"], decided["after"]
    ratios = ["{:.3f} ({:.3f}–{:.3f})".format(*found[other]) for other in ("stock", "given")]
    numbers = [decided["sqnr_on_others"][side] for side in ("given", "completed")]
    decibels = [f"{numbers[0][kind]:.1f}, {numbers[1][kind]:.1f}" for kind in ("simulation", "int8")]
    layers = f"{before['in_int8']}, {after['in_int8']} of {after['layers']}"
    milliseconds = ", ".join(f"{value:.1f}" for value in found["milliseconds"].values())
    return "| " + " | ".join([name, layers, *ratios, milliseconds, *decibels]) + " |"


def _report(names: Sequence[str], models: Path, out: Path, core: Core) -> None:
    print("| network | int8 layers before, after | completed / stock | completed / given by ovlpt |", end="")
    print(" stock, given, completed (ms) | SQNR simulated (dB) | SQNR in int8 (dB) |")
    print("|" + " --- |" * 7)
    measured = {}
    for name in names:
        measured[name] = measure(name, models, out, core)
        print(_row(name, json.loads((out / f"{name}.json").read_text()), measured[name]), flush=True)
    (out / "latencies.json").write_text(json.dumps(measured, indent=1))
    for other in ("stock", "given"):
        ratios = {name: each[other][0] for name, each in measured.items()}
        print(f"geometric mean of completed / {other}: {_mean(ratios.values()):.3f}")
        if set(ratios) - {"leaky"}:
            rest = [ratio for name, ratio in ratios.items() if name != "leaky"]
            print(f"geometric mean of completed / {other} without leaky: {_mean(rest):.3f}")


def _mean(ratios) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.completed", description=__doc__)
    parser.add_argument("what", choices=("decide", "measure"))
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"default: {' '.join(NAMES)}")
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="of python -m tools.zoo")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="of the completed models")
    parser.add_argument("--seconds", type=float, default=300.0, help="for deciding on one network; default: 300")
    parser.add_argument("--max-loss", type=float, default=1.0, metavar="DB", help="of deciding; default: 1")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    core = Core()
    if options.what == "measure":
        _report(options.names, options.models, options.output, core)
        return 0
    for name in options.names:
        print(decide(name, options.models, options.output, core, options.seconds, options.max_loss), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
