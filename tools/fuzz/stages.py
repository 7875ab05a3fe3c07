"""The numbers of one quantization at a time, against what rounding may do to them.

In a *staged* graph no FakeQuantize lies above another, so that no rounding is amplified by the next one. LPT may move
what a FakeQuantize gives by half a quantum (it rounds zero points, and shared scales) and, where the input lies at a
tie, by a level. What such moves do to each element of the outputs is measured on the simulation, one group of elements
after the other, so that their signs do not matter; the transformed model may not differ by more than the sum. Where it
does, but not from what the plugin makes of the model without any LPT, or not by more than twice of that, the fault
counts as the plugin's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ovlpt.inspect import float_model
from ovlpt.openvino_api import Model, Node
from ovlpt.trace import InputError
from tools.fuzz.graphs import Graph, Step, build, pruned, reference
from tools.fuzz.numbers import STOCK, Failure, cause_of, interface_difference, run, simulate, transformed
from tools.fuzz.shifts import (
    activations,
    ends,
    kernel_grids,
    quantizer,
    quantum,
    with_kernel_weights,
    with_rounded_states,
    with_shifts,
)
from tools.parity.driver import core

WAY = "single stage"
_TIE = 1e-3  # of a quantum
_GROUPS = 64  # at the most
_ARITHMETIC = {"f32": 2e-4, "f16 constants": 2e-4, "f16": 4e-3}  # of the largest output


def staged(graph: Graph) -> Graph:
    """The graph with a Parameter before each FakeQuantize that has another above it."""
    steps, parameters, above = [], [], set()
    for index, step in enumerate(graph.steps):
        quantized = any(source in above for source, _ in step.sources)
        if step.quantizes and quantized:
            parameters.append(Step("Parameter", (), step.seed, step.shape))
            step = replace(step, sources=((-len(parameters), 0),))
        if step.quantizes or quantized:
            above.add(index)
        steps.append(step)
    count = len(parameters)

    def moved(value: tuple[int, int]) -> tuple[int, int]:
        return (value[0] + count, value[1]) if value[0] >= 0 else (-value[0] - 1, value[1])

    steps = [replace(step, sources=tuple(map(moved, step.sources))) for step in steps]
    return pruned(replace(graph, steps=(*parameters, *steps), results=tuple(map(moved, graph.results))))


def failures(graph: Graph) -> Iterator[Failure]:
    """What is wrong with the staged form of ``graph``."""
    graph = staged(graph)
    if not graph.is_quantized:
        return
    try:
        model, inputs = build(graph), graph.inputs()
        expected, allowed = _allowed(graph)
    except (InputError, RuntimeError) as error:
        yield Failure(STOCK, cause_of(error), str(error)[-300:])
        return
    try:
        changed = transformed(model)
        if difference := interface_difference(model, changed):
            yield Failure(WAY, "interface", difference)
            return
        found = run(changed, inputs, "NO")
    except Exception as error:  # whatever it is, it is a finding; of the plugin's where it cannot run the graph either
        yield Failure(WAY if _without_lpt(model, inputs) else STOCK, cause_of(error), str(error)[-300:])
        return
    if _off(found, expected, allowed) is None:
        return
    expected, allowed = _allowed(graph, closely=True)
    off = _off(found, expected, allowed)
    if off is None:
        return
    theirs = _without_lpt(model, inputs)
    like_theirs = theirs is not None and (
        _off(found, theirs, allowed) is None or _is_as_far(theirs, found, expected, allowed)
    )
    yield Failure(STOCK if like_theirs else WAY, "numbers", off)


def _is_as_far(plugin: list[np.ndarray], found: list[np.ndarray], expected: list[np.ndarray], allowed: list) -> bool:
    """Whether the plugin is off, too, by about as much in each output: some kernels read what other data left, so that no
    two runs are alike.
    """
    for one, other, right, limit in zip(found, plugin, expected, allowed, strict=True):
        mine, theirs = (np.abs(value.astype(np.float32) - right.astype(np.float32)) for value in (one, other))
        if (mine > limit).any() and not (theirs.max() > limit.max() and mine.max() <= 2 * theirs.max()):
            return False
    return True


def _without_lpt(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """What the plugin computes of the FakeQuantizes themselves; None where it fails."""
    try:
        return run(model, inputs, "NO")
    except RuntimeError:
        return None


def _off(found: list[np.ndarray], expected: list[np.ndarray], allowed: list[np.ndarray]) -> str | None:
    """Where an output is farther from the expected one than is allowed."""
    for port, (one, other, limit) in enumerate(zip(found, expected, allowed, strict=True)):
        if one.shape != other.shape:
            return f"y{port} is {one.shape}, not {other.shape}"
        distance = np.abs(one.astype(np.float32) - other.astype(np.float32))
        if not (distance <= limit).all():
            place = np.unravel_index(np.nanargmax(distance - limit), distance.shape)
            return f"y{port}: off by {distance[place]:.4g}, where {limit[place]:.4g} is allowed"
    return None


def _allowed(graph: Graph, closely: bool = False) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The simulated outputs, and how far each element may be off.

    Less is found than may be, unless ``closely``, which takes many runs.
    """
    model = reference(graph)
    quantizes = activations(model)
    quanta = [quantum(node) for node in quantizes]
    if any(step.kind == "Concat" for step in graph.steps):  # tensors that meet may take one scale, the coarsest
        quanta = [np.maximum(each, max(map(np.max, quanta))) for each in quanta]
    count, every = len(graph.results), len(model.get_results())
    shifted = with_shifts(model, quantizes, quanta)
    compiled = float_model.simulate(shifted, core())
    inputs = graph.inputs()
    still = [np.zeros(node.get_output_shape(0), inputs[0].dtype) for node in quantizes]

    def outputs(shifts: list[np.ndarray]) -> list[np.ndarray]:
        return [np.array(value, np.float32) for value in compiled([*inputs, *shifts]).values()]

    base = outputs(still)
    allowed = [
        np.full_like(value, _ARITHMETIC[graph.form.precision] * np.abs(value).max(initial=1e-3))
        for value in base[:count]
    ]
    random = np.random.default_rng(graph.seed)
    for limit, total in zip(allowed, _of_rounded_states(graph, base) if closely else (), strict=False):
        limit += total
    for index, node in enumerate(quantizes):

        def effects(moves: Iterable[np.ndarray], index: int = index) -> list[np.ndarray]:
            """The sum of what each move does to the outputs."""
            sums = [np.zeros_like(value) for value in base[:count]]
            for move in moves:
                moved = [*still[:index], move.astype(still[index].dtype), *still[index + 1 :]]
                for total, value, other in zip(sums, outputs(moved), base, strict=False):
                    total += np.abs(value - other)
            return sums

        half = np.full_like(still[index], 0.5)
        halves = [effects([half]), effects([-half])]
        if closely:
            halves += [effects(_parts(half, groups)) for groups in _partitions(half.shape)]
            for _ in range(8):  # after a Relu the parts may do nothing that the whole does, in any of its elements
                moved = effects([half * random.choice([-1, 1], half.shape)])
                halves.append([np.full_like(value, value.max(initial=0)) for value in moved])
        move = _to_the_other_side(node, base[every + index])
        ties = effects(_parts(move, np.cumsum(move != 0).reshape(move.shape) % _GROUPS))
        for port, limit in enumerate(allowed):
            limit += np.maximum.reduce([sums[port] for sums in halves]) + ties[port]
    return base[:count], allowed


def _of_rounded_states(graph: Graph, base: list[np.ndarray]) -> list[np.ndarray]:
    """What it does to the outputs that recurrent layers in int8 round their weights, and their state at each step, element
    by element.
    """
    stored = with_kernel_weights(reference(graph), kernel_grids(build(graph)))
    sums = [np.abs(value - other) for value, other in zip(simulate(stored, graph.inputs()), base, strict=False)]
    sizes, element = {1}, 0
    while element < max(sizes):

        def move(size: int, element: int = element) -> np.ndarray:
            sizes.add(size)
            return (np.arange(size) == element).astype(np.float32)

        rounded = with_rounded_states(reference(graph), move)
        values = simulate(rounded, graph.inputs()) if rounded is not None else []
        for total, value, other in zip(sums, values, base, strict=False):
            total += np.abs(value - other)
        element += 1
    return sums


def _partitions(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Numbers of groups: elements that one output of a convolution or MatMul reads are in different groups."""
    places = np.indices(shape)
    for axis in range(1, len(shape)):
        yield places[axis] % _GROUPS
    near = np.zeros(shape, int)
    for axis in range(2, len(shape)):
        near = 3 * near + places[axis] % 3
    yield near + 3 ** max(len(shape) - 2, 0) * places[min(1, len(shape) - 1)]


def _parts(move: np.ndarray, groups: np.ndarray) -> Iterator[np.ndarray]:
    """The move, one group after the other."""
    for group in np.unique(groups[move != 0]):
        yield np.where(groups == group, move, 0)


def _to_the_other_side(node: Node, values: np.ndarray) -> np.ndarray:
    """One level up or down where the value lies at a tie, else 0."""
    low, high, *_ = ends(node)
    steps = (values - low) / np.maximum(high - low, 1e-30) * (quantizer(node).get_attributes()["levels"] - 1)
    past = steps - np.floor(steps) - 0.5
    return np.where(np.abs(past) < _TIE, -np.sign(past + 1e-9), 0)
