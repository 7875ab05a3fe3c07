"""Values of one region made smaller by a factor, where the readers of the region are invariant to it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, precision_of, values_of
from ovlpt.graph.consumers import targets_of
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations import WEIGHTED, Operation, operation_of
from ovlpt.trace import reject, reject_unless

_JOINS = frozenset(("Add", "Subtract", "Concat", "Maximum", "Minimum"))
_INVARIANT = "MVN"  # (x / d - mean(x / d)) / deviation(x / d) is what it was, with eps divided as well


class ScaleAdjustment:
    """Divides a value by ``divisor``, and with it every value that has to follow, up to normalizations.

    The region is found by walking up to weights and down to MVN; a step that would change the model's results raises
    `Rejected`, and nothing is changed before the whole region is known.
    """

    ends: ClassVar[frozenset[str]] = frozenset((_INVARIANT, "ShapeOf"))  # readers that are invariant to the factor

    def __init__(self, divisor: float):
        self.divisor = divisor
        self._values: dict[tuple[int, int], Output] = {}  # those that are to be divided
        self._pending: list[Output] = []

    def find(self, value: Output) -> None:
        """Collect the region around ``value``; raises `Rejected` where there is none."""
        self._pending.append(value)
        while self._pending:
            value = self._pending.pop()
            if _key(value) in self._values:
                continue
            self._values[_key(value)] = value
            self._look_up(value)
            for target in targets_of(value):
                self._look_down(target.get_node(), target.get_index())

    def apply(self) -> None:
        """Divide what begins the region, and the intervals of quantizations within."""
        producers = {value.get_node().get_instance_id(): value.get_node() for value in self._values.values()}
        normalizations: dict[int, Node] = {}
        for value in self._values.values():
            for target in targets_of(value):
                if target.get_node().get_type_name() == _INVARIANT:
                    normalizations[target.get_node().get_instance_id()] = target.get_node()
        for node in producers.values():
            kind, ports = node.get_type_name(), range(node.get_input_size())
            if kind == "FakeQuantize":
                ports = range(1, 5)
            elif self._multiplies(kind):
                inside = any(_key(value) in self._values for value in node.input_values())
                ports = (
                    [] if inside else [port for port in ports if is_constant_path(node.input_value(port).get_node())]
                )
            elif kind in _JOINS:
                ports = [port for port in ports if is_constant_path(node.input_value(port).get_node())]
            else:
                ports = []
            for port in ports:
                node.input(port).replace_source_output(self._divided(node.input_value(port)))
        for node in normalizations.values():
            self._divide_eps(node)

    def _look_up(self, value: Output) -> None:
        node = value.get_node()
        kind = node.get_type_name()
        if self._multiplies(kind):
            constants = [is_constant_path(source.get_node()) for source in node.input_values()]
            reject_unless(any(constants), "two_activations", f"{node.get_friendly_name()} multiplies two activations")
        elif kind in _JOINS:
            self._pending += [source for source in node.input_values() if not is_constant_path(source.get_node())]
        elif self._follows(kind):
            self._pending.append(node.input_value(0))
        else:
            reject("not_homogeneous", f"the scale of {node.get_friendly_name()} ({kind}) cannot be changed")

    def _look_down(self, consumer: Node, port: int) -> None:
        kind = consumer.get_type_name()
        if kind in self.ends:
            return
        follows = self._multiplies(kind) or kind in _JOINS or (port == 0 and self._follows(kind))
        text = "it reaches a result" if kind == "Result" else f"it reaches {consumer.get_friendly_name()} ({kind})"
        reject_unless(follows, "not_homogeneous", f"{text}, which a scale would change")
        self._pending += consumer.outputs()

    def _multiplies(self, kind: str) -> bool:
        """Whether the operation has the scale of both of its inputs."""
        return kind == "Multiply" or (kind in WEIGHTED and self._row(kind).has_rule)

    def _follows(self, kind: str) -> bool:
        """Whether the operation has the scale of its data."""
        row = self._row(kind)
        return kind == "FakeQuantize" or (row is not None and row.follows_scale)

    def _row(self, kind: str) -> Operation | None:
        return operation_of(kind)

    def _divided(self, value: Output) -> Output:
        """A constant, or the dequantization of one, with its scale divided; other consumers keep theirs."""
        node = value.get_node()
        if isinstance(node, Constant):
            return constant(values_of(node) / np.float32(self.divisor), precision_of(value)).output(0)
        if node.get_type_name() == "Reshape":
            special_zero = node.get_attributes()["special_zero"]
            return opset1.reshape(self._divided(node.input_value(0)), node.input_value(1), special_zero).output(0)
        if node.get_type_name() == "Multiply":
            port = next((port for port in (1, 0) if isinstance(node.input_value(port).get_node(), Constant)), 1)
            scaled = opset1.multiply(node.input_value(1 - port), self._divided(node.input_value(port)))
            scaled.set_friendly_name(node.get_friendly_name())
            return scaled.output(0)
        return opset1.multiply(value, constant(np.float32(1 / self.divisor), precision_of(value))).output(0)

    def _divide_eps(self, node: Node) -> None:
        attributes = node.get_attributes()
        inside = str(attributes.get("eps_mode", "inside_sqrt")).lower() == "inside_sqrt"
        node.set_attribute("eps", attributes["eps"] / self.divisor ** (2 if inside else 1))


def _key(value: Output) -> tuple[int, int]:
    return value.get_node().get_instance_id(), value.get_index()
