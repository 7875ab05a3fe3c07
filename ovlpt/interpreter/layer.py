"""An int8 layer: a weighted operation that reads integers, and the elementwise operations after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ovlpt.graph.constants import constant_above, is_real, precision_of
from ovlpt.graph.names import given
from ovlpt.openvino_api import Model, Node, Output
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import ACTIVATIONS, AFFINE
from ovlpt.precisions import INT8

FUNCTIONS = ACTIVATIONS - {"Elu"}
_WITH_CONSTANT = AFFINE | {"PRelu"}
_FOLLOWS = FUNCTIONS | _WITH_CONSTANT | {"Relu", "Clamp", "Convert"}


@dataclass(frozen=True)
class Layer:
    """A weighted node with integer inputs and what follows it, up to the first FakeQuantize.

    ``chain``: the elementwise nodes after it in order, each with constants as its other inputs and read by
    nobody else. Without a FakeQuantize at its end the layer's result is real.
    """

    node: Node
    chain: tuple[Node, ...]

    @property
    def name(self) -> str:
        return given(self.node.get_friendly_name())

    @property
    def type(self) -> str:
        return self.node.get_type_name()

    @property
    def end(self) -> Node:
        """The last node: its output is the layer's."""
        return self.chain[-1] if self.chain else self.node

    @property
    def quantizer(self) -> Node | None:
        """The FakeQuantize that ends the layer."""
        return self.end if self.end.get_type_name() == "FakeQuantize" else None

    @property
    def channel_axis(self) -> int:
        """Counted from the end, so that constants of lower rank need no care."""
        return -1 if self.type == "MatMul" else 1 - self.node.get_output_partial_shape(0).rank.get_length()

    @property
    def weights_precision(self) -> str:
        return precision_of(integer_source(self.node.input_value(1)))


def layers_of(model: Model) -> Iterator[Layer]:
    """The int8 layers of a transformed model in topological order."""
    for node in model.get_ordered_ops():
        if node.get_type_name() in WEIGHTED and all(integer_source(node.input_value(port)) for port in (0, 1)):
            yield Layer(node, tuple(_chain(node)))


def integer_source(value: Output) -> Output | None:
    """The u8 or i8 value after an input, through a zero point's Subtract and a Convert; None: it is real."""
    while precision_of(value) not in INT8:
        node = value.get_node()
        kind = node.get_type_name()
        integer_zero_point = kind == "Subtract" and _is_integer(node.input_value(1))
        if not (integer_zero_point or kind == "Convert"):
            return None
        value = node.input_value(0)
    return value


def _is_integer(value: Output) -> bool:
    zero_point = constant_above(value)
    return zero_point is not None and bool((zero_point == zero_point.round()).all())


def _chain(node: Node) -> Iterator[Node]:
    while True:
        targets = list(node.output(0).get_target_inputs())
        if len(targets) != 1 or targets[0].get_index() != 0:
            return
        node = targets[0].get_node()
        constants = all(constant_above(value) is not None for value in node.input_values()[1:])
        real = is_real(precision_of(node.output(0)))
        if node.get_type_name() == "FakeQuantize" and constants:
            yield node
            return
        same_shape = node.get_output_partial_shape(0) == node.get_input_partial_shape(0)
        if node.get_type_name() not in _FOLLOWS or not (constants and real and same_shape):
            return
        yield node
