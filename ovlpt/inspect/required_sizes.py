"""Sizes that open dimensions of a model's inputs must have: its layers have weights for no other.

OpenVINO infers shapes from the inputs on, so a model that was traced from PyTorch with an example takes ``[?,?,?,?]``
although its first Convolution is of three channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovlpt.graph.constants import constant_above
from ovlpt.graph.consumers import targets_of
from ovlpt.openvino_api import Model, Node, Output
from ovlpt.operations import OPERATIONS

_ALIGNED = frozenset(("Convert", "Divide", "Subtract"))  # beside the elementwise rows of the table
Axes = Sequence[int | None]  # for each axis of a value, that of the input which it is
# Of recurrent layers: the port of the weights whose last axis has the size of the last one of a port of data.
_RECURRENT = {
    "GRUCell": {0: 2, 1: 3},
    "GRUSequence": {0: 3, 1: 4},
    "LSTMCell": {0: 3, 1: 4, 2: 4},
    "LSTMSequence": {0: 4, 1: 5, 2: 5},
    "RNNCell": {0: 2, 1: 3},
    "RNNSequence": {0: 3, 1: 4},
}


def required_sizes(model: Model) -> list[dict[int, int]]:
    """For each input of ``model`` the sizes of those open axes that the first layers and constants determine."""
    return [_of(port) if port.get_partial_shape().rank.is_static else {} for port in model.inputs]


def _of(port: Output) -> dict[int, int]:
    shape = port.get_partial_shape()
    open_axes = {axis for axis, size in enumerate(shape) if size.is_dynamic}
    found: dict[int, int] = {}
    pending: list[tuple[Output, Axes]] = [(port, range(len(shape)))] if open_axes else []
    for value, axes in pending:
        for target in targets_of(value):
            reader, at = target.get_node(), target.get_index()
            for axis, size in _asked(reader, at, axes):
                if axis in open_axes:
                    found.setdefault(axis, size)
            pending += _after(reader, at, axes)
    return found


def _asked(node: Node, port: int, axes: Axes) -> Iterator[tuple[int | None, int]]:
    """Axes of the input and the sizes that ``node``, which reads it, has constants or weights for."""
    kind, rank = node.get_type_name(), len(axes)
    if kind in _RECURRENT:
        if port in _RECURRENT[kind]:
            yield from _sized(axes, rank - 1, node.input_value(_RECURRENT[kind][port]), -1)
    elif kind == "MatMul":
        other = node.input_value(1 - port)
        if other.get_partial_shape().rank.is_static:
            of_other = _summed(node, 1 - port, len(other.get_partial_shape()))
            yield from _sized(axes, rank + _summed(node, port, rank), other, of_other)
    elif (row := OPERATIONS.get(kind)) and row.kind == "weighted" and row.input_axis is not None:
        weights = node.input_value(1).get_partial_shape()
        sizes = list(weights) if port == 0 and weights.is_static else []
        if sizes:
            groups = sizes[0].get_length() if kind.startswith("Group") else 1
            yield axes[1], groups * sizes[row.input_axis].get_length()
    elif _keeps_places(node, rank):
        for other in node.inputs():
            if other.get_index() != port:
                for back in range(1, rank + 1):
                    yield from _sized(axes, rank - back, other.get_source_output(), -back, broadcast=True)


def _summed(node: Node, port: int, rank: int) -> int:
    """The axis over which a MatMul sums, from the last, of a factor of ``rank`` axes."""
    transposed = node.get_attributes()[("transpose_a", "transpose_b")[port]]
    return -1 if rank == 1 or transposed == bool(port) else -2


def _sized(
    axes: Axes, axis: int, other: Output, of_other: int, broadcast: bool = False
) -> Iterator[tuple[int | None, int]]:
    """The ``axis``, where the size of another value's axis ``of_other`` is known; 1 is none where it is ``broadcast``."""
    shape = other.get_partial_shape()
    if shape.rank.is_static and len(shape) >= -of_other and shape[of_other].is_static:
        size = shape[of_other].get_length()
        if size > broadcast:
            yield axes[axis], size


def _after(node: Node, port: int, axes: Axes) -> Iterator[tuple[Output, Axes]]:
    """The value after ``node``, where each axis of it is one of those before."""
    if node.get_type_name() == "Transpose":
        order = constant_above(node.input_value(1))
        if port == 0 and order is not None and order.size == len(axes):
            yield node.output(0), [axes[int(axis)] for axis in order]
    elif _keeps_places(node, len(axes)):
        yield node.output(0), axes


def _keeps_places(node: Node, rank: int) -> bool:
    """Whether each element of the result is computed from those at its place."""
    kind = node.get_type_name()
    if kind not in _ALIGNED and not ((row := OPERATIONS.get(kind)) and row.kind == "elementwise"):
        return False
    shape = node.get_output_partial_shape(0)
    return shape.rank.is_static and len(shape) == rank
