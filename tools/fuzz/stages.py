"""The numbers of one quantization at a time, against what rounding may do to them.

In a *staged* graph no FakeQuantize lies above another, so that no rounding is amplified by the next one. LPT may move
what a FakeQuantize gives by half a quantum (it rounds zero points, and shared scales) and, where the input lies at a
tie, by a level. What such moves do to the outputs is measured on the simulation: half a quantum everywhere, with random signs
(their largest effect on an output), and channel by channel, then tie by tie; the transformed model may not differ by more
than the largest of the first three and the sum of the ties. Where it does, but not from what the plugin
makes of the model with its own LPT, the fault counts as the plugin's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.openvino_api import Model, Node, opset1
from tools.fuzz.graphs import Graph, Step, build, pruned, reference
from tools.fuzz.numbers import STOCK, Failure, cause_of, interface_difference, run, transformed
from tools.fuzz.operations import QUANTIZES
from tools.parity.driver import core

WAY = "single stage"
_TIE = 1e-3  # of a quantum
_GROUPS = 64  # of channels, or ties, that are moved together at the most
_ARITHMETIC = {"f32": 2e-4, "f16 constants": 2e-4, "f16": 4e-3}  # of the largest output


def staged(graph: Graph) -> Graph:
    """The graph with a Parameter in front of each FakeQuantize that has another above it."""
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
    except RuntimeError as error:
        yield Failure(STOCK, cause_of(error), str(error)[-300:])
        return
    try:
        changed = transformed(model)
        if difference := interface_difference(model, changed):
            yield Failure(WAY, "interface", difference)
            return
        found = run(changed, inputs, "NO")
    except Exception as error:  # whatever it is, it is a finding
        yield Failure(WAY, cause_of(error), str(error)[-300:])
        return
    off = _off(found, expected, allowed)
    if off is None:
        return
    try:
        like_stock = _off(found, run(model, inputs, "YES"), allowed) is None
    except RuntimeError:
        like_stock = False
    yield Failure(STOCK if like_stock else WAY, "numbers", off)


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


def _allowed(graph: Graph) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The simulated outputs, and how far each element may be off."""
    model = reference(graph)
    quantizes = [node for node in model.get_ordered_ops() if _is_activation(node)]
    quanta = [_quantum(node) for node in quantizes]
    if any(step.kind == "Concat" for step in graph.steps):  # tensors that meet may take one scale, the coarsest
        quanta = [np.maximum(quantum, max(map(np.max, quanta))) for quantum in quanta]
    count, every = len(graph.results), len(model.get_results())
    simulation = _with_shifts(model, quantizes, quanta)
    properties = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"}
    compiled = core().compile_model(simulation, "CPU", properties)
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
    for index, node in enumerate(quantizes):

        def effects(moves: Iterable[np.ndarray], index: int = index) -> list[list[np.ndarray]]:
            """Of each move on each output."""
            return [
                [
                    np.abs(value - other)
                    for value, other in zip(outputs(_at(still, index, move)), base[:count], strict=False)
                ]
                for move in moves
            ]

        half = np.full_like(still[index], 0.5)
        together = effects([half, -half])
        scattered = effects(half * random.choice([-1, 1], half.shape) for _ in range(4))
        apart = effects(_by_channel(half))
        ties = effects(_one_by_one(_to_the_other_side(node, base[every + index])))
        for port, limit in enumerate(allowed):
            moves = [
                *(effect[port] for effect in together),
                sum(effect[port] for effect in apart),
                max(effect[port].max(initial=0) for effect in scattered),
            ]
            limit += np.maximum.reduce([np.broadcast_to(move, limit.shape) for move in moves])
            limit += sum(effect[port] for effect in ties)
    return base[:count], allowed


def _at(still: list[np.ndarray], index: int, move: np.ndarray) -> list[np.ndarray]:
    return [*still[:index], move.astype(still[index].dtype), *still[index + 1 :]]


def _by_channel(move: np.ndarray) -> Iterator[np.ndarray]:
    axis = min(1, move.ndim - 1)
    for channels in np.array_split(np.arange(move.shape[axis]), min(move.shape[axis], _GROUPS)):
        single = np.zeros_like(move)
        place = (slice(None),) * axis + (channels,)
        single[place] = move[place]
        yield single


def _one_by_one(move: np.ndarray) -> Iterator[np.ndarray]:
    """The elements that move, in groups where they are many."""
    places = np.flatnonzero(move)
    for group in np.array_split(places, min(len(places), _GROUPS)) if len(places) else ():
        single = np.zeros_like(move)
        single.flat[group] = move.flat[group]
        yield single


def _is_activation(node: Node) -> bool:
    return node.get_type_name() == "FakeQuantize" and node.get_friendly_name().rstrip("0123456789") in QUANTIZES


def _ends(node: Node) -> list[np.ndarray]:
    return [constant_above(value) for value in list(node.input_values())[1:]]


def _quantum(node: Node) -> np.ndarray:
    *_, low, high = _ends(node)
    return (high - low) / (node.get_attributes()["levels"] - 1)


def _to_the_other_side(node: Node, values: np.ndarray) -> np.ndarray:
    """One level up or down where the value lies at a tie, else 0."""
    low, high, *_ = _ends(node)
    steps = (values - low) / np.maximum(high - low, 1e-30) * (node.get_attributes()["levels"] - 1)
    past = steps - np.floor(steps) - 0.5
    return np.where(np.abs(past) < _TIE, -np.sign(past + 1e-9), 0)


def _with_shifts(model: Model, quantizes: list[Node], quanta: list[np.ndarray]) -> Model:
    """With an input for each FakeQuantize, in quanta, that is added to its output, and its data as a further output."""
    shifts, results = [], []
    for node, quantum in zip(quantizes, quanta, strict=True):
        real = precision_of(node.output(0))
        targets = list(node.output(0).get_target_inputs())
        shift = opset1.parameter(node.get_output_shape(0), node.get_output_element_type(0))
        moved = opset1.add(
            node, opset1.multiply(shift, opset1.constant(quantum.astype({"f16": "f2", "f32": "f4"}[real])))
        )
        for target in targets:
            target.replace_source_output(moved.output(0))
        shifts.append(shift)
        results.append(opset1.result(node.input_value(0)))
    return Model([*model.get_results(), *results], [*model.get_parameters(), *shifts])
