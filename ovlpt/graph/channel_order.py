"""Which constants follow when the channels (axis 1) of a value change places.

`above` and `below` walk from the value to the layers that can take any order, and name each constant on the way;
`reordered` is such a constant in the new order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, precision_of, same_operation, values_of
from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations.families import ACTIVATIONS, ARITHMETIC
from ovlpt.trace import reject, reject_unless

# Each channel by itself, the same for all
_ALONE = (ACTIVATIONS - {"SoftPlus"}) | {"AvgPool", "Clamp", "MaxPool", "Relu"}
_BINARY = ARITHMETIC | {"Maximum", "Minimum"}


@dataclass(frozen=True)
class Place:
    """An input whose constant has something for each channel on an axis, counted from the last."""

    node: Node
    port: int
    axis: int

    def reorder(self, order: np.ndarray) -> None:
        """What was at ``order[i]`` is at ``i`` then."""
        source = self.node.input_value(self.port)
        self.node.input(self.port).replace_source_output(reordered(source, self.axis, order))


def above(value: Output) -> list[Place]:
    """The constants up to the convolution that makes the channels; raises `Rejected` where their order is given."""
    places: list[Place] = []
    while True:
        node, kind = value.get_node(), value.get_node().get_type_name()
        if kind == "Convolution":
            return places + _checked(Place(node, 1, -len(shape_of(node.input_value(1)) or ())), value)
        port, more = _by_channel(node, value)
        value = node.input_value(port)
        reject_unless(
            len(consumers_of(value)) == 1, "shared", f"{value.get_node().get_friendly_name()} has other readers"
        )
        places += more


def below(value: Output, readers: list) -> list[Place]:
    """The constants from ``readers`` down to the convolutions that sum the channels up; raises `Rejected` where one
    needs their order.
    """
    places, pending = [], [(value, target) for target in readers]
    while pending:
        value, target = pending.pop()
        node = target.get_node()
        if node.get_type_name() == "Convolution" and target.get_index() == 0:
            places += _checked(Place(node, 1, 1 - len(shape_of(node.input_value(1)) or ())), value)
            continue
        port, more = _by_channel(node, value)
        reject_unless(port == target.get_index(), "channel_order", _needs_order(node))
        places += more
        pending += [(node.output(0), reader) for reader in consumers_of(node.output(0))]
    return places


def _by_channel(node: Node, value: Output) -> tuple[int, list[Place]]:
    """The port of the data of a node that takes each channel by itself, and its constants."""
    shape, kind = shape_of(value), node.get_type_name()
    others_read = any(each.get_target_inputs() for each in node.outputs()[1:])  # the indices of maxima
    reject_unless(shape is not None and not others_read, "channel_order", _needs_order(node))
    axis = 1 - len(shape)
    if kind in _ALONE:
        return 0, []
    if kind == "FakeQuantize":
        places = [Place(node, port, axis) for port in (1, 2, 3, 4)]
    elif kind in _BINARY:
        constants = [port for port in (0, 1) if is_constant_path(node.input_value(port).get_node())]
        reject_unless(len(constants) == 1, "channel_order", _needs_order(node))
        places = [Place(node, constants[0], axis)]
    elif kind == "GroupConvolution":
        shape = shape_of(node.input_value(1))
        reject_unless(shape is not None and shape[1:3] == (1, 1), "channel_order", _needs_order(node))
        places = [Place(node, 1, -len(shape))]
    else:
        reject("channel_order", _needs_order(node))
    port = 1 - places[0].port if kind in _BINARY else 0
    return port, [each for place in places for each in _checked(place, value)]


def _needs_order(node: Node) -> str:
    return f"{node.get_type_name()} {node.get_friendly_name()} needs its channels in their order"


def _checked(place: Place, value: Output) -> list[Place]:
    """The place, if its constant can be reordered and has something for each channel of ``value``."""
    count, rank = shape_of(value)[1], len(shape_of(value))
    source = place.node.input_value(place.port)
    is_weights = place.node.get_type_name().endswith("Convolution")
    reject_unless(
        _can_be_reordered(source, place.axis, count, None if is_weights else rank),
        "dynamic_constants",
        f"input {place.port} of {place.node.get_friendly_name()} is not a constant with one value for each of {count} channels",
    )
    return [place]


def _can_be_reordered(value: Output, axis: int, count: int, rank: int | None) -> bool:
    """``rank``: of the data that the constant is broadcast to; None for weights."""
    node, shape = value.get_node(), shape_of(value)
    if shape is None or (rank is not None and len(shape) > rank):
        return False
    if isinstance(node, Constant):
        return len(shape) < -axis or shape[axis] in (1, count)
    if node.get_type_name() == "Reshape":
        source = node.input_value(0)
        before = shape_of(source)
        keeps = before is not None and len(shape) == -axis and before[:1] == shape[:1] == (count,)
        return keeps and _can_be_reordered(source, -len(before), count, None)
    if node.get_type_name() not in ("Convert", "FakeQuantize", *_BINARY):
        return False
    return all(_can_be_reordered(source, axis, count, rank) for source in node.input_values())


def reordered(value: Output, axis: int, order: np.ndarray) -> Output:
    """A constant, or what is computed of constants, with another order along ``axis``, counted from the last."""
    node, shape = value.get_node(), shape_of(value)
    if len(shape) < -axis or shape[axis] == 1:
        return value
    if isinstance(node, Constant):
        new = constant(np.ascontiguousarray(np.take(values_of(node), order, axis)), precision_of(value))
    elif node.get_type_name() == "Reshape":
        source = node.input_value(0)
        new = same_operation(node, [reordered(source, -len(shape_of(source)), order), node.input_value(1)])
    else:
        new = same_operation(node, [reordered(source, axis, order) for source in node.input_values()])
    new.set_friendly_name(node.get_friendly_name())
    return new.output(0)
