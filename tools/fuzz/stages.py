"""The numbers of one quantization at a time, against what rounding may do to them.

In a *staged* graph no FakeQuantize lies above another, so that no rounding is amplified by the next one. LPT may move
what a FakeQuantize gives by half a quantum (it rounds zero points, and shared scales) and, where the input lies at a
tie, by a level. What such moves do to the outputs is measured on the simulation; the transformed model may not differ
by more than twice that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.openvino_api import Model, Node, opset1
from tools.fuzz.graphs import Graph, Step, build, pruned
from tools.fuzz.numbers import STOCK, Failure, cause_of, interface_difference, run, transformed
from tools.parity.driver import core

WAY = "single stage"
_TIE = 1e-3  # of a quantum
_ARITHMETIC = {"f32": 2e-4, "f16 constants": 2e-4, "f16": 4e-3}  # of the largest output


def staged(graph: Graph) -> Graph:
    """The graph with a Parameter in front of each FakeQuantize that has another above it."""
    steps, parameters, above = [], [], set()
    for index, step in enumerate(graph.steps):
        quantized = any(source in above for source, _ in step.sources)
        if step.kind == "FakeQuantize" and quantized:
            parameters.append(Step("Parameter", (), step.seed, step.shape))
            step = replace(step, sources=((-len(parameters), 0),))
        if step.kind == "FakeQuantize" or quantized:
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
    if off:  # some kernels are off themselves
        off &= _off(found, run(model, inputs, "YES"), allowed)
    for port in sorted(off)[:1]:
        distance = _distance(found[port], expected[port])
        yield Failure(WAY, "numbers", f"y{port}: off by {distance:.4g}, where {allowed[port]:.4g} is allowed")


def _off(found: list[np.ndarray], expected: list[np.ndarray], allowed: list[float]) -> set[int]:
    """The outputs farther from the expected ones than is allowed."""
    return {
        port
        for port, (one, other, limit) in enumerate(zip(found, expected, allowed, strict=True))
        if not _distance(one, other) <= limit
    }


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return np.inf
    return float(np.abs(one.astype(np.float32) - other.astype(np.float32)).max(initial=0))


def _allowed(graph: Graph) -> tuple[list[np.ndarray], list[float]]:
    """The simulated outputs, and how far each may be off."""
    model = build(replace(graph, form=replace(graph.form, dynamic="")))
    quantizes = [node for node in model.get_ordered_ops() if _is_activation(node)]
    quanta = [_quantum(node) for node in quantizes]
    if any(step.kind == "Concat" for step in graph.steps):  # tensors that meet may take one scale, the coarsest
        quanta = [np.maximum(quantum, max(map(np.max, quanta))) for quantum in quanta]
    simulation = _with_shifts(model, quantizes, quanta)
    properties = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"}
    compiled = core().compile_model(simulation, "CPU", properties)
    inputs, count = graph.inputs(), len(graph.results)
    still = [np.zeros(node.get_output_shape(0), inputs[0].dtype) for node in quantizes]

    def outputs(shifts: list[np.ndarray]) -> list[np.ndarray]:
        return [np.array(value, np.float32) for value in compiled([*inputs, *shifts]).values()]

    base = outputs(still)
    allowed = np.array([_ARITHMETIC[graph.form.precision] * np.abs(value).max(initial=1e-3) for value in base[:count]])
    random = np.random.default_rng(graph.seed)
    for index, node in enumerate(quantizes):
        ones = np.ones_like(still[index])
        halves = [ones, -ones, *(random.choice([-1, 1], ones.shape).astype(ones.dtype) for _ in range(2))]
        reach = [
            [
                np.abs(a - b).max(initial=0)
                for a, b in zip(outputs(_one(still, index, move)), base[:count], strict=False)
            ]
            for move in [*(half / 2 for half in halves), _to_the_other_side(node, base[count + index], ones)]
        ]
        allowed += 2 * np.max(reach[:-1], 0) + 2 * np.array(reach[-1])
    return base[:count], list(allowed)


def _one(still: list[np.ndarray], index: int, move: np.ndarray) -> list[np.ndarray]:
    return [*still[:index], move, *still[index + 1 :]]


def _is_activation(node: Node) -> bool:
    return node.get_type_name() == "FakeQuantize" and node.get_friendly_name()[len("FakeQuantize") :].isdigit()


def _ends(node: Node) -> list[np.ndarray]:
    return [constant_above(value) for value in list(node.input_values())[1:]]


def _quantum(node: Node) -> np.ndarray:
    *_, low, high = _ends(node)
    return (high - low) / (node.get_attributes()["levels"] - 1)


def _to_the_other_side(node: Node, values: np.ndarray, ones: np.ndarray) -> np.ndarray:
    """One level up or down where the value lies at a tie, else 0."""
    low, high, *_ = _ends(node)
    steps = (values - low) / np.maximum(high - low, 1e-30) * (node.get_attributes()["levels"] - 1)
    past = steps - np.floor(steps) - 0.5
    return np.where(np.abs(past) < _TIE, -np.sign(past + 1e-9), 0).astype(ones.dtype) * ones


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
