"""Which of two compiled networks is faster: ovlpt's, and the plugin's own, the float network, or another model.

The machine drifts, and the same network compiled twice may differ by some percent. So both sides are compiled anew for
each of several blocks, and within a block they run in turn, in an order that alternates. The figure is the median of
the paired ratios, time of ovlpt / time of the other side, with a bootstrap interval that draws blocks and then pairs.
Where the interval holds 1 there is no significant difference.

Floats are computed in the device's own type, as a user would run it; on a CPU where that is not f32, both sides are measured
in f32 as well.

With the latency hint a run is one synchronous inference. With others it is a burst of asynchronous ones, as many for
both sides, on as many requests as each side's compiled model asks for; the time of a run is that of the burst by the
number of its inferences.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np
import openvino

from ovlpt import plugin_config
from ovlpt.choices import FLOAT, HINTS, OVLPT, STOCK
from ovlpt.config import PluginConfig, other_names
from ovlpt.config_file import load_config
from ovlpt.device import compile_quantized
from ovlpt.device.compile import default_precision
from ovlpt.device.execution_types import last_line
from ovlpt.device.loading import label_of, read_model
from ovlpt.device.model_zoo import quantized_file
from ovlpt.device.properties import UNCACHED
from ovlpt.device.states import anew
from ovlpt.graph.stamp import is_transformed
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.inspect.inputs import load_inputs, random_inputs
from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies, verdict
from ovlpt.openvino_api import CompiledModel, Core, Model
from ovlpt.predicates import is_function_quantized
from ovlpt.trace import InputError, OvlptError

BLOCKS = 6  # an even number: what is compiled first was seen to run 1 % faster. Six alike by chance: 3 % of the time


@dataclass(frozen=True)
class Side:
    """One side's figures: milliseconds, and bytes."""

    name: str
    read: float
    compile: float  # median over the blocks; of ovlpt with the transformation
    first_inference: float  # median over the blocks
    latencies: tuple[float, ...]  # of each inference, from its start to its end
    total: float  # of all bursts
    streams: str
    requests: int
    batch: int
    peak_memory: int | None  # of a fresh process that reads, compiles and infers once; None: not to be had

    @property
    def iterations(self) -> int:
        return len(self.latencies)

    @property
    def latency(self) -> float:
        """Median."""
        return median(self.latencies)

    @property
    def throughput(self) -> float:
        """Frames per second."""
        return 1e3 * self.batch * self.iterations / self.total

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "read_ms": self.read,
            "compile_ms": self.compile,
            "first_inference_ms": self.first_inference,
            "latency_ms": {
                "median": self.latency,
                "average": fmean(self.latencies),
                "min": min(self.latencies),
                "max": max(self.latencies),
            },
            "throughput_fps": self.throughput,
            "iterations": self.iterations,
            "streams": self.streams,
            "requests": self.requests,
            "peak_memory_bytes": self.peak_memory,
        }


@dataclass(frozen=True)
class Bench:
    """What `bench` found for one model. ``ratio``: time of ovlpt / time of the other side; below 1, ovlpt is faster."""

    model: str
    device: str
    hint: str
    sides: tuple[Side, ...]  # ovlpt, the other
    ratio: float
    interval: tuple[float, float]  # 95 %
    blocks: tuple[float, ...]  # the median ratio of each block
    precision: str = "f32"  # in which floats were computed
    in_f32: Bench | None = None  # the same in f32, where that is not what was asked for, or the CPU's default

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 1, and there were enough runs to tell."""
        return len(self.blocks) >= BLOCKS and not self.interval[0] <= 1 <= self.interval[1]

    @property
    def verdict(self) -> str:
        if len(self.blocks) < BLOCKS:
            return "too few runs to tell"
        return verdict(self.ratio, self.interval, OVLPT, self.sides[1].name)

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "model": self.model,
            "device": self.device,
            "hint": self.hint,
            "sides": {side.name: side.to_json() for side in self.sides},
            "ratio": self.ratio,
            "interval_95": list(self.interval),
            "block_medians": list(self.blocks),
            "verdict": self.verdict,
            "precision": self.precision,
            "in_f32": self.in_f32.to_json() if self.in_f32 else None,
        }


@other_names(plugin="config", device_name="device")
def bench(
    model: Model | str | Path,
    against: Model | str | Path = STOCK,
    device: str = "CPU",
    inputs: str | Path | Sequence[np.ndarray] | None = None,
    hint: str = "latency",
    seconds: float | None = None,
    iterations: int | None = None,
    streams: str | int | None = None,
    infer_precision: str | None = None,
    core: Core | None = None,
    config: PluginConfig | str | Path | None = None,
    progress: Callable[[float], object] = lambda part: None,
    memory: bool = True,
) -> Bench:
    """Measure ``model`` with ovlpt against "stock" (the plugin's own LPT), "float" (FakeQuantize bypassed), or another
    model.

    Another model is compiled with ovlpt, too, if it is quantized, and otherwise as it is. ``inputs``: a file or one array
    per input; by default random. ``hint``: "latency", "throughput" or "none". ``seconds``: time for each side (5
    without ``iterations``); ``iterations``: inferences of each side; with both, until both are reached. ``streams``,
    ``infer_precision``: as benchmark_app's ``-nstreams`` and ``-infer_precision``; without the latter, a CPU whose own type of
    floats is not f32 is measured in both (`Bench.in_f32`), each for that time. ``config``: settings other than the
    device's own, or their file; without a file the memory of ovlpt's side is not measured. ``progress`` is called
    with the part that is done, 0 to 1. ``memory=False``: do not measure peak memory, for which each side runs in another
    process.

    Raises `InputError` for anything unusable.
    """
    core = core or Core()
    plugin_config.check_physical(core, device)
    if hint not in HINTS:
        raise InputError(f'no hint "{hint}"; there are {", ".join(HINTS)}')
    for value, what in ((seconds, "seconds"), (iterations, "iterations")):
        if value is not None and not 0 < value < math.inf:
            problem = "have no end" if value > 0 else "leave nothing to measure"
            raise InputError(f"{value} {what} {problem}; give a number above 0")
    if streams is not None and not re.fullmatch(r"-1|\d{1,4}|AUTO|NUMA", str(streams)):
        raise InputError(f'there are no "{streams}" streams; give a number, AUTO or NUMA')
    if seconds is None:
        seconds = 0.0 if iterations else 5.0
    precisions = [infer_precision or default_precision(core, device)]
    if infer_precision is None and plugin_config.kind(device) == "CPU" and precisions != ["f32"]:
        precisions.append("f32")
    found: Bench | None = None
    for at, precision in reversed(list(enumerate(precisions))):  # in f32 first: a part of the other result
        properties = {
            key: value
            for key, value in {
                **UNCACHED,
                "PERFORMANCE_HINT": HINTS[hint],
                "NUM_STREAMS": None if streams is None else str(streams),
                "INFERENCE_PRECISION_HINT": precision if at else infer_precision,
            }.items()
            if value is not None
        }
        part = partial(_of_all, progress, len(precisions) - 1 - at, len(precisions))
        measured = _bench(
            model, against, device, inputs, hint, seconds, iterations, core, config, properties, part, memory
        )
        found = replace(measured, precision=precision, in_f32=found)
    assert found is not None
    return found


def _bench(
    model: Model | str | Path,
    against: Model | str | Path,
    device: str,
    inputs: str | Path | Sequence[np.ndarray] | None,
    hint: str,
    seconds: float,
    iterations: int | None,
    core: Core,
    config: PluginConfig | str | Path | None,
    properties: Mapping[str, str],
    progress: Callable[[float], object],
    memory: bool,
) -> Bench:
    with TemporaryDirectory() as folder:
        candidates = _candidates(model, against, device, core, config, properties, Path(folder))
        source = candidates[0].model
        if inputs is None:
            arrays = random_inputs(source)
        else:
            arrays = load_inputs(inputs, source) if isinstance(inputs, (str, Path)) else list(inputs)
        blocks = _measure(candidates, arrays, hint == "latency", seconds, iterations, progress)
        peaks = [candidate.peak_memory(device, properties, arrays) if memory else None for candidate in candidates]
    ratios = [np.divide(mine, other) for mine, other in blocks]
    return Bench(
        model=source.get_friendly_name() if isinstance(model, Model) else str(model),
        device=plugin_config.label(core, device),
        hint=hint,
        sides=tuple(candidate.side(peak) for candidate, peak in zip(candidates, peaks, strict=True)),
        ratio=float(np.median(np.concatenate(ratios))),
        interval=bootstrap_interval(ratios),
        blocks=tuple(float(np.median(block)) for block in ratios),
    )


@dataclass
class _Candidate:
    """One side: how it is compiled, and what was measured."""

    name: str
    model: Model
    file: Path  # the model, for the process whose memory is measured
    read: float
    transformed: bool  # by ovlpt
    settings: PluginConfig | str | Path | None
    compile: Callable[[], CompiledModel]
    compile_times: list[float] = field(default_factory=list)
    first_times: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    total: float = 0.0
    streams: str = ""
    requests: int = 1

    def start(self, arrays: Sequence[np.ndarray]) -> tuple[CompiledModel, openvino.InferRequest]:
        """Compile and infer once; both are timed."""
        begin = time.perf_counter()
        try:
            compiled = self.compile()
        except RuntimeError as error:
            raise InputError(f"the model of {self.name} cannot be compiled: {last_line(error)}") from error
        self.compile_times.append((time.perf_counter() - begin) * 1e3)
        request = compiled.create_infer_request()
        begin = time.perf_counter()
        try:
            request.infer(arrays)
        except (RuntimeError, ValueError, TypeError) as error:
            raise InputError(f"the inputs do not fit the model of {self.name}: {last_line(error)}") from error
        self.first_times.append((time.perf_counter() - begin) * 1e3)
        self.streams = str(compiled.get_property("NUM_STREAMS"))
        return compiled, request

    def peak_memory(self, device: str, properties: Mapping[str, str], arrays: Sequence[np.ndarray]) -> int | None:
        """Of a process of its own, in bytes; None where the system does not say, or for settings in no file."""
        if self.transformed and isinstance(self.settings, PluginConfig):
            return None
        with TemporaryDirectory() as folder:
            np.savez(Path(folder) / "inputs.npz", *arrays)
            arguments = [self.file, device, json.dumps(properties), Path(folder) / "inputs.npz"]
            if self.transformed:
                arguments.append(self.settings or "")
            program = [sys.executable, "-P", Path(__file__).with_name("peak_memory.py"), *arguments]
            paths = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
            done = subprocess.run(
                list(map(str, program)), capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
            )
        if done.returncode:
            raise OvlptError(
                f"{self.name} does not run in a process of its own: {done.stderr.strip().splitlines()[-1]}"
            )
        return int(done.stdout.split()[-1]) if done.stdout.strip() else None

    def side(self, peak: int | None) -> Side:
        return Side(
            name=self.name,
            read=self.read,
            compile=median(self.compile_times),
            first_inference=median(self.first_times),
            latencies=tuple(self.latencies),
            total=self.total,
            streams=self.streams,
            requests=self.requests,
            batch=_batch(self.model),
            peak_memory=peak,
        )


def _batch(model: Model) -> int:
    """The first dimension of the first input; 1 where there is none or it is dynamic."""
    shape = model.inputs[0].get_partial_shape() if model.inputs else None
    fixed = shape is not None and shape.rank.is_static and len(shape) > 0 and shape[0].is_static
    return shape[0].get_length() if fixed else 1


def _candidates(
    model: Model | str | Path,
    against: Model | str | Path,
    device: str,
    core: Core,
    config: PluginConfig | str | Path | None,
    properties: Mapping[str, str],
    folder: Path,
) -> tuple[_Candidate, _Candidate]:
    """ovlpt's side and the other. Models that are in no file yet are saved in ``folder``."""
    chosen = load_config(config) if isinstance(config, (str, Path)) else config

    def candidate(name: str, given: Model | str | Path, by_ovlpt: bool | None) -> _Candidate:
        begin = time.perf_counter()
        read = read_model(given, core)
        elapsed = (time.perf_counter() - begin) * 1e3
        file = (
            quantized_file(Path(given))
            if not isinstance(given, Model)
            else folder / f"{len(list(folder.iterdir()))}.xml"
        )
        if isinstance(given, Model):
            openvino.save_model(read, file, compress_to_fp16=False)
        if by_ovlpt is None:
            by_ovlpt = is_function_quantized(read) or is_transformed(read)
        plugin = lambda: core.compile_model(read, device, properties)  # noqa: E731
        mine = lambda: compile_quantized(read, device, properties, chosen, core=core)  # noqa: E731
        return _Candidate(name, read, file, elapsed, by_ovlpt, config, mine if by_ovlpt else plugin)

    first = candidate(OVLPT, model, True)
    if against in (STOCK, FLOAT) and is_transformed(first.model):
        raise InputError(
            f'{label_of(model, first.model)} is transformed already, and its "{against}" side cannot be made from it; give the '
            "quantized model that it was made from"
        )
    if against == STOCK:
        second = candidate(STOCK, model, False)
    elif against == FLOAT:
        second = candidate(FLOAT, without_fake_quantize(first.model), False)
    else:
        name = against.get_friendly_name() if isinstance(against, Model) else Path(against).name
        second = candidate(name if name != OVLPT else f"{name} (other)", against, None)
    shapes = [[str(port.get_partial_shape()) for port in each.model.inputs] for each in (first, second)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f'"{second.name}" takes other inputs, {", ".join(shapes[1])}, than the model, {", ".join(shapes[0])}; '
            "give models with the same inputs"
        )
    return first, second


class _Burst:
    """A number of asynchronous inferences, on as many requests as the compiled model asks for."""

    def __init__(self, compiled: CompiledModel, arrays: Sequence[np.ndarray]):
        self.jobs = 1
        self.latencies: list[float] = []
        self._queue = openvino.AsyncInferQueue(compiled)
        for request in self._queue:
            request.infer(arrays)  # which stay its inputs
        self._has_state = bool(self._queue[0].query_state())
        self._queue.set_callback(lambda request, _: self.latencies.append(request.latency))

    def __len__(self) -> int:
        return len(self._queue)

    def __call__(self) -> None:
        for _ in range(self.jobs):
            if self._has_state:
                self._queue[self._queue.get_idle_request_id()].reset_state()
            self._queue.start_async()
        self._queue.wait_all()


def _of_all(progress: Callable[[float], object], block: int, count: int, part: float) -> None:
    progress((block + part) / count)


def _equal_bursts(bursts: Sequence[_Burst], most: int | None) -> int:
    """Give all bursts the same number of inferences: four for each request, at least 50 ms, at most ``most``; that
    number.
    """
    jobs = 4 * max(map(len, bursts))
    shortest = math.inf
    for burst in bursts:
        burst.jobs = jobs
        begin = time.perf_counter()
        burst()
        shortest = min(shortest, time.perf_counter() - begin)
    jobs *= math.ceil(0.05 / shortest)
    for burst in bursts:
        burst.jobs = min(jobs, most or jobs)
    return bursts[0].jobs


def _inference(request: openvino.InferRequest) -> Callable[[], object]:
    """One inference on the inputs that the request has."""
    return anew(request)


def _measure(
    candidates: Sequence[_Candidate],
    arrays: Sequence[np.ndarray],
    synchronous: bool,
    seconds: float,
    iterations: int | None,
    progress: Callable[[float], object],
) -> list[tuple[np.ndarray, ...]]:
    """For each block the times of both sides' runs, by pairs: milliseconds."""
    count = min(BLOCKS, iterations or BLOCKS)
    blocks: list[tuple[np.ndarray, ...]] = []
    for block in range(count):
        share = (iterations or 0) // count + (block < (iterations or 0) % count)
        order = candidates if block % 2 == 0 else candidates[::-1]
        started = {candidate.name: candidate.start(arrays) for candidate in order}
        jobs, bursts = 1, {}
        if not synchronous:
            bursts = {name: _Burst(compiled, arrays) for name, (compiled, _) in started.items()}
            jobs = _equal_bursts(list(bursts.values()), share)
        runs = {each.name: bursts.get(each.name) or _inference(started[each.name][1]) for each in candidates}
        rounds = math.ceil(share / jobs)
        times = interleaved_latencies(
            runs,
            seconds=2 * seconds / count,
            most=None if seconds else rounds,
            least=rounds or 3,
            progress=partial(_of_all, progress, block, count),
        )
        for candidate in candidates:
            mine, burst = times[candidate.name], bursts.get(candidate.name)
            candidate.total += sum(mine)
            candidate.latencies += burst.latencies[-jobs * len(mine) :] if burst else mine
            candidate.requests = len(burst) if burst else 1
        blocks.append(tuple(np.array(times[candidate.name]) for candidate in candidates))
    return blocks
