"""One quantized network: float, FakeQuantize simulation, stock and ovlpt on the same samples."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import ovlpt
from ovlpt.device.compile import float_types
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.properties import EXACT, UNCACHED
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.numbers.runs import at_sizes
from ovlpt.inspect.numbers.steadiness import COARSE, moved
from ovlpt.openvino_api import Core, Model
from tools.real.networks import REAL, Sample
from tools.real.wheels import Wheels

ROUNDING = 80.0  # dB: beyond, the rounding of f32 decides
GARBAGE = 10.0  # dB: below, roundings explain a sample only where they move the simulation as far
APART = 3.0  # dB: two ways of rounding the same integers are nearer
FLOAT, RUNTIME, SIMULATION, STOCK, OVLPT = "float", "ONNX Runtime", "simulation", "stock", "ovlpt"
MOVED = "moved simulation"


@dataclass(frozen=True)
class Run:
    """What one way of running a network gave. The truth is the simulation, and of that and of ONNX Runtime the float
    network.
    """

    scores: tuple[float, ...]  # of the samples, 0 to 1
    decibels: float | None = None  # of the output that is furthest from the truth's, over all samples
    each: tuple[float, ...] = ()  # the same for each sample
    weighted: int = 0
    int8: int = 0  # of these
    executed: int = 0
    float_layers: tuple[str, ...] = ()
    throws: str = ""  # what it said in place of all that


@dataclass(frozen=True)
class Result:
    """A network, how it was quantized, and what became of it; ``failure`` where something did not compile or run.

    ``runs``: "ONNX Runtime" for its files; "stock" and "ovlpt" with floats in f32, and with the name of another type
    appended ("stock bf16"). "moved simulation" where samples were to be explained: the simulation whose data differ
    before each quantization (`moved`), against the one whose data do not.
    """

    network: str
    variant: str
    runs: dict[str, Run]
    failure: str = ""

    def pairs(self) -> dict[str, tuple[Run, Run]]:
        """Stock and ovlpt, by what is appended to their names."""
        ends = [name.removeprefix(STOCK) for name in self.runs if name.startswith(STOCK)]
        return {end: (self.runs[STOCK + end], self.runs[OVLPT + end]) for end in ends if OVLPT + end in self.runs}

    def misses(self) -> dict[str, str]:
        """What is worse than stock: "failure", or "metric", "SQNR", "int8", "layers" with the end of the runs' names → a
        sentence. "truth" where the simulation, which the others are compared with, is worse than ONNX Runtime.
        """
        if self.failure:
            return {"failure": self.failure}
        found = {what + end: said for end, pair in self.pairs().items() for what, said in self._worse(*pair).items()}
        return self._untrue() | found

    def _untrue(self) -> dict[str, str]:
        if RUNTIME not in self.runs:
            return {}
        made_for, simulated = self.runs[RUNTIME], self.runs[SIMULATION]
        theirs, ours = (np.clip(run.each, -ROUNDING, ROUNDING) for run in (made_for, simulated))
        if not beyond_noise(np.subtract(simulated.scores, made_for.scores), 1e-3) and not beyond_noise(
            ours - theirs, APART
        ):
            return {}
        return {
            "truth": f"simulation {np.mean(simulated.scores):.3f} and {simulated.decibels:.1f} dB from float, ONNX Runtime "
            f"{np.mean(made_for.scores):.3f} and {made_for.decibels:.1f} dB"
        }

    def _lowest(self, each: np.ndarray) -> float:
        """The lowest of the decibels of ``each`` sample that no rounding explains: the simulation does not move so far."""
        steady = self.runs[MOVED].each if MOVED in self.runs else ROUNDING
        return float(each.min(initial=ROUNDING, where=each < np.minimum(steady, ROUNDING) - APART))

    def _worse(self, stock: Run, mine: Run) -> dict[str, str]:
        if stock.throws:
            return {}
        found = {}
        if beyond_noise(np.subtract(mine.scores, stock.scores), 1e-3):
            found["metric"] = f"{np.mean(mine.scores):.3f}, stock {np.mean(stock.scores):.3f}"
        theirs, ours = (np.clip(run.each, -ROUNDING, ROUNDING) for run in (stock, mine))
        if mine.decibels < min(stock.decibels, ROUNDING) - 1 and (
            beyond_noise(ours - theirs, 1) or self._lowest(ours) < min(GARBAGE, theirs.min() - APART)
        ):
            found["SQNR"] = f"{mine.decibels:.1f} dB, stock {stock.decibels:.1f}"
        if mine.int8 < stock.int8:
            found["int8"] = f"{mine.int8} layers, stock {stock.int8}"
        if mine.executed > stock.executed:
            found["layers"] = f"{mine.executed} executed, stock {stock.executed}"
        return found


def beyond_noise(differences: np.ndarray, tolerance: float) -> bool:
    """Whether paired differences are below 0 by more than ``tolerance`` and than two standard errors of their mean.

    Two exact ways of computing a sum round a tie apart now and then; in a deep network that changes a whole sample, and
    of a hundred samples two or three, here or there.
    """
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return bool(differences.mean() < -max(tolerance, 2 * error))


def measure(home: Path, path: Path, types: Sequence[str] = ()) -> Result:
    """Measure the quantized model ``path`` of the network whose files lie in ``home``, with floats in f32, and in the CPU's
    default type or in ``types``.
    """
    network = REAL[home.name]
    with (home / "data.pickle").open("rb") as file:
        data = pickle.load(file)
    samples, truth, score = data["evaluation"], data["truth"], network.score(Wheels(home.parent / "wheels"))
    core, runs = Core(), {}
    try:
        model = core.read_model(path)
        reference = infer(core.compile_model(str(home / "float.xml"), "CPU", EXACT), samples)
        truth = reference if network.truth_is_float else truth
        runs[FLOAT] = Run(tuple(map(float, score(reference, truth))))
        truly = simulated(core, model, samples)
        runs[SIMULATION] = _of(reference, truly, score(truly, truth))
        if path.suffix == ".onnx":
            with contextlib.suppress(BrokenProcessPool):
                outputs = by_onnx_runtime(path, samples)
                runs[RUNTIME] = _of(reference, outputs, score(outputs, truth))
        for floats in dict.fromkeys(("f32", *types)) if types else float_types(core):
            properties = {"INFERENCE_PRECISION_HINT": floats, **UNCACHED}
            end = "" if floats == "f32" else f" {floats}"
            try:
                compiled = core.compile_model(model, "CPU", properties)
                outputs = infer(compiled, samples)
                runs[STOCK + end] = _run(compiled, truly, outputs, score(outputs, truth))
            except Exception as error:  # of the plugin: it is no miss of the pass
                runs[STOCK + end] = Run((), throws=_said(error))
            compiled = ovlpt.compile_model(model, "CPU", properties, core=core)
            outputs = infer(compiled, samples)
            runs[OVLPT + end] = _run(compiled, truly, outputs, score(outputs, truth))
    except Exception as error:  # of the plugin or of the pass: the network is a miss, the others are still measured
        return Result(home.name, path.stem, runs, _said(error))
    result = Result(home.name, path.stem, runs)
    if any(miss.startswith("SQNR") for miss in result.misses()):
        runs[MOVED] = _moved(core, model, samples, truly)
    return result


def _moved(core: Core, model: Model, samples: Sequence[Sample], truly: list[list[np.ndarray]]) -> Run:
    """How far the simulation of each sample moves at most, where what is quantized is half a step of bf16 less or more."""
    ways = [
        [distance([a], [b]) for a, b in zip(truly, simulated(core, moved(model, factors), samples), strict=True)]
        for factors in (COARSE, COARSE[::-1])
    ]
    return Run((), each=tuple(map(min, *ways)))


def _said(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _of(truth: list[list[np.ndarray]], outputs: list[list[np.ndarray]], scores: np.ndarray) -> Run:
    each = tuple(distance([a], [b]) for a, b in zip(truth, outputs, strict=True))
    return Run(tuple(map(float, scores)), distance(truth, outputs), each)


def _run(compiled, truly: list[list[np.ndarray]], outputs: list[list[np.ndarray]], scores: np.ndarray) -> Run:
    layers = ovlpt.execution_types(compiled).executed
    weighted = [layer for layer in layers if layer.layer_type in WEIGHTED_LAYERS]
    return replace(
        _of(truly, outputs, scores), weighted=len(weighted), int8=sum(layer.is_int8 for layer in weighted),
        executed=len(layers), float_layers=tuple(layer.name for layer in weighted if not layer.is_int8),
    )  # fmt: skip


def by_onnx_runtime(path: Path, samples: Sequence[Sample]) -> list[list[np.ndarray]]:
    """The outputs of the runtime that wrote the file, without its optimizations where these fail.

    In a process of its own, which some files end, with its optimizations or without them, too: raises `BrokenProcessPool`.
    """
    try:
        return _elsewhere(path, samples, True)
    except BrokenProcessPool:
        return _elsewhere(path, samples, False)


def _elsewhere(path: Path, samples: Sequence[Sample], optimized: bool) -> list[list[np.ndarray]]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_by_onnx_runtime, path, samples, optimized).result()


def _by_onnx_runtime(path: Path, samples: Sequence[Sample], optimized: bool) -> list[list[np.ndarray]]:
    """On a CPU without VNNI its products of u8 and i8 saturate in pairs, unless it is asked not to."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    make = partial(onnxruntime.InferenceSession, path, options, providers=["CPUExecutionProvider"])
    try:
        session = make() if optimized else None
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        session = None
    if session is None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = make()
    return [[np.asarray(output) for output in session.run(None, sample)] for sample in samples]


def simulated(core: Core, model: Model, samples: Sequence[Sample]) -> list[list[np.ndarray]]:
    """The outputs of the simulation, for every sample at its own fixed sizes: with open ones the plugin takes constants
    by channel wrongly at times.
    """
    networks, found = {}, []
    for sample in samples:
        sizes = tuple((name, array.shape) for name, array in sample.items())
        if sizes not in networks:
            networks[sizes] = simulate(at_sizes(model, dict(sizes)), core)
        found += infer(networks[sizes], [sample])
    return found


def infer(compiled, samples: Sequence[Sample]) -> list[list[np.ndarray]]:
    """The outputs of every sample, in the model's order."""
    found = []
    for sample in samples:
        result = compiled(sample)
        found.append([np.array(result[output]) for output in compiled.outputs])
    return found


def distance(reference: Sequence[Sequence[np.ndarray]], outputs: Sequence[Sequence[np.ndarray]]) -> float:
    """Signal to noise ratio in dB of the output that is furthest from the reference, over all samples.

    -inf where a shape differs or a value is not finite; 200 where nothing differs.
    """
    worst = 200.0
    for index in range(len(reference[0])):
        if any(a[index].shape != b[index].shape for a, b in zip(reference, outputs, strict=True)):
            return -np.inf
        true, found = (
            np.concatenate([each[index].ravel() for each in side]).astype(float) for side in (reference, outputs)
        )
        if not np.isfinite(found).all():
            return -np.inf
        noise, signal = ((true - found) ** 2).sum(), (true**2).sum()
        if noise:
            worst = min(worst, float(10 * np.log10(max(signal, 1e-30) / noise)))
    return worst
