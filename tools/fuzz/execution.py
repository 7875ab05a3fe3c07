"""What the CPU plugin executes of a transformed model, against what it executes with its own LPT.

What is meant is not told: what a quantization to 16 bits clips is clipped, which stock leaves out, and it waits for an If of
dynamic sizes; a strided layer has a pool before it where CPUs with AVX2 need that, and channels are repeated before one of
several outputs for each; an interval along another axis than that of the channels is computed in steps, which stock reads
wrongly where its ends differ; a layer that a CPU computes wrongly in int8 stays in float, and so does one of data with more
levels than int8 has, which stock rounds to fewer; MatMuls become convolutions where those are faster, Reorders included; a
layer that is in int8 here alone may need one before and one after it that converts; and layers that stock fuses into others
may be what makes its numbers wrong. A Reshape is none: it moves nothing.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import ovlpt
from ovlpt import plugin_config
from ovlpt.canonicalize.mat_mul_to_convolution import MatMulToConvolution
from ovlpt.choices import OVLPT
from ovlpt.choices import STOCK as STOCK_VARIANT
from ovlpt.device import ExecutionTypes
from ovlpt.device.lowering import fake_quantize, guards, kernels, windows, zero_points
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.names import ORIGINAL_SUFFIX
from ovlpt.inspect.check.execution import Executed, execute
from ovlpt.inspect.check.layers import Kind
from ovlpt.openvino_api import Constant, Manager, Model, Node
from ovlpt.qdq_stripping import QDQStripping
from ovlpt.trace import Outcome, OvlptError, Trace
from tools.fuzz.graphs import Graph, NoFloatRun, build, reference
from tools.fuzz.numbers import STOCK, Failure, cause_of, is_wrong, nearby, of_numbers, run, simulated_at_one_pixel
from tools.fuzz.shifts import kernel_grids
from tools.fuzz.truth import simulate
from tools.parity.driver import core

WAY = "execution"
_CONVERTING = {"Convert", "Eltwise", "FakeQuantize", "Reorder", "Subgraph"}  # floats to integers, or back
# What rules add; a Gather of channels reads and writes another layout than layers
_MEANT = {
    kernels.repeat_channels.__name__: Counter(Gather=1, Reorder=2),
    zero_points.pad_before_zero_point.__name__: Counter(Pad=1),
    windows.pool_strides.__name__: Counter(Pooling=1),
    windows.span_whole_strides.__name__: Counter(StridedSlice=1),
    fake_quantize.compute_in_steps.__name__: Counter(Convert=3, Eltwise=2),
}


def failures(graph: Graph, only: str | None = None) -> Iterator[Failure]:
    """Layers with weights that run in int8 only with the plugin's own LPT, and layers that only ovlpt's model has."""
    if not graph.is_quantized:
        return
    try:
        model = build(graph)
        stock = execute(clipped(model), "CPU", [STOCK_VARIANT], core=core())
    except (NoFloatRun, OvlptError) as error:
        yield Failure(STOCK, cause_of(error), str(error)[-300:])
        return
    if only == STOCK:
        return
    try:
        failure = _difference(model, stock)
    except OvlptError as error:
        failure = Failure(WAY, cause_of(error), str(error)[-300:])
    if failure is not None:
        is_theirs = failure.way == WAY and _is_wrong_in_stock(graph, model)
        yield Failure(STOCK, f"wrong numbers; {failure.cause}", failure.details) if is_theirs else failure


def _difference(model: Model, stock: Executed) -> Failure | None:
    mine = execute(model, "CPU", [OVLPT], core=core())
    both = Executed("", stock.layers | mine.layers, stock.operations)
    for difference in both.against_stock():
        if difference.fails:
            if difference.kind == Kind.MISSING and _is_joined(model, difference.layer):
                continue
            if difference.kind == Kind.LOST and _run_in_int8(mine, stock):
                continue
            code = _why_in_float(model, difference.layer)
            cause = f"int8 {difference.kind}: {difference.layer_type}"
            return Failure(STOCK, f"{cause}, {code}") if code else Failure(WAY, cause, str(difference))
    if (found := _unmeant(mine, stock) - _of_inputs(mine, stock)) and (found := found - _lowered(model)):
        config = plugin_config.for_device(core(), "CPU")
        plain = replace(config, disabled=(*config.disabled, MatMulToConvolution.__name__))
        found &= _unmeant(execute(model, "CPU", [OVLPT], plain, core=core()), stock)
    if not found:
        return None
    return Failure(WAY, f"more layers: {', '.join(sorted(found))}", f"by {found.total()}: {dict(found)}")


def _unmeant(mine: Executed, stock: Executed) -> Counter[str]:
    """The layers that ovlpt has more; none where they convert around as many layers more that run in int8, or compute what
    stock has in layers that it runs once for each of their readers.
    """
    gained = abs(_in_int8(mine, OVLPT) - _in_int8(stock, STOCK_VARIANT))
    found = _more(mine.layers[OVLPT], stock.layers[STOCK_VARIANT])
    return Counter() if found.keys() <= _CONVERTING and found.total() <= 2 * gained else found


def _of_inputs(mine: Executed, stock: Executed) -> Counter[str]:
    """The Converts of inputs in f16 that stock does not have: the plugin puts one after each before it runs its own LPT, which
    makes it part of a sum with a constant, and nothing else does.
    """
    layers = mine.layers[OVLPT], stock.layers[STOCK_VARIANT]
    counts = [
        sum(each.layer_type == "Convert" and each.precision == "f16" for each in every.executed) for every in layers
    ]
    return Counter(Convert=max(counts[0] - counts[1], 0))


def _is_wrong_in_stock(graph: Graph, model: Model) -> bool:
    """However a user may run it."""
    inputs, exact = graph.inputs(), reference(graph)
    try:
        found, simulated = run(model, inputs, "YES"), simulate(exact, inputs)[: len(graph.results)]
        alone = run(model, inputs, "YES", INFERENCE_NUM_THREADS=1)
        pixel = simulated_at_one_pixel(graph, model)
        at_pixel = None if pixel is None else run(model, pixel[0], "YES")
    except RuntimeError:
        return False
    near = functools.cache(lambda: nearby(exact, inputs, len(simulated), kernel_grids(model)))
    if any(of_numbers(STOCK, each, simulated, None, near) is not None for each in (found, alone)):
        return True
    if pixel is not None and at_pixel is not None:
        inputs_of_one, fixed, right = pixel
        near_one = functools.cache(lambda: nearby(fixed, inputs_of_one, len(right), kernel_grids(model)))
        if of_numbers(STOCK, at_pixel, right, None, near_one) is not None:
            return True
    mine = ovlpt.compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core())(inputs)
    return any(
        _is_far(theirs, right) and not is_wrong(own, right)
        for theirs, own, right in zip(found, mine.values(), simulated, strict=True)
    )


def _is_far(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether a tenth of the elements is off: beside a comparison a tie may move one to the other end of its interval."""
    off = np.abs(found - expected) > 0.01 * np.abs(expected).max()
    return is_wrong(found, expected) and bool(off.mean() > 0.1)


def clipped(model: Model) -> Model:
    """A copy in which quantizations to 16 bits only clip, and what follows an If of dynamic sizes waits for it."""
    result, manager = model.clone(), Manager()
    manager.register_pass(QDQStripping(plugin_config.dropped_levels("CPU")))
    manager.run_passes(result)
    for node in [each for each in all_nodes(result) if each.get_type_name() == "If"]:
        guards.wait_for_branches(node)
    return result


def _lowered(model: Model) -> Counter[str]:
    """The layers that the lowering makes for this CPU on purpose, by type."""
    trace = Trace()
    ovlpt.compile_model(model.clone(), "CPU", core=core(), trace=trace)
    return sum((_MEANT[each.transformation] for each in trace if each.transformation in _MEANT), Counter())


def _is_joined(model: Model, layer: str) -> bool:
    """Whether the plugin runs a layer and another, of the same data and integers, as one."""
    nodes = all_nodes(ovlpt.transform(model, core=core(), serializable=False))
    own = [node for node in nodes if node.get_friendly_name().removesuffix(ORIGINAL_SUFFIX) == layer]
    return any(_are_equal(node, other) for node in own for other in nodes)


def _are_equal(node: Node, other: Node) -> bool:
    if node.get_type_name() != other.get_type_name() or node.get_friendly_name() == other.get_friendly_name():
        return False
    if node.get_attributes() != other.get_attributes() or node.get_input_size() < 2:
        return False
    weights = [each.input_value(1).get_node() for each in (node, other)]
    return (
        node.input_value(0) == other.input_value(0)
        and all(isinstance(each, Constant) for each in weights)
        and np.array_equal(*(each.data for each in weights))
    )


def _why_in_float(model: Model, layer: str) -> str:
    """The code of the reason for which the settings of the plugin, or the levels of its data, keep a layer in float; ""
    without one.
    """
    trace = Trace()
    ovlpt.transform(model, core=core(), trace=trace)
    kept = (each for each in trace.events if each.outcome == Outcome.DISABLED and each.node == layer)
    codes = (each.reason.code for each in kept if each.reason.code not in ("callback", "disabled"))
    return next(codes, "levels" if _has_many_levels(model, layer) else "")


def _run_in_int8(mine: Executed, stock: Executed) -> bool:
    """Whether what stock has in int8 runs so here: a layer of floats and compressed weights has the names of all that it is
    computed from, so that it may be taken for another.
    """
    low = {name for layer in mine.weighted(OVLPT) if layer.is_low for name in layer.operations}
    held = (layer.operations for layer in stock.weighted(STOCK_VARIANT) if layer.is_low)
    return _in_int8(mine, OVLPT) >= _in_int8(stock, STOCK_VARIANT) and not any(map(low.isdisjoint, held))


def _has_many_levels(model: Model, layer: str) -> bool:
    """Whether a layer reads a FakeQuantize of more levels than int8 has."""
    node = next((each for each in all_nodes(model) if each.get_friendly_name() == layer), None)
    source = None if node is None else node.input_value(0).get_node()
    return source is not None and source.get_type_name() == "FakeQuantize" and source.get_attributes()["levels"] > 256


def _in_int8(executed: Executed, variant: str) -> int:
    return sum(layer.is_low for layer in executed.weighted(variant))


def _more(mine: ExecutionTypes, stock: ExecutionTypes) -> Counter[str]:
    """The layers that there are more of, by type; nothing where there are not more altogether. A Reshape is none, and the
    product of a vector, a MatMul in stock, is a FullyConnected.
    """
    executed = ((layer.layer_type for layer in layers.executed) for layers in (mine, stock))
    counts = [
        Counter("MatMul" if kind == "FullyConnected" else kind for kind in kinds if kind != "Reshape")
        for kinds in executed
    ]
    return counts[0] - counts[1] if counts[0].total() > counts[1].total() else Counter()
