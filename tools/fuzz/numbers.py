"""The numbers of a transformed model against the simulation.

A fault is OpenVINO's own where the plugin has it without any LPT: what only its LPT and ovlpt get wrong, ovlpt can keep
right. With `native_only` the result is the native library's, right or not, and stock is asked as well.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from openvino._offline_transformations import apply_moc_transformations

import ovlpt
from ovlpt import Params, plugin_config
from ovlpt.device import PluginLowering
from ovlpt.device.compile import lpt_properties
from ovlpt.device.lowering.links import block_fusion
from ovlpt.device.lowering.rules import RULES
from ovlpt.graph.constants import constant_above
from ovlpt.inspect.numbers.runs import at_sizes
from ovlpt.openvino_api import MARKS_TYPES, CompiledModel, Core, Manager, Model, Node
from ovlpt.operations import RECURRENT, WEIGHTED
from ovlpt.qdq_stripping import QDQStripping
from ovlpt.trace import Trace
from tools.fuzz.graphs import Graph, Value, build, in_float, observed, pruned, reference
from tools.fuzz.native_library import computes_in_float8_natively, lowered_native_result, native_result
from tools.fuzz.operations import STATES
from tools.fuzz.shifts import (
    Grids,
    activations,
    kernel_grids,
    quantum,
    with_kernel_weights,
    with_parted_ties,
    with_rounded_states,
    with_shifted_bodies,
    with_shifts,
)
from tools.fuzz.spelled_out import spelled_out
from tools.fuzz.stored import kept_of
from tools.fuzz.truth import NoTruth, simulate
from tools.parity.driver import NativePassFails, NoCompiler, core

STOCK = "stock plugin"  # fails itself
NO_LPT = "without LPT"
NATIVE_ONLY = "native only"
NATIVE_LIBRARY = "native library"  # what its own pass makes, as `PluginLowering` leaves it
DROP_IN_ON = "drop-in, LPT on"
EVERY = "every way"
ONE_PIXEL = "one pixel"  # of dynamic sizes, as `ovlpt.compile_model` compiles it
AGAIN = "second inference"  # of a model with variables
IN_F16 = "floats in f16"  # asked for, of a CPU that computes in f16
_KEPT_IN_F32 = frozenset(rule.name for rule in RULES if rule.precision == "f32" and "CPU" in rule.devices)
IN_BF16 = "floats in bf16"  # asked for, of a CPU that computes in bf16
_LEVEL = 0.03  # of the largest output: what one level of a quantization may move
_LOST = 0.25  # of the largest output: more than bf16 rounds away
_SIMULATIONS = 3  # of which one may end the process
_REPEATS = 40  # of a compilation, which some kernels make another result of once in ten times


@dataclass(frozen=True)
class Failure:
    """How a graph fails: where, the cause in words that equal graphs share, and the details.

    ``hides``: the way that a fault of OpenVINO's keeps from being compared, or `EVERY`.
    """

    way: str
    cause: str
    details: str = ""
    hides: str = ""

    def as_stock(self) -> Failure:
        """The same as a fault of OpenVINO's own, which hides what it is found in."""
        return self if self.way == STOCK else replace(self, way=STOCK, hides=self.way)

    def __str__(self) -> str:
        return f"{self.way}: {self.cause} {self.details}".rstrip()


def run(model: Model, inputs: list[np.ndarray], lpt: str, times: int = 1, **more: object) -> list[np.ndarray]:
    """Executed by the CPU plugin in f32 from a copy, its own LPT on ("YES") or off; the last of so many inferences,
    and at least of two where nothing is kept: the plugin may overwrite what it computes once. ``more``: properties.
    """
    properties = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": lpt, **more}
    ranked = with_ranks(model, inputs)  # its outputs lie in memory of its own
    compiled = core().compile_model(ranked, "CPU", properties)
    for _ in range(times - 1 if ranked.get_sinks() else 1):
        compiled(inputs)
    return [np.array(value) for value in compiled(inputs).values()]


def with_ranks(model: Model, inputs: list[np.ndarray]) -> Model:
    """A copy; ranks that are open, which the plugin does not compile, are those of the inputs."""
    model = model.clone()
    shapes = (port.get_partial_shape() for port in model.inputs)
    if any(shape.rank.is_dynamic for shape in shapes):
        model.reshape({port: [-1] * values.ndim for port, values in zip(model.inputs, inputs, strict=True)})
    return model


def transformed(model: Model) -> Model:
    return ovlpt.transform(model, core=core())


def compiled_as_it_stands(model: Model) -> Model:
    """What `ovlpt.compile_model` compiles."""
    return ovlpt.transform(model, core=core(), serializable=False)


def compiled_in_f16(model: Model) -> Model:
    """What `ovlpt.compile_model` compiles where floats are asked for in f16."""
    return ovlpt.transform(model, core=core(), serializable=False, precision="f16")


def as_natively(model: Model) -> Model:
    return ovlpt.transform(model, core=core(), native_only=True)


def dropped_in(model: Model, trace: Trace | None = None) -> Model:
    """Both passes in a Manager, on the model as it is."""
    result = model.clone()
    manager = Manager()
    manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core(), "CPU")))
    manager.register_pass(PluginLowering("CPU", trace=trace))
    manager.run_passes(result)
    return result


def as_told(model: Model) -> str:
    """Whether the plugin's own LPT has to be on, as `ovlpt.compile_model` decides it."""
    return lpt_properties(model, "CPU")["LP_TRANSFORMS_MODE"]


WAYS: dict[str, tuple[Callable[[Model], Model], Callable[[Model], str]]] = {
    "transform": (transformed, as_told),
    "compile": (compiled_as_it_stands, as_told),
    "drop-in": (dropped_in, as_told),
    DROP_IN_ON: (dropped_in, lambda model: "YES"),
    NATIVE_ONLY: (as_natively, as_told),
}
_UNCHANGED = {STOCK: (Model.clone, lambda model: "YES"), NO_LPT: (Model.clone, lambda model: "NO")}
_NATIVE = {NATIVE_LIBRARY: (lowered_native_result, as_told)}
# How a user may run it: the plugin fuses differently for one thread.
_HINTS = ({}, {"INFERENCE_NUM_THREADS": 1}, {"PERFORMANCE_HINT": "THROUGHPUT"})


def failures(graph: Graph, only: str | None = None) -> Iterator[Failure]:
    """What is wrong with ``graph`` in any way (or in ``only`` this one) of using the package."""
    if not graph.is_quantized:
        return
    try:
        model, inputs, exact = build(graph), graph.inputs(), reference(graph)
        simulated = simulate(exact, inputs)[: len(graph.results)]
    except RuntimeError as error:  # nothing to compare with
        if only in (None, STOCK):
            yield Failure(STOCK, cause_of(error), str(error)[-300:], EVERY)
        return
    hint = _HINTS[graph.seed % len(_HINTS)]
    without_lpt = functools.cache(lambda: _without_lpt(model, inputs, **hint))
    try:
        stock = run(model, inputs, "YES", **hint)
    except RuntimeError as error:
        stock = without_lpt()
        if only in (None, STOCK):
            yield Failure(STOCK, cause_of(error), str(error)[-300:])
    if only == STOCK:
        return
    near = functools.cache(lambda: [*nearby(exact, inputs, len(simulated), kernel_grids(model)), *before_f16(graph)])
    made = functools.cache(lambda change: change(model))
    for way, (change, lpt) in WAYS.items():
        if only not in (None, way):
            continue
        try:
            changed = made(change)
            if way == DROP_IN_ON and only is None and as_told(changed) == "YES":
                continue  # as the drop-in
            if difference := interface_difference(model, changed):
                failure = Failure(way, "interface", difference)
                yield failure.as_stock() if _has_their_interface(model, changed, way) else failure
                continue
            found = run(changed, inputs, lpt(changed), **hint)
        except Exception as error:  # whatever it is, it is a finding
            failure = Failure(way, cause_of(error), str(error)[-300:])
            yield failure.as_stock() if _throws_too(graph, model, way, hint) else failure
            continue
        if of_numbers(way, found, simulated, None, near) is None:
            continue
        failure = of_numbers(way, found, simulated, stock if way == NATIVE_ONLY else without_lpt(), near)
        theirs = is_unsteady_without_lpt(model, inputs, found, simulated, **hint)
        if not theirs and way == NATIVE_ONLY:
            again = run(changed, inputs, lpt(changed), **hint)
            theirs = is_unsteady_with_stock(model, inputs, found, again, simulated, stock, near, hint) or (
                failure.way == way and is_as_natively(graph, model, found, simulated, near, stock is None, hint)
            )
        yield failure.as_stock() if theirs else failure
    for way, others in ((ONE_PIXEL, at_one_pixel), (AGAIN, at_second_inference), (IN_F16, in_f16), (IN_BF16, in_bf16)):
        yield from others(graph, model, hint) if only in (None, way) else ()


def _throws_too(graph: Graph, model: Model, way: str, hint: dict[str, object]) -> bool:
    """Whether the plugin throws without any LPT or on the float graph; as natively, with its own LPT or in the native pass."""
    inputs = graph.inputs()
    return (
        _fails(lambda: run(model, inputs, "NO", **hint))
        or _fails(lambda: run(in_float(graph), inputs, "NO", **hint))
        or (way == NATIVE_ONLY and (_fails(lambda: run(model, inputs, "YES", **hint)) or fails_natively(model)))
    )


def at_second_inference(graph: Graph, model: Model, hint: dict[str, object]) -> Iterator[Failure]:
    """What is wrong once variables hold what the first inference has left in them; nothing where the plugin does not run so
    without any LPT.
    """
    states = [index for index, step in enumerate(graph.steps) if step.kind in STATES]
    if not states:
        return
    inputs, count = graph.inputs(), len(graph.results)
    first = dict(zip(observed(graph), simulate(reference(graph), inputs), strict=True))
    try:
        exact = reference(graph, {index: kept_of(graph.steps[index].kind, first[index, 0]) for index in states})
        simulated = simulate(exact, inputs)[:count]
        without_lpt = run(model, inputs, "NO", 2, **hint)
    except RuntimeError:  # an operation does not fit to more rows
        return
    near = functools.cache(lambda: nearby(exact, inputs, count, kernel_grids(model)))
    for change in (transformed, compiled_as_it_stands):
        try:
            changed = change(model)
            found = run(changed, inputs, as_told(changed), 2, **hint)
        except RuntimeError as error:
            yield Failure(AGAIN, cause_of(error), str(error)[-300:])
            continue
        if failure := of_numbers(AGAIN, found, simulated, without_lpt, near):
            yield failure


def at_one_pixel(graph: Graph, model: Model, hint: dict[str, object]) -> Iterator[Failure]:
    """What is wrong where all dynamic sizes after the channels are 1; nothing where the plugin does not run so without any
    LPT.
    """
    found = simulated_at_one_pixel(graph, model)
    if found is None:
        return
    inputs, fixed, simulated = found
    count = len(simulated)
    try:
        without_lpt = run(model, inputs, "NO", **hint)
    except RuntimeError:
        return
    try:
        compiled = compiled_as_it_stands(model)
        found = run(compiled, inputs, as_told(compiled), **hint)
    except RuntimeError as error:
        yield Failure(ONE_PIXEL, cause_of(error), str(error)[-300:])
        return
    near = functools.cache(lambda: nearby(fixed, inputs, count, kernel_grids(model)))
    if failure := of_numbers(ONE_PIXEL, found, simulated, without_lpt, near):
        yield failure


def simulated_at_one_pixel(graph: Graph, model: Model) -> tuple[list[np.ndarray], Model, list[np.ndarray]] | None:
    """Inputs of which all dynamic sizes after the channels are 1, the model for them, and what it computes; None where they
    do not fit.
    """
    if (fitting := fixed_to_one_pixel(graph, model)) is None:
        return None
    inputs, fixed = fitting
    try:
        values = simulate(fixed, inputs)
    except RuntimeError:  # a window or a slice does not fit
        return None
    if not _keeps_half_ranges(fixed, dict(zip(observed(graph), values, strict=True))):
        return None
    return inputs, fixed, values[: len(graph.results)]


def fixed_to_one_pixel(graph: Graph, model: Model) -> tuple[list[np.ndarray], Model] | None:
    """Inputs of which all dynamic sizes after the channels are 1, and the model for them; None where they do not fit."""
    if (inputs := of_one_pixel(graph, model)) is None:
        return None
    fixed = reference(graph)  # afresh: `nearby` changes the one it is given
    try:
        fixed.reshape({port: list(values.shape) for port, values in zip(fixed.inputs, inputs, strict=True)})
    except RuntimeError:  # a window or a slice does not fit
        return None
    return (inputs, fixed) if all(map(reads_within, fixed.get_ops())) else None


def _keeps_half_ranges(model: Model, values: dict[tuple[int, int], np.ndarray]) -> bool:
    """Whether what is a second factor keeps to the half of its interval that it is fitted to at other sizes: beyond it,
    sums of two products are cut off on CPUs without VNNI.
    """
    halves = {
        node.get_friendly_name(): float(constant_above(node.input_value(2)).max()) / 127 * 64
        for node in model.get_ops()
        if node.get_type_name() == "FakeQuantize" and node.get_friendly_name().startswith("FakeQuantizeHalf")
    }
    return not any(
        np.abs(found).max(initial=0) > halves.get(f"FakeQuantizeHalf{step}", np.inf)
        for (step, _), found in values.items()
    )


def in_f16(graph: Graph, model: Model, hint: dict[str, object]) -> Iterator[Failure]:
    """What is wrong where floats are asked for in f16; nothing on a CPU that does not compute in it.

    Stock is no measure of a number: what its floats lose in f16 would hide what is wrong. Memory that it reads without LPT,
    in either type, is its own where the transformed model is right at times.
    """
    if not computes_in("FP16"):
        return
    f32, hint = ({**hint, "INFERENCE_PRECISION_HINT": each} for each in ("f32", "f16"))
    inputs, exact = graph.inputs(), reference(graph)
    simulated = simulate(exact, inputs)[: len(graph.results)]
    near = functools.cache(lambda: nearby(exact, inputs, len(simulated), kernel_grids(model)))
    ways = (compiled_in_f16, transformed, dropped_in, as_natively) if MARKS_TYPES else (compiled_in_f16,)
    change = ways[graph.seed % len(ways)]
    try:
        if change is not compiled_in_f16 and _keeps_f32(model, change):
            change = compiled_in_f16
        changed = change(model)
        in_f32 = run(changed, inputs, as_told(changed), **f32)
    except Exception:  # a finding of the other ways
        return
    try:
        found = run(changed, inputs, as_told(changed), **hint)
    except RuntimeError as error:
        failure = Failure(IN_F16, cause_of(error), str(error)[-300:])
        yield failure.as_stock() if _fails(lambda: run(model, inputs, "YES", **hint)) else failure
        return
    failure = of_numbers(IN_F16, found, simulated, in_f32, near)
    if failure is None or failure.way != IN_F16:  # it is no better in f32
        return
    with contextlib.suppress(RuntimeError):  # a kernel of f16 may be wrong, of a model that stores f16
        others = zip(in_f32, run(model, inputs, "NO", **hint), simulated, strict=True)
        farther = [max(one, other, key=functools.partial(_off, expected=right)) for one, other, right in others]
        failure = of_numbers(IN_F16, found, simulated, farther, near) or failure
    again = (run(changed, inputs, as_told(changed), **hint) for _ in range(_REPEATS))
    unsteady = any(of_numbers(IN_F16, values, simulated, in_f32, near) is None for values in again) and any(
        is_unsteady_without_lpt(model, inputs, found, simulated, **each) for each in (f32, hint)
    )
    yield failure.as_stock() if unsteady else failure


def _keeps_f32(model: Model, change: Callable[[Model], Model]) -> bool:
    """Whether nodes of the transformed model are kept from bf16: that is not for f16, of which it has to be told (docs/compile.md)."""
    trace = Trace()
    if change is dropped_in:
        dropped_in(model, trace)
    else:
        ovlpt.transform(model, core=core(), native_only=change is as_natively, trace=trace)
    return any(event.transformation in _KEPT_IN_F32 for event in trace)


def in_bf16(graph: Graph, model: Model, hint: dict[str, object]) -> Iterator[Failure]:
    """What is wrong where floats are bf16 and not in f32; nothing on a CPU that does not compute in bf16.

    What stock, the plugin without LPT and the simulation lose in bf16 is near, too: their floats are rounded at other
    places. So is what stock loses with the sizes of the inputs for open ones: the plugin keeps in f32 whatever a shape
    is read from. Where none of them runs there is no measure. Where they lose more than `_LOST`, a kernel of the plugin is wrong
    rather than rounding, and what is as wrong with ovlpt a fault of the plugin's.
    """
    if not computes_in("BF16"):
        return
    f32, hint = ({**hint, "INFERENCE_PRECISION_HINT": each} for each in ("f32", "bf16"))
    inputs, exact = graph.inputs(), reference(graph)
    simulated = simulate(exact, inputs)[: len(graph.results)]

    @functools.cache
    def in_others() -> list[list[np.ndarray]]:
        found = []
        sized = [(at_sizes(model, dict(enumerate(each.shape for each in inputs))), "YES")] if model.is_dynamic() else []
        for each, lpt in ((model, "YES"), (reference(graph), "NO"), *sized):
            with contextlib.suppress(RuntimeError):
                found.append(run(each, inputs, lpt, **hint)[: len(simulated)])
        alone = _without_lpt(model, inputs, **hint)
        return found if alone is None else [*found, alone]

    near_in_f32 = functools.cache(lambda: nearby(exact, inputs, len(simulated), kernel_grids(model)))

    def near(lost: bool = True) -> list[list[np.ndarray]]:
        return [*near_in_f32(), *(each for each in in_others() if lost or _is_rounded(each, simulated))]

    ways = (compiled_as_it_stands, transformed)
    try:
        changed = ways[graph.seed % len(ways)](model)
        in_f32 = of_numbers(IN_BF16, run(changed, inputs, as_told(changed), **f32), simulated, None, near)
    except Exception:  # a finding of the other ways
        return
    try:
        found = run(changed, inputs, as_told(changed), **hint)
    except RuntimeError as error:
        failure = Failure(IN_BF16, cause_of(error), str(error)[-300:])
        yield failure.as_stock() if _fails(lambda: run(model, inputs, "YES", **hint)) else failure
        return
    if in_f32 is not None or not in_others():
        return
    if (failure := _in_16_bits(found, simulated, near)) is None:
        lost = _in_16_bits(found, simulated, functools.partial(near, False))
        yield from () if lost is None else (lost.as_stock(),)
        return

    def is_wrong(each: Model, lpt: str) -> bool:
        with contextlib.suppress(RuntimeError):
            return _in_16_bits(run(each, inputs, lpt, **hint), simulated, near) is not None
        return False  # it throws

    unsteady = not all(is_wrong(changed, as_told(changed)) for _ in range(_REPEATS))
    # in streams, now and then: stock of one compilation in 60, without LPT of one in ten
    theirs = unsteady and any(is_wrong(model, lpt) for lpt in ("YES", "NO") for _ in range(_REPEATS))
    yield failure.as_stock() if theirs else failure


def _in_16_bits(found: list[np.ndarray], simulated: list[np.ndarray], near: Callable) -> Failure | None:
    """As `of_numbers` for bf16, but for outputs that are zero throughout, as of x - x: what rounding leaves has no measure."""
    found = [values if expected.any() else expected for values, expected in zip(found, simulated, strict=True)]
    return of_numbers(IN_BF16, found, simulated, None, near)


def _is_rounded(found: list[np.ndarray], simulated: list[np.ndarray]) -> bool:
    return all(_off(a, b) <= _LOST for a, b in zip(found, simulated, strict=True))


@functools.cache
def computes_in(precision: str) -> bool:
    """Whether the CPU computes floats in a type, "BF16" or "FP16"."""
    return precision in Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def of_one_pixel(graph: Graph, model: Model) -> list[np.ndarray] | None:
    """The inputs with all dynamic sizes after the channels 1; None where none is open."""
    if graph.form.dynamic not in ("space", "both", "all") or not model.is_dynamic():
        return None
    return [
        values[(slice(None), slice(None), *[slice(1)] * (values.ndim - 2))[: values.ndim]].copy()
        for values in graph.inputs()
    ]


def measure(graph: Graph) -> None:
    """Compute what all ways are compared with, often, and nothing else: which may end the process."""
    model, inputs, count = build(graph), graph.inputs(), len(graph.results)
    for _ in range(_SIMULATIONS):
        exact = reference(graph)  # afresh: `nearby` changes the one it is given
        simulate(exact, inputs)
        nearby(exact, inputs, count, kernel_grids(model))


def execute(graph: Graph, way: str) -> None:
    """Run a graph in one way, often, and nothing else: which may end the process. Errors count for nothing here."""
    hint = _HINTS[graph.seed % len(_HINTS)]
    if way == STOCK:
        graph = of_what_stock_takes(graph, hint)
    model = build(graph)
    pixel = fixed_to_one_pixel(graph, model)  # at other sizes kernels read beside their data
    change, lpt = {**WAYS, **_UNCHANGED, **_NATIVE, ONE_PIXEL: WAYS["compile"]}[way]
    sizes = [] if way == ONE_PIXEL else [graph.inputs()]
    if way in (*_UNCHANGED, ONE_PIXEL) and pixel is not None:
        sizes.append(pixel[0])
    for inputs in sizes:
        for _ in range(_REPEATS):
            with contextlib.suppress(RuntimeError, NativePassFails, NoCompiler):
                if (changed := change(model)) is not None:
                    run(changed, inputs, lpt(changed), **hint)


def of_what_stock_takes(graph: Graph, hint: dict[str, object]) -> Graph:
    """The graph; where stock throws on it, with the results alone that it takes each."""

    def throws(results: tuple[Value, ...]) -> bool:
        part = pruned(replace(graph, results=results))
        return _fails(lambda: run(build(part), part.inputs(), "YES", **hint))

    if not throws(graph.results):
        return graph
    taken = tuple(result for result in graph.results if not throws((result,)))
    return pruned(replace(graph, results=taken)) if taken else graph


def reads_within(node: Node) -> bool:
    """Whether a node of fixed sizes reads its data only; kernels do not look, and may end the process. Sizes that are known only
    when it runs the plugin looks at.
    """
    if any(value.get_partial_shape().is_dynamic for value in node.input_values()):
        return True
    if any(0 in value.get_shape() for value in node.input_values()):
        return False
    shape = node.get_input_shape(0) if node.get_input_size() else ()
    if node.get_type_name() == "Gather":
        indices, axis = (constant_above(node.input_value(port)) for port in (1, 2))
        size = shape[int(axis)] if axis is not None else 0
        return indices is None or axis is None or bool((indices < size).all() and (indices >= -size).all())
    if node.get_type_name() == "Einsum":  # of sizes that differ, a 1 is broadcast; a MatMul sums over equal ones
        return shape[-1] == node.get_input_shape(1)[-1]
    if node.get_type_name() == "PRelu":
        return int(np.prod(node.get_input_shape(1))) in (1, shape[min(1, len(shape) - 1)])
    if node.get_type_name() in RECURRENT:  # the weights of the data are the first
        return shape[-1] == node.get_input_shape(min(RECURRENT[node.get_type_name()]))[-1]
    if node.get_type_name() == "TopK":
        count = constant_above(node.input_value(1))
        return count is None or int(count) <= shape[node.get_attributes()["axis"]]
    if node.get_type_name() == "FakeQuantize":
        ends = (node.get_input_shape(port) for port in range(1, 5))
        return all(np.broadcast_shapes(shape, end) == tuple(shape) for end in ends)
    if node.get_type_name() == "Reshape":
        return bool(np.prod(shape) == np.prod(node.get_output_shape(0)))
    if node.get_type_name() == "StridedSlice":
        begin, taken = constant_above(node.input_value(1)), np.array(node.get_attributes()["shrink_axis_mask"])
        return begin is None or not (taken[: begin.size] * begin[: taken.size] >= np.array(shape)[: taken.size]).any()
    mode = node.get_attributes()["pad_mode"] if node.get_type_name() == "Pad" else ""
    if mode in ("reflect", "symmetric"):
        pads = [constant_above(node.input_value(port)) for port in (1, 2)]
        return all(bool((each <= np.array(shape) - (mode == "reflect")).all()) for each in pads if each is not None)
    return True


def steady(
    model: Model, inputs: list[np.ndarray], first: list[np.ndarray], lpt: str, ports: Iterable[int], **hint: object
) -> set[int]:
    """Those of the outputs that the stock plugin makes the same each time it compiles the same model again."""
    found = set(ports)
    with contextlib.suppress(RuntimeError):  # it may throw, and is then run without its own LPT
        for _ in range(_REPEATS):
            outputs = run(model, inputs, lpt, **hint)
            found -= {port for port in found if is_wrong(outputs[port], first[port])}
            if not found:
                break
    return found


def is_unsteady_with_stock(
    model: Model,
    inputs: list[np.ndarray],
    found: list[np.ndarray],
    again: list[np.ndarray],
    simulated: list[np.ndarray],
    stock: list[np.ndarray] | None,
    near: Callable[[], list[list[np.ndarray]]],
    hint: dict[str, object],
) -> bool:
    """Whether stock is unsteady, where the numbers that are ``found`` wrong are right ``again``, or wrong at times."""
    if stock is None:
        return False
    if of_numbers(NATIVE_ONLY, again, simulated, stock, near) is None:
        return not steady(model, inputs, stock, "YES", _wrong_ports(found, simulated), **hint)
    return is_as_wrong_at_times(model, inputs, found, simulated, **hint)


def is_as_wrong_at_times(
    model: Model, inputs: list[np.ndarray], found: list[np.ndarray], simulated: list[np.ndarray], **hint: object
) -> bool:
    """Whether the stock plugin, compiled again, is at times wrong in each output that is ``found`` wrong: with an If of
    dynamic sizes it reads what lies in memory.
    """
    wrong = _wrong_ports(found, simulated)
    with contextlib.suppress(RuntimeError):  # it may throw, too, and is then run without its own LPT
        runs = (run(model, inputs, "YES", **hint) for _ in range(_REPEATS))
        return any(all(is_wrong(outputs[port], simulated[port]) for port in wrong) for outputs in runs)
    return False


def is_unsteady_without_lpt(
    model: Model, inputs: list[np.ndarray], found: list[np.ndarray], simulated: list[np.ndarray], **hint: object
) -> bool:
    """Whether the plugin makes something else of the FakeQuantizes themselves each time, in the outputs that are ``found``
    wrong, but for those that it has as wrong: it reads other memory.
    """
    alone, wrong = model.clone(), _wrong_ports(found, simulated)
    for port in reversed(range(len(simulated))):
        if port not in wrong:
            alone.remove_result(alone.get_results()[port])
    with contextlib.suppress(RuntimeError):
        first = run(alone, inputs, "NO", **hint)
        same = steady(alone, inputs, first, "NO", range(len(wrong)), **hint)
        triples = ((first[place], found[wrong[place]], simulated[wrong[place]]) for place in same)
        return len(same) < len(wrong) and all(_off(a, right) >= 0.5 * min(_off(b, right), 1) for a, b, right in triples)
    return False


def _wrong_ports(found: list[np.ndarray], simulated: list[np.ndarray]) -> list[int]:
    return [port for port, values in enumerate(zip(found, simulated, strict=True)) if is_wrong(*values)]


def of_numbers(
    way: str,
    found: list[np.ndarray],
    simulated: list[np.ndarray],
    theirs: list[np.ndarray] | None,
    near: Callable[[], list[list[np.ndarray]]],
) -> Failure | None:
    """The first output that is farther from the simulation than what is ``near`` makes it: outputs of inputs next to these.

    It is the plugin's where ``theirs``, of the plugin without ovlpt, has the same numbers, or others that are as wrong, in
    each such output.
    """
    stock = None
    for port, (a, b) in enumerate(zip(found, simulated, strict=True)):
        if not is_wrong(a, b):
            continue
        near_off = 2 * max(_off(outputs[port], b) for outputs in near())
        if _off(a, b) > near_off:
            # native rules are on where stock is wrong at all
            as_wrong = 0.0 if way == NATIVE_ONLY else 0.5 * min(_off(a, b), 1)
            like_theirs = theirs is not None and (
                not is_wrong(a, theirs[port]) or _off(theirs[port], b) > max(near_off, as_wrong)
            )
            failure = Failure(way, "numbers", f"y{port}: off by {_off(a, b):.1%} of the largest")
            if not like_theirs:
                return failure
            stock = stock or failure.as_stock()
    return stock


def is_as_native_layers(
    model: Model,
    inputs: list[np.ndarray],
    found: list[np.ndarray],
    simulated: list[np.ndarray],
    near: Callable[[], list[list[np.ndarray]]],
    **hint: object,
) -> bool:
    """Whether the plugin makes the same of recurrent layers in the native library's own result, in real numbers or as ovlpt's
    own is lowered, in each output that is wrong: their kernels have one grid for what it leaves on several. As everywhere, to
    twice of what is ``near``: a step of that grid is more than a level of what the output holds.
    """
    if not any(node.get_type_name() in RECURRENT for node in model.get_ops()):
        return False

    def is_same(values: list[np.ndarray]) -> bool:
        return all(
            _off(value, other) < max(_LEVEL, 2 * max(_off(outputs[port], right) for outputs in near()))
            for port, (value, other, right) in enumerate(zip(found, values, simulated, strict=True))
            if is_wrong(value, right)
        )

    for made in (native_result, lowered_native_result):
        with contextlib.suppress(NativePassFails, NoCompiler, RuntimeError):
            if (result := made(model)) is not None:
                values = _run_fused_or_not(result, inputs, "YES", **hint)
                if values is not None and is_same(values):
                    return True
    return False


def fails_natively(model: Model) -> bool:
    """Whether the native library fails where ovlpt calls its own pass, or lets an operation compute with f8, as no kernel does."""
    try:
        return computes_in_float8_natively(model)
    except NativePassFails:
        return True
    except (NoCompiler, RuntimeError):
        return False


def is_wrong_natively(
    graph: Graph, model: Model, found: list[np.ndarray], simulated: list[np.ndarray], near: Callable
) -> bool:
    """Whether the native library's own result is wrong where ovlpt calls its own pass; where it throws, or its result cannot
    be computed, its result without the transformation that throws, in a form that it takes, or of what leads to the first
    output that is wrong.

    The plugin's common optimizations may lead its pass elsewhere.
    """

    def wrong(values: list[np.ndarray] | None, port: int, at: int) -> bool:
        return values is not None and _of_output(port, values[at], simulated, None, near) is not None

    first = next(port for port in range(len(simulated)) if wrong(found, port, port))
    try:
        whole = _native_numbers(model, graph)
        return any(wrong(whole, port, port) for port in range(len(simulated)))
    except NoCompiler:
        return False
    except (NativePassFails, RuntimeError) as error:
        # its result may not be a model, as where it subtracts from booleans
        throws = error.transformation if isinstance(error, NativePassFails) else ""
    with contextlib.suppress(NativePassFails, RuntimeError):
        if throws and wrong(_native_numbers(model, graph, throws), first, first):
            return True
    with contextlib.suppress(NativePassFails, RuntimeError):
        taken = spelled_out(model)
        if taken is not None and wrong(_native_numbers(taken, graph), first, first):
            return True
    alone = pruned(replace(graph, results=(graph.results[first],)))
    with contextlib.suppress(NativePassFails, RuntimeError):
        return wrong(_native_numbers(build(alone), alone), first, 0)
    return False


def is_as_natively(
    graph: Graph,
    model: Model,
    found: list[np.ndarray],
    simulated: list[np.ndarray],
    near: Callable,
    alone: bool,
    hint: dict[str, object],
) -> bool:
    """Whether the native library's own result explains what is wrong. ``alone``: no stock plugin can run the model."""
    return (
        is_without_16_bits(graph, found, simulated)
        or is_wrong_natively(graph, model, found, simulated, near)
        or is_as_native_layers(model, graph.inputs(), found, simulated, near, **hint)
        or (alone and is_as_far_natively(graph, model, found, simulated, near))
        or is_as_stock_apart(graph, model, found, simulated, near, **hint)
    )


def is_as_stock_apart(
    graph: Graph, model: Model, found: list[np.ndarray], simulated: list[np.ndarray], near: Callable, **hint: object
) -> bool:
    """Whether stock, which throws on the whole graph, is as wrong on what leads to each output that is wrong."""
    if not _fails(lambda: run(model, graph.inputs(), "YES", **hint)):
        return False
    for port, result in enumerate(graph.results):
        if _of_output(port, found[port], simulated, None, near) is None:
            continue
        apart = pruned(replace(graph, results=(result,)))
        try:
            stock = run(build(apart), apart.inputs(), "YES", **hint)
        except RuntimeError:
            return False
        failure = _of_output(port, found[port], simulated, stock, near)
        if failure is None or failure.way != STOCK:
            return False
    return True


def _of_output(
    port: int, found: np.ndarray, simulated: list[np.ndarray], stock: list[np.ndarray] | None, near: Callable
) -> Failure | None:
    """`of_numbers` of one output; ``stock``: of that alone."""
    return of_numbers(NATIVE_ONLY, [found], [simulated[port]], stock, lambda: [[each[port]] for each in near()])


def is_as_far_natively(
    graph: Graph, model: Model, found: list[np.ndarray], simulated: list[np.ndarray], near: Callable
) -> bool:
    """Whether the native library's own result is about as far from the simulation, where no stock plugin can say so."""
    try:
        values = _native_numbers(model, graph)
    except (NativePassFails, NoCompiler, RuntimeError):
        return False
    return values is not None and of_numbers(NATIVE_ONLY, found, simulated, None, lambda: [*near(), values]) is None


def _native_numbers(model: Model, graph: Graph, without: str = "") -> list[np.ndarray] | None:
    result = native_result(model, without)
    return None if result is None else simulate(unfused(result), graph.inputs())


def _without_lpt(model: Model, inputs: list[np.ndarray], **hint: object) -> list[np.ndarray] | None:
    """What the plugin makes of the FakeQuantizes themselves, in the same form of the model: fused into layers or, where
    that throws, not; None where this throws, too.
    """
    return _run_fused_or_not(model, inputs, "NO", **hint)


def _run_fused_or_not(model: Model, inputs: list[np.ndarray], lpt: str, **hint: object) -> list[np.ndarray] | None:
    for form in (model, unfused(model)):
        with contextlib.suppress(RuntimeError):
            return run(form, inputs, lpt, **hint)
    return None


def is_without_16_bits(graph: Graph, found: list[np.ndarray], simulated: list[np.ndarray]) -> bool:
    """Whether each output that is ``found`` wrong is that of the graph without the quantizations to 16 bits, which the
    plugin drops before its LPT, and with them what they clip, as `native_only` does. Without a truth for that graph nothing is excused.
    """
    stripped, manager = build(replace(graph, form=replace(graph.form, dynamic=""))), Manager()
    manager.register_pass(QDQStripping(plugin_config.dropped_levels("CPU"), params=Params(native_only=True)))
    manager.run_passes(stripped)
    try:
        without = simulate(stripped, graph.inputs())
    except NoTruth:
        return False
    values = zip(found, without, simulated, strict=True)
    return not any(is_wrong(one, clipped) for one, clipped, right in values if is_wrong(one, right))


def unfused(model: Model) -> Model:
    """A copy whose layers with weights have no post-operations."""
    model = model.clone()
    for node in model.get_ordered_ops():
        if node.get_type_name() in WEIGHTED:
            block_fusion(node)
    return model


def _fails(execute: Callable[[], object]) -> bool:
    try:
        execute()
    except RuntimeError:
        return True
    return False


def nearby(model: Model, inputs: list[np.ndarray], count: int, grids: Grids) -> list[list[np.ndarray]]:
    """Outputs for inputs next to these, what a tie can do, and with half a quantum more or less throughout.

    Recurrent layers in int8 round their state at each step to the grid of their data, and their weights to ``grids``.
    """
    random = np.random.default_rng(0)
    moved = [values * (1 + 3e-3 * random.standard_normal(values.shape)).astype(np.float32) for values in inputs]
    near = [simulate(model, moved)[:count]]
    if (parted := with_parted_ties(model)) is not None:
        near.append(simulate(parted, inputs)[:count])

    def signs(size: int) -> np.ndarray:
        return random.choice([-1, 1], size)

    stored = with_kernel_weights(model, grids)
    most = len(near) + 8
    while len(near) < most and (rounded := with_rounded_states(stored, signs)) is not None:
        near.append(simulate(rounded, inputs)[:count])
    quantizes = activations(model)
    still = [np.ones(node.get_output_shape(0), inputs[0].dtype) for node in quantizes]
    shifted = with_shifts(model, quantizes, [quantum(node) for node in quantizes])
    for half in (0.5, -0.5):
        near.append(simulate(with_shifted_bodies(shifted, half), [*inputs, *(half * ones for ones in still)])[:count])
    return near


def before_f16(graph: Graph) -> list[list[np.ndarray]]:
    """The outputs of a graph in f16 before its constants are rounded to f16: the zero of a grid need not be on it then."""
    if not graph.form.is_half:
        return []
    wide = replace(graph, form=replace(graph.form, precision="f32"))
    return [simulate(reference(wide), wide.inputs())[: len(graph.results)]]


def _off(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference as a part of the largest value."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return np.inf
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-3)) if found.size else 0.0


def is_wrong(found: np.ndarray, expected: np.ndarray) -> bool:
    """More than a level, or less but in most elements."""
    off = _off(found, expected)
    if off <= 1e-4:
        return False
    if off > _LEVEL:
        return True
    scale = max(float(np.abs(expected).max()), 1e-3)
    return bool((np.abs(found - expected) > 0.01 * scale).mean() > 0.25 and found.size > 8)


def interface_difference(before: Model | CompiledModel, after: Model) -> str | None:
    """What changed of the inputs and outputs; a dynamic size may become known."""
    for name in ("inputs", "outputs"):
        for one, other in zip(getattr(before, name), getattr(after, name), strict=True):
            if _port(one) != _port(other) or not other.get_partial_shape().refines(one.get_partial_shape()):
                shapes = f"{other.get_partial_shape()}, not {_port(one)} {one.get_partial_shape()}"
                return f"one of the {name} is {_port(other)} {shapes}"
    return None


def _has_stock_interface(model: Model, changed: Model) -> bool:
    """Whether the stock plugin has the same inputs and outputs: its own transformations dynamic sizes, too. Of open ranks,
    which it does not compile, whether OpenVINO has them after what it does to any model.
    """
    try:
        stock = core().compile_model(model.clone(), "CPU")
    except RuntimeError:
        stock = model.clone()
        apply_moc_transformations(stock, cf=False)
    return interface_difference(stock, changed) is None


def _has_their_interface(model: Model, changed: Model, way: str) -> bool:
    """Whether the stock plugin or, of its way, the native library's own result has the same inputs and outputs."""
    return _has_stock_interface(model, changed) or (way == NATIVE_ONLY and _has_native_interface(model, changed))


def _has_native_interface(model: Model, changed: Model) -> bool:
    try:
        result = native_result(model)
    except (NativePassFails, NoCompiler):
        return False
    return result is not None and interface_difference(result, changed) is None


def _port(port) -> str:
    return f"{sorted(port.get_names())} {port.get_element_type().get_type_name()}"


def cause_of(error: Exception) -> str:
    """The sentence of an error that tells its cause, without numbers and names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Exception from", "Traceback", "File"))] or lines or [""]
    passes = re.findall(r"\[(\w+)\] END", str(error))
    return " ".join([type(error).__name__, *passes, re.sub(r"[0-9]+", "#", telling[-1])[:120]])
