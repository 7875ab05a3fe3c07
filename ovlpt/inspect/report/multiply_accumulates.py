"""How many multiply-accumulates an operation takes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ovlpt.graph.bodies import bodies_of
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import Node

_CELLS = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 3, "LSTMCell": 3, "GRUCell": 2, "RNNCell": 2}  # port of W
_LOOPS = frozenset(("Loop", "TensorIterator"))
_WITH_BODIES = _LOOPS | {"If"}


def multiply_accumulates(node: Node) -> int:
    """Of a convolution, a MatMul, an attention or a recurrent layer, and of a body as often as it runs; 0 for any
    other operation, and for shapes that are not known.
    """
    if node.get_type_name() in _WITH_BODIES:
        return sum(count for _, count in work_of_bodies(node))
    inputs, output = [shape_of(value) for value in node.input_values()], shape_of(node.output(0))
    if any(shape is None or None in shape for shape in (*inputs, output)):
        return 0
    kind = node.get_type_name()
    match kind:
        case "Convolution" | "BinaryConvolution":
            return prod(output) * prod(inputs[1][1:])
        case "DeformableConvolution":
            return prod(output) * prod(inputs[2][1:])
        case "GroupConvolution":
            return prod(output) * prod(inputs[1][2:])
        case "ConvolutionBackpropData":
            return prod(inputs[0]) * prod(inputs[1][1:])
        case "GroupConvolutionBackpropData":
            return prod(inputs[0]) * prod(inputs[1][2:])
        case "MatMul":
            contracted = -2 if node.get_attributes()["transpose_a"] and len(inputs[0]) > 1 else -1
            return prod(output) * inputs[0][contracted]
        case "ScaledDotProductAttention":
            return prod(inputs[0]) * inputs[1][-2] + prod(output) * inputs[1][-2]
        case _ if kind in _CELLS:
            batch_and_steps = prod(inputs[0][:-1])
            weights = inputs[_CELLS[kind] : _CELLS[kind] + 2]
            return batch_and_steps * sum(prod(shape) for shape in weights)
    return 0


def work_of_bodies(node: Node) -> Iterator[tuple[Node, int]]:
    """Each operation in the body of a Loop or TensorIterator, and its multiply-accumulates in all iterations, which
    count as one where their number is not known; of an If those of the branch that has most.
    """
    rounds = max(node.get_num_iterations(), 1) if node.get_type_name() in _LOOPS else 1
    bodies = [
        [(inner, count) for inner in body.get_ops() if (count := multiply_accumulates(inner))]
        for body in bodies_of(node)
    ]
    for inner, count in max(bodies, key=lambda body: sum(count for _, count in body), default=[]):
        yield inner, count * rounds


def values_touched(node: Node) -> int:
    """How many elements an operation reads and writes, each once; 0 for shapes that are not known."""
    shapes = [shape_of(value) for value in (*node.input_values(), *node.outputs())]
    return 0 if any(shape is None or None in shape for shape in shapes) else sum(map(prod, shapes))
