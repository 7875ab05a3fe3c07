"""A simulation whose quantizations can be moved by parts of a quantum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovlpt.graph.bodies import with_bodies
from ovlpt.graph.constants import constant, constant_above, is_constant_path, precision_of
from ovlpt.graph.recurrent import sources, state_interval, weights_ports
from ovlpt.layer_transformation import insert_after
from ovlpt.openvino_api import Model, Node, Output, opset1
from ovlpt.operations import RECURRENT
from tools.fuzz.operations import QUANTIZES

Grids = dict[str, tuple[np.ndarray, np.ndarray]]  # of the weights by data and by state, by the name of their layer
_LOST = 1 / 8  # of either weights, what that grid may take


def _is_activation(node: Node) -> bool:
    return node.get_friendly_name().rstrip("0123456789") in QUANTIZES


def _grid_of(value: Output) -> Node | None:
    """The quantization whose levels a value has, which only passes them on."""
    found = {each.get_node().get_friendly_name(): each.get_node() for each in sources(value)}
    node = next(iter(found.values()))
    return node if len(found) == 1 and _is_activation(node) else None


def quantizer(node: Node) -> Node:
    """The FakeQuantize of a step: the step itself, or what its Convert, Subtract and Multiply read."""
    while node.get_type_name() != "FakeQuantize":
        node = node.input_value(0).get_node()
    return node


def ends(node: Node) -> list[np.ndarray]:
    return [constant_above(value) for value in list(quantizer(node).input_values())[1:]]


def quantum(node: Node) -> np.ndarray:
    """The step of a step's output."""
    *_, low, high = ends(node)
    step = (high - low) / (quantizer(node).get_attributes()["levels"] - 1)
    return step * constant_above(node.input_value(1)) if node.get_type_name() == "Multiply" else step


def activations(model: Model) -> list[Node]:
    """The quantizations that are steps of a graph; others are those of weights."""
    return [node for node in model.get_ordered_ops() if _is_activation(node)]


def with_shifts(model: Model, quantizes: list[Node], quanta: list[np.ndarray]) -> Model:
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
        results.append(opset1.result(quantizer(node).input_value(0)))
    return Model([*model.get_results(), *results], [*model.get_parameters(), *shifts])


def with_parted_ties(model: Model) -> Model | None:
    """With a little added to what each TopK reads, and more to what is later: of equal values it gives other places, as kernels
    may. None without one.
    """
    model, found = model.clone(), False
    for node in model.get_ops():
        if node.get_type_name() == "TopK":
            data, axis = node.input_value(0), node.get_attributes()["axis"]
            sizes = [size if each == axis else 1 for each, size in enumerate(data.get_shape())]
            later = constant(1e-6 * np.arange(sizes[axis]).reshape(sizes), precision_of(data))
            node.input(0).replace_source_output(opset1.add(data, later).output(0))
            found = True
    return model if found else None


def with_shifted_bodies(model: Model, part: float) -> Model:
    """With so many quanta added to what each FakeQuantize of data in a body gives."""
    model = model.clone()
    for body in list(with_bodies(model))[:-1]:
        for node in body.get_ordered_ops():
            if node.get_type_name() == "FakeQuantize" and not is_constant_path(node):
                targets = node.output(0).get_target_inputs()
                moved = opset1.add(node, constant(part * quantum(node), precision_of(node.output(0))))
                insert_after(node.output(0), moved.output(0), targets, [])
    return model


def with_rounded_states(model: Model, moves: Callable[[int], np.ndarray]) -> Model | None:
    """With moved states: their products with R are in B, and what reads them has them moved, too, since the kernels give what
    they keep. ``moves``: halves of a quantum by the number of elements.

    None where no recurrent layer reads quantized data. The grid is that of the data, wide enough for states in [-1, 1].
    """
    model, found = model.clone(), False
    for node in model.get_ops():
        is_recurrent = node.get_type_name().startswith(("GRU", "LSTM", "RNN"))
        if is_recurrent and (data := _grid_of(node.input_value(0))) is not None:
            low, high = (float(end.reshape(-1)[0]) for end in ends(data)[:2])
            half = (max(high, 1) - min(low, -1)) / 255 / 2
            *_, recurrent, bias = (constant_above(value) for value in node.input_values())
            rounding = half * moves(recurrent.shape[-1])
            bias = bias.copy()
            bias[..., : recurrent.shape[-2]] += recurrent @ rounding
            node.input(node.get_input_size() - 1).replace_source_output(
                constant(bias, precision_of(node.output(0))).output(0)
            )
            for state in node.outputs()[: 1 + node.get_type_name().endswith("Sequence")]:
                targets = state.get_target_inputs()
                moved = opset1.add(state, constant(rounding, precision_of(state)))
                insert_after(state, moved.output(0), targets, [])
            found = True
    return model if found else None


def kernel_grids(model: Model) -> Grids:
    """The steps by rows that int8 kernels have for both weights of each recurrent layer: the coarser scale of the two once
    data has the grid of the states, and for the gates f and i of an LSTM the coarser of both.
    """
    found: Grids = {}
    for node in model.get_ops():
        data = _grid_of(node.input_value(0)) if node.get_type_name() in RECURRENT else None
        if data is None:
            continue
        scales = [_step_of_weights(node.input_value(port)) for port in weights_ports(node)]
        if any(scale is None for scale in scales):
            continue
        low, high = state_interval(node)
        factor = float(quantum(data).max()) / (max(high, -low * 127 / 128) / 127)
        rows = np.maximum(scales[0] * factor, scales[1])
        directions, count = node.input_value(weights_ports(node)[0]).get_shape()[:2]
        rows = np.broadcast_to(rows, (directions, count, 1)).copy()
        if node.get_type_name() == "LSTMSequence":
            gates = rows.reshape(directions, 4, -1)
            gates[:, :2] = gates[:, :2].max(axis=1, keepdims=True)
        found[node.get_friendly_name()] = rows / factor, rows
    return found


def _step_of_weights(value: Output) -> np.ndarray | None:
    """The scale of quantized weights; None of real numbers."""
    node = value.get_node()
    if node.get_type_name() == "FakeQuantize":
        low, high = ends(node)[2:]
        return (high - low) / (node.get_attributes()["levels"] - 1)
    return constant_above(node.input_value(1)) if node.get_type_name() == "Multiply" else None


def with_kernel_weights(model: Model, grids: Grids) -> Model:
    """With the weights of recurrent layers, which are constants, rounded to ``grids``; others that would lose much."""
    model = model.clone()
    for node in model.get_ops():
        if node.get_friendly_name() not in grids or node.get_type_name() not in RECURRENT:
            continue
        for port, step in zip(weights_ports(node), grids[node.get_friendly_name()], strict=True):
            weights = constant_above(node.input_value(port)).astype(np.float64)
            rounded = np.rint(weights / step) * step
            if np.linalg.norm(rounded - weights) <= _LOST * np.linalg.norm(weights):
                changed = constant(rounded, precision_of(node.input_value(port)))
                node.input(port).replace_source_output(changed.output(0))
    return model
