"""What `ovlpt.complete` makes of networks of the zoo: ``python -m tools.completed run NAME … --models DIR -o OUT``.

For each network: ``decide`` completes DIR/NAME.xml against DIR/NAME_float.xml, on inputs drawn as those of its calibration,
and writes OUT/NAME.xml, and OUT/NAME.json with the decisions and the SQNR on other inputs: of the given and of the
completed model, as FakeQuantize operations in f32 (the simulation) and as int8 layers with float islands in f32.

Then ``measure`` times the completed model compiled by ovlpt, and the given one compiled by ovlpt and by stock, with the
hints that a user has by default: in turn, in blocks in each of which all are compiled anew. OUT/NAME.json gets the times. A
table and the geometric means are printed.

``run`` does both, within ``--minutes`` for all networks. Each network gets its part of the time that is left. What OUT has
is not done again, nor are the trials of a network that was begun: a journal keeps them, and the same command goes on where
it was ended, and where the time was over. Use a machine that does nothing
else, and an empty OUT, since decisions of a busy machine are kept like any others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import ovlpt
from ovlpt.device.properties import EXACT, F32, LATENCY
from ovlpt.inspect.complete import TIME_OVER
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies
from ovlpt.openvino_api import CompiledModel, Core, Model
from tools.benchmark.measure import samples
from tools.benchmark.sqnr import sqnr

NAMES = ("unet", "leaky", "bert", "regnet", "vit", "segformer", "swin", "dpt")  # what takes little of its time first
CALIBRATION, EVALUATION, OTHERS = 16, 16, 2  # inputs, inputs, and the seed of the latter
LEAST_BLOCKS, BLOCKS, SECONDS = 4, 6, 3.0  # of measuring; seconds are of a block, for the three together
DECIDING, MEASURING = 0.65, 0.9  # parts of a network's time, after which its trials and its blocks end
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
        resume=out / f"{name}.journal",
    )
    ovlpt.save_model(found.model, out / f"{name}.xml")
    numbers = {"given": _numbers(given, original, core), "completed": _numbers(found.model, original, core)}
    _write(out / f"{name}.json", {**found.to_json(), "sqnr_on_others": numbers})
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


def measure(name: str, models: Path, out: Path, core: Core, end: float) -> dict[str, object]:
    """Paired ratios of latencies, completed by the given one, with their 95 % intervals; and milliseconds. The ratio of a
    network without a change is 1. ``end``: after which no block is begun but the least, on the clock of `time.perf_counter`.
    """
    given, completed = core.read_model(models / f"{name}.xml"), core.read_model(out / f"{name}.xml")
    sides: dict[str, Compile] = {
        "stock": lambda: core.compile_model(given, "CPU", LATENCY),
        "given": lambda: ovlpt.compile_model(given, "CPU", LATENCY, core=core),
        "completed": lambda: ovlpt.compile_model(completed, "CPU", LATENCY, core=core),
    }
    changed = any(each["verdict"] == "kept" for each in _read(out, name)["decisions"])
    if not changed:
        del sides["completed"]
    blocks: list[dict[str, list[float]]] = []
    while len(blocks) < LEAST_BLOCKS or (len(blocks) < BLOCKS and time.perf_counter() < end):
        times = _block(sides, next(samples(given)), len(blocks))
        blocks.append({"completed": times["given"], **times})
    medians = {side: float(np.median(np.concatenate([each[side] for each in blocks]))) for side in blocks[0]}
    found: dict[str, object] = {"milliseconds": {side: medians[side] for side in ("stock", "given", "completed")}}
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


def _report(names: Sequence[str], out: Path) -> None:
    print("| network | int8 layers before, after | completed / stock | completed / given by ovlpt |", end="")
    print(" stock, given, completed (ms) | SQNR simulated (dB) | SQNR in int8 (dB) |")
    print("|" + " --- |" * 7)
    found = {name: _read(out, name) for name in names}
    for name, each in found.items():
        print(_row(name, each, each["latencies"]))
    for other in ("stock", "given"):
        ratios = {name: each["latencies"][other][0] for name, each in found.items()}
        print(f"geometric mean of completed / {other}: {_mean(ratios.values()):.3f}")
        if {"leaky"} < set(ratios):
            rest = [ratio for name, ratio in ratios.items() if name != "leaky"]
            print(f"geometric mean of completed / {other} without leaky: {_mean(rest):.3f}")


def _mean(ratios) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))


def _read(out: Path, name: str) -> dict:
    path = out / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _is_decided(found: Mapping) -> bool:
    """Whether there was time for every trial."""
    return bool(found) and all(each["why"] != TIME_OVER for each in found["decisions"])


def _write(path: Path, content: Mapping[str, object]) -> None:
    """All or nothing."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1))
    part.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.completed", description=__doc__)
    parser.add_argument("what", choices=("run", "decide", "measure"))
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"default: {' '.join(NAMES)}")
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="of python -m tools.zoo")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="of the completed models")
    parser.add_argument("--minutes", type=float, default=20.0, help="for all networks; default: 20")
    parser.add_argument("--max-loss", type=float, default=1.0, metavar="DB", help="of deciding; default: 1")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    out, core, end = options.output, Core(), time.perf_counter() + 60 * options.minutes
    for left, name in zip(range(len(options.names), 0, -1), options.names, strict=True):
        begin = time.perf_counter()
        part = max(end - begin, 0.0) / left
        if options.what != "measure" and not _is_decided(_read(out, name)):
            print(decide(name, options.models, out, core, DECIDING * part, options.max_loss), flush=True)
        decided = _read(out, name)
        if options.what == "measure" or (options.what == "run" and "latencies" not in decided):
            latencies = measure(name, options.models, out, core, begin + MEASURING * part)
            _write(out / f"{name}.json", {**decided, "latencies": latencies})
            print(_row(name, decided, latencies), flush=True)
    if options.what != "decide":
        _report(options.names, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
