"""From the model that a user has, through the whole pipeline: what is executed, in which types, with which numbers.

The pass alone, between the plugin's own dumps, says nothing of what common optimizations lose before it. Floats are in f32
and, where that is another, in the CPU's default type, whose rounding may move a result by more: there an output may be 3 dB
farther from the simulation in f32 than stock's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import ovlpt
from ovlpt.device import execution_types
from ovlpt.device.compile import float_types
from ovlpt.device.execution_types import ExecutionTypes, last_line
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.properties import UNCACHED
from ovlpt.inspect.check.layers import LayerPrecision, pair
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.inputs import random_inputs
from ovlpt.inspect.noise import Noise
from ovlpt.inspect.numbers.distance import verdict
from ovlpt.openvino_api import CompiledModel, Core, Model
from ovlpt.trace import InputError

STOCK, NATIVE, DEFAULT = "stock", "native_only", "ovlpt"
VARIANTS = {NATIVE: {"native_only": True}, DEFAULT: {}}
ENOUGH = 60.0  # dB: what is nearer to the simulation differs by the last bits
MARGIN = 1.0  # dB below stock
_LOW = ("u8", "i8")
_PRODUCTS = frozenset(("Einsum", "MatMul", "ScaledDotProductAttention"))
Signature = tuple[frozenset[str], str, str]  # of an output: names, type and shape


@dataclass(frozen=True)
class Executed:
    """One compiled network: its layers, and how near each output comes to the simulation, in dB."""

    layers: ExecutionTypes
    sqnr: tuple[float, ...]
    signature: tuple[Signature, ...]

    @property
    def count(self) -> int:
        return len(self.layers.executed)

    @property
    def low(self) -> int:
        """Weighted layers in int8."""
        return sum(layer.is_int8 for layer in self.layers.executed if layer.layer_type in WEIGHTED_LAYERS)


@dataclass(frozen=True)
class Pipeline:
    """One network as stock runs it and as each of `VARIANTS` does; ``differences``: what is worse than stock's."""

    executed: Mapping[str, Executed]
    differences: Mapping[str, tuple[str, ...]]
    floats: str = "f32"
    in_default: Pipeline | None = None  # the same with floats in the CPU's default type, where that is another

    @property
    def equal(self) -> bool:
        return not any(self.differences.values()) and (self.in_default is None or self.in_default.equal)


def pipeline(path: Path | Model, core: Core | None = None) -> Pipeline:
    """Compile the network of a file on the CPU, with its own LPT and without, and compare.

    Raises `InputError` where stock cannot compile or run it, or where it is not quantized.
    """
    core = core or Core()
    source = core.read_model(str(path)) if isinstance(path, (str, Path)) else path
    inputs = random_inputs(source)
    try:
        truth = _outputs(simulate(source, core), inputs)
        found, *others = (_with(floats, source, inputs, truth, core) for floats in float_types(core))
    except InputError:
        raise
    except RuntimeError as error:
        raise InputError(f"the stock plugin cannot run {path}: {last_line(error)}") from error
    return replace(found, in_default=next(iter(others), None))


def _with(floats: str, source: Model, inputs: list[np.ndarray], truth: list[np.ndarray], core: Core) -> Pipeline:
    """In one type of floats."""
    properties = {"INFERENCE_PRECISION_HINT": floats, **UNCACHED, "PERF_COUNT": True}
    stock = _executed(core.compile_model(source, "CPU", properties), inputs, truth)
    executed, differences = {STOCK: stock}, {}
    kinds = {node.get_friendly_name(): node.get_type_name() for node in source.get_ops()}
    names = [port.get_names() for port in source.outputs]
    for variant, settings in VARIANTS.items():
        try:
            compiled = ovlpt.compile_model(source, "CPU", properties, core=core, strict=True, **settings)
            executed[variant] = _executed(compiled, inputs, truth)
        except InputError:
            raise
        except RuntimeError as error:
            differences[variant] = (f"it does not run: {last_line(error)}",)
            continue
        differences[variant] = (
            *_worse(stock, executed[variant], kinds, exact=floats == "f32"),
            *_other_outputs(stock.signature, executed[variant].signature, names),
        )
    return Pipeline(executed, differences, floats)


def _outputs(compiled: CompiledModel, inputs: list[np.ndarray]) -> list[np.ndarray]:
    return [np.array(value) for value in compiled.create_infer_request().infer(inputs).values()]


def _executed(compiled: CompiledModel, inputs: list[np.ndarray], truth: list[np.ndarray]) -> Executed:
    results = _outputs(compiled, inputs)
    signature = tuple(
        (frozenset(port.get_names()), port.get_element_type().get_type_name(), str(port.get_partial_shape()))
        for port in compiled.outputs
    )
    sqnr = tuple(_sqnr(*pair_) for pair_ in zip(truth, results, strict=True))
    return Executed(execution_types(compiled, inputs), sqnr, signature)


def _sqnr(expected: np.ndarray, result: np.ndarray) -> float:
    """Over what is finite; minus infinity where shapes or what is finite differ."""
    if expected.shape != result.shape:
        return -np.inf
    finite = np.isfinite(expected.astype(np.float64))
    if (finite != np.isfinite(result.astype(np.float64))).any():
        return -np.inf
    noise = Noise()
    noise.add(expected[finite], result[finite].astype(np.float64))
    return noise.sqnr


def _worse(stock: Executed, mine: Executed, kinds: Mapping[str, str], exact: bool) -> Iterator[str]:
    for theirs, ours in _lost(stock.layers, mine.layers, kinds):
        yield f"{theirs} in stock, {ours}"
    if mine.count > stock.count:
        yield f"{mine.count} executed layers, {stock.count} in stock"
    for index, (near, nearer) in enumerate(zip(mine.sqnr, stock.sqnr, strict=True)):
        if near < min(nearer - MARGIN, ENOUGH) if exact else verdict(near, nearer).fails:
            yield f"output {index}: {near:.1f} dB from the simulation, {nearer:.1f} in stock"


def _other_outputs(stock: tuple[Signature, ...], mine: tuple[Signature, ...], names: list[set[str]]) -> Iterator[str]:
    """``names``: of the model's outputs; stock joins others to them where it leaves out what stands before an output."""
    for index, (theirs, ours, own) in enumerate(zip(stock, mine, names, strict=True)):
        if ours[1:] != theirs[1:] or not own <= ours[0]:
            yield f"output {index} is {_shown(ours)}, not {_shown((frozenset(own), *theirs[1:]))}"


def _shown(signature: Signature) -> str:
    names, precision, shape = signature
    return f"{precision}{shape} {'/'.join(sorted(names))}"


def _lost(stock: ExecutionTypes, mine: ExecutionTypes, kinds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Weighted layers that are int8 in stock only, and Subgraphs of MatMuls that read integers in stock only."""
    sides = []
    for layers in (stock, mine):
        found = {layer.name: layer for layer in layers.executed}
        sides.append(([LayerPrecision.of(layer, kinds) for layer in found.values()], found))
    (theirs, of_stock), (ours, of_mine) = sides
    for wanted, partner in pair(theirs, ours):
        layer, other = of_stock[wanted.name], None if partner is None else of_mine[partner.name]
        if other is None:
            continue
        was_int8 = layer.layer_type in WEIGHTED_LAYERS and layer.is_int8
        if was_int8 and not other.is_int8 and other.layer_type != "Subgraph":  # which has MatMuls of integers as well
            yield f"{layer.layer_type} {layer.name} runs in {layer.exec_type}", f"here in {other.exec_type}"
        are_subgraphs = layer.layer_type == other.layer_type == "Subgraph"
        has_product = any(kinds.get(name) in _PRODUCTS for name in wanted.operations)
        if are_subgraphs and has_product and layer.precision in _LOW and other.precision not in _LOW:
            yield f"{layer.layer_type} {layer.name} reads {layer.precision}", f"here {other.precision}"
