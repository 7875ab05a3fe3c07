"""Attributes with values that several places share, and the table that holds them."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, Generic, Self, TypeVar

from ovlpt.openvino_api import Node, Output

T = TypeVar("T")
A = TypeVar("A", bound="Attribute")
Key = tuple[int, str, int]  # instance of the node, what of it, number of the port
Place = Any  # a Node, an Output, an input port as ``node.input(i)`` gives it, or the Key of one of them


class SharedValue(Generic[T]):
    """One value and every attribute that holds it."""

    __slots__ = ("holders", "value")

    def __init__(self, value: T):
        self.value = value
        self.holders: list[Attribute] = []


class Attribute(Generic[T]):
    """An attribute on a node or port. Attributes that were joined share one value for good."""

    __slots__ = ("shared",)

    def __init__(self, value: T):
        self.shared: SharedValue[T] = SharedValue(value)
        self.shared.holders.append(self)

    @property
    def value(self) -> T:
        return self.shared.value

    @value.setter
    def value(self, value: T) -> None:
        self.shared.value = value

    @property
    def is_skipped(self) -> bool:
        """Whether propagation passes over this attribute."""
        return False

    def merge(self, others: Iterable[Self]) -> None:
        """Take the values of ``others`` into this one's; the base class keeps its own."""

    def join(self, others: Iterable[Attribute[T]]) -> None:
        """Make every holder of the others' values hold this attribute's value."""
        for other in others:
            if other.shared is self.shared:
                continue
            for holder in other.shared.holders:
                holder.shared = self.shared
                self.shared.holders.append(holder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


def key_of(place: Place) -> Key:
    """What an `AttributeTable` finds a place by; who asks often keeps it."""
    if isinstance(place, Node):
        return place.get_instance_id(), "node", 0
    if isinstance(place, tuple):
        return place
    kind = "out" if isinstance(place, Output) else "in"
    return place.get_node().get_instance_id(), kind, place.get_index()


def input_key(node: Node, port: int) -> Key:
    """``key_of(node.input(port))`` at a third of its time."""
    return node.get_instance_id(), "in", port


def output_key(node: Node, port: int = 0) -> Key:
    """``key_of(node.output(port))``, likewise."""
    return node.get_instance_id(), "out", port


class AttributeTable:
    """The attributes of one run, found by node or port."""

    def __init__(self) -> None:
        self._at: dict[Key, dict[type, Any]] = {}
        self._kinds: set[type] = set()  # that were ever set: most others are asked of every node, and none has one

    def get(self, place: Place, kind: type[A]) -> A | None:
        if kind not in self._kinds:
            return None
        found = self._at.get(place if type(place) is tuple else key_of(place))
        return found.get(kind) if found else None

    def set(self, place: Place, attribute: A) -> A:
        self._kinds.add(type(attribute))
        self._at.setdefault(key_of(place), {})[type(attribute)] = attribute
        return attribute

    def remove(self, place: Place, kind: type[Attribute]) -> None:
        self._at.get(key_of(place), {}).pop(kind, None)

    def move(self, source: Node, target: Node) -> None:
        """Give ``target`` what ``source`` holds, ports included: a node was replaced by its new form."""
        old, new = source.get_instance_id(), target.get_instance_id()
        places = [("node", 0), *(("in", port) for port in range(source.get_input_size()))]
        places += [("out", port) for port in range(source.get_output_size())]
        for kind, port in places:
            if (old, kind, port) in self._at:
                self._at[(new, kind, port)] = dict(self._at[(old, kind, port)])

    def __len__(self) -> int:
        return len(self._at)


# Callbacks see a node and nothing else, yet ask for its attributes: those of the pass that calls them.
current_attributes: ContextVar[AttributeTable] = ContextVar("current_attributes", default=AttributeTable())  # noqa: B039  # shared on purpose
