"""Recurrent layers: the ports of their weights, where their values come from, and where their hidden states lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, is_constant_path, precision_of, values_of
from ovlpt.graph.consumers import consumers_of, readers_of
from ovlpt.graph.copies import copied_data
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Constant, Model, Node, NodeFactory, Output, Tensor, opset1
from ovlpt.operations import RECURRENT
from ovlpt.operations.families import REARRANGES, SLICES, SPLITS
from ovlpt.precisions import REAL
from ovlpt.trace import Reason

MOVES = REARRANGES | SLICES | SPLITS
_DATA = 0  # input
_DIRECTIONS = {"forward": Made.FORWARD, "reverse": Made.REVERSE}
_STATES, _LAST_STATE = 0, 1  # outputs
_ACTIVATIONS = {"GRUSequence": ["sigmoid", "tanh"], "LSTMSequence": ["sigmoid", "tanh", "tanh"]}


def has_quantized_weights(nodes: Iterable[Node]) -> bool:
    """Whether a recurrent layer among the nodes reads dequantized integer weights."""
    return any(True for _ in with_quantized_weights(nodes))


def with_quantized_weights(nodes: Iterable[Node]) -> Iterator[Node]:
    """The recurrent layers that read dequantized integer weights."""
    for node in nodes:
        ports = weights_ports(node) if node.get_type_name() in RECURRENT else ()
        if any(not isinstance(node.input_value(port).get_node(), Constant) for port in ports):
            yield node


def kernel(node: Node, columns: int = 0) -> tuple[object, ...]:
    """What the CPU plugin tells the kernels of recurrent layers of integers apart by, if the data had so many columns more."""
    shape = shape_of(node.input_value(weights_ports(node)[0]))
    kind = node.get_type_name(), node.get_attributes().get("direction")
    return (*kind, shape) if shape is None or shape[-1] is None else (*kind, *shape[:-1], shape[-1] + columns)


def weights_ports(node: Node) -> tuple[int, ...]:
    """Of the input weights and the recurrent weights; the bias comes next."""
    return RECURRENT[node.get_type_name()]


def bias_port(node: Node) -> int:
    return weights_ports(node)[1] + 1


def cell_obstacle(node: Node) -> Reason | None:
    """What of its attributes keeps the layer from the int8 kernels of a CPU, however it is quantized."""
    attributes = node.get_attributes()
    if attributes.get("linear_before_reset"):
        return Reason("linear_before_reset", "linear_before_reset has no int8 kernel")
    activations = [each.lower() for each in attributes["activations"]]
    if activations != _ACTIVATIONS[node.get_type_name()] or attributes["clip"]:
        return Reason("activations", "the kernels do not support its activations or its clip")
    return None


def form_obstacle(node: Node) -> Reason | None:
    """The same, of attributes and of inputs whose constants are folded."""
    if (reason := cell_obstacle(node)) is not None:
        return reason
    if not _runs_all_steps(node):
        return Reason(
            "sequence_lengths", "its sequences may end before the last step, but the kernels always run every step"
        )
    if folded_constant(node.input_value(bias_port(node))) is None:
        return Reason("dynamic_bias", "its bias is not a constant")
    return None


def _runs_all_steps(node: Node) -> bool:
    """Whether the plugin takes every sequence to have all steps: of open shapes it does; else it runs a float loop."""
    shape = node.get_input_partial_shape(_DATA)
    lengths = node.input_value(weights_ports(node)[0] - 1).get_node()
    return shape.is_dynamic or (
        isinstance(lengths, Constant) and bool((values_of(lengths) == shape[1].get_length()).all())
    )


def state_interval(node: Node) -> tuple[float, float]:
    """Of the hidden states: [-1, 1], as a gate times a tanh, but what calibration has seen where all that reads them is
    quantized.
    """
    readers = state_readers(node)
    read = [QuantizationDetails.of(each) if each.get_type_name() == "FakeQuantize" else None for each in readers]
    if not read or None in read:
        return -1.0, 1.0
    low = min(float(each.input_low.min()) for each in read)
    high = max(float(each.input_high.max()) for each in read)
    return (max(low, -1.0), min(high, 1.0)) if low < 0 < high else (-1.0, 1.0)


def state_readers(node: Node) -> list[Node]:
    """What reads the hidden states that the layer outputs, after all that only moves them."""
    readers, moved = [], [node.output(_STATES), node.output(_LAST_STATE)]
    while moved:
        for target in consumers_of(moved.pop()):
            reader = target.get_node()
            if reader.get_type_name() in MOVES:
                moved += reader.outputs()
            else:
                readers.append(reader)
    return readers


def sources(value: Output) -> Iterator[Output]:
    """What gives the values of ``value``, above everything that only passes them on."""
    pending = [value]
    while pending:
        value = pending.pop()
        node = value.get_node()
        is_convert = node.get_type_name() == "Convert"
        if data := copied_data(node):
            pending += reversed(data)
        elif is_convert and {precision_of(value), precision_of(node.input_value(0))} <= REAL:
            pending.append(node.input_value(0))
        else:
            yield value


def evaluated(value: Output) -> np.ndarray:
    """What a path of constants gives, in float32."""
    result = Tensor(value.get_element_type(), value.get_shape())
    Model([opset1.result(value)], [], "constants").evaluate([result], [])
    return np.array(result.data, np.float32)


def quantized_weights(node: Node, values: Callable[[int], np.ndarray | None] | None = None) -> list[int]:
    """The ports of the weights that are constants on a grid, after a FakeQuantize or a dequantization.

    ``values``: what constants on a port come to, from who asks for them, too.
    """
    found = values or (lambda port: folded_constant(node.input_value(port)))
    ports = RECURRENT[node.get_type_name()]
    return [port for port in ports if found(port) is not None and _is_quantized(node.input_value(port))]


def _is_quantized(value: Output) -> bool:
    """Whether constants are, if the value is of constants alone."""
    while not isinstance(value.get_node(), Constant):
        if value.get_node().get_type_name() == "FakeQuantize":
            return True
        value = value.get_node().input_value(0)
    return precision_of(value) not in REAL


def make_weights_real(node: Node) -> bool:
    """Let the layer read its weights as plain constants; whether any were not.

    The CPU plugin throws on a layer with integers for weights that it cannot run in low precision, or ends the process where
    gates of 4 bits are joined after they were dequantized.
    """
    values = {port: node.input_value(port) for port in weights_ports(node)}
    ports = [port for port, value in values.items() if is_constant_path(value.get_node()) and _is_quantized(value)]
    for port in ports:
        value, folded = values[port], folded_constant(values[port])
        real = constant(evaluated(value) if folded is None else folded, precision_of(value))
        real.set_friendly_name(value.get_node().get_friendly_name())
        node.input(port).replace_source_output(real.output(0))
    return bool(ports)


def fold_parted_weights(model: Model) -> None:
    """Make weights of bidirectional layers that stand after a FakeQuantize real numbers.

    The CPU plugin takes the directions apart before its own LPT, and folds what stands between such weights and a layer.
    """
    for node in all_nodes(model):
        if node.get_type_name() not in RECURRENT or node.get_attributes()["direction"] != "bidirectional":
            continue
        sources = [node.input_value(port).get_node().get_type_name() for port in weights_ports(node)]
        if "FakeQuantize" in sources:
            make_weights_real(node)


def in_both_directions(node: Node, halves: Callable[[Output, int], Sequence[Output]]) -> list[Node]:
    """The outputs of a bidirectional sequence, each of a forward one and a reverse one. ``halves``: those of an input along an axis."""
    lengths = weights_ports(node)[0] - 1
    pairs = {  # the batch comes first in states
        port: halves(node.input_value(port), int(port < lengths))
        for port in range(1, node.get_input_size())
        if port != lengths
    }
    sequences = []
    for half, (direction, made) in enumerate(_DIRECTIONS.items()):
        inputs = [pairs[port][half] if port in pairs else value for port, value in enumerate(node.input_values())]
        settings = {**node.get_attributes(), "direction": direction}
        sequence = NodeFactory(node.get_type_info().version_id).create(node.get_type_name(), inputs, settings)
        sequence.set_friendly_name(made_for(node.get_friendly_name(), made))
        sequences.append(sequence)
    return [opset1.concat([each.output(port) for each in sequences], 1) for port in range(node.get_output_size())]


def is_for_recurrent_layer(node: Node) -> bool:
    """Whether a recurrent layer reads it, also moved: the plugin's own LPT forms those of integers, and has a FakeQuantize of
    real numbers report such.
    """
    waiting = readers_of(node)
    while waiting:
        reader = waiting.pop()
        if reader.get_type_name() in RECURRENT:
            return True
        waiting += readers_of(reader) if reader.get_type_name() in MOVES else ()
    return False
