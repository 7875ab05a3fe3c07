"""Constants of the graph as numpy arrays, and back."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from ovlpt.openvino_api import Constant, Node, NodeFactory, Output, Type, opset1
from ovlpt.operations.families import CONVOLUTIONS
from ovlpt.precisions import NUMPY, REAL

T = TypeVar("T")
_SMALL = 2**14  # numbers: scales and intervals of channels, not weights


def precision_of(output: Output) -> str:
    """Element type of a value as a string: "u8", "f32" …"""
    return output.get_element_type().get_type_name()


def constant(values: np.ndarray | np.number | float, precision: str = "f32") -> Constant:
    """A Constant of ``precision`` with the shape of ``values``."""
    if precision in NUMPY:
        return Constant(np.asarray(values, NUMPY[precision]))
    return opset1.constant(np.asarray(values, np.float32), getattr(Type, precision))  # bf16 has no numpy type


def values_of(node: Constant) -> np.ndarray:
    """The values of a Constant in its own shape; f16, bf16 and 4-bit types come as float32."""
    precision = node.get_output_element_type(0).get_type_name()
    if precision in NUMPY and precision != "f16":
        return node.data
    return np.asarray(node.get_data(dtype=np.float32))


def numbers_of(node: Constant) -> np.ndarray:
    """The same as float32; what is small is kept, as many passes ask for it (`numbers_read_once`)."""
    key, made = (Constant, node.get_instance_id()), _made.get()
    if made is not None and (found := made.get(key)) is not None:
        return found
    numbers = values_of(node)
    if numbers.dtype != np.float32:
        with np.errstate(over="ignore"):  # the least f64, as a mask of it has it, is -∞
            numbers = numbers.astype(np.float32)
    if made is not None and numbers.size <= _SMALL:
        made[key] = numbers
    return numbers


def rounded_to(values: np.ndarray, precision: str) -> np.ndarray:
    """The float32 values that a real ``precision`` can hold, nearest to ``values``."""
    return values if precision == "f32" else values_of(constant(values, precision)).astype(np.float32, copy=False)


def constant_above(output: Output) -> np.ndarray | None:
    """The value of a Constant, or of a Constant after one Convert, as float32; None for anything else."""
    node = output.get_node()
    if node.get_type_name() == "Convert":
        node = node.input_value(0).get_node()
    return numbers_of(node) if isinstance(node, Constant) else None


def is_constant_above(output: Output) -> bool:
    """Whether `constant_above` gives a value."""
    node = output.get_node()
    return isinstance(node, Constant) or (
        node.get_type_name() == "Convert" and isinstance(node.input_value(0).get_node(), Constant)
    )


_factory = functools.cache(NodeFactory)


def converted(value: Output, precision: str) -> Node:
    """A Convert. What Python's opsets do around the making of a node takes as long as that."""
    return _factory("opset1").create("Convert", [value], {"destination_type": precision})


def elementwise(kind: str, left: Output, right: Output) -> Node:
    """A Multiply, Add or Subtract; likewise."""
    return _factory("opset1").create(kind, [left, right], {"auto_broadcast": "numpy"})


def same_operation(node: Node, inputs: list[Output]) -> Node:
    """A new node that does to other inputs what ``node`` does to its own."""
    return _factory(node.get_type_info().version_id).create(node.get_type_name(), inputs, node.get_attributes())


def kept_apart(value: Output) -> Node:
    """The maximum of ``value`` and the least number of its type: the same numbers, past which nothing is fused or joined."""
    dtype = value.get_element_type().to_dtype()
    least = (np.finfo if dtype.kind == "f" else np.iinfo)(dtype).min
    return opset1.maximum(value, constant(least, precision_of(value)))


_SOURCES_OF_ACTIVATIONS = CONVOLUTIONS | {"ConvolutionBackpropData", "MatMul", "Parameter", "ReadValue"}


# While a graph is rewritten, per question: the nodes, by instance, from which a walk upwards has met what ends it.
_met: ContextVar[dict[object, set[int]] | None] = ContextVar("met", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Walks that have found data are not made again, as no rewrite makes a constant of data.

    Else each node of a chain would be asked for the whole chain above it.
    """
    token = _met.set(defaultdict(set))
    try:
        yield
    finally:
        _met.reset(token)


# While a model is transformed: what was made of the numbers of nodes, by the nodes' instances.
_made: ContextVar[dict[object, Any] | None] = ContextVar("made", default=None)


@contextmanager
def numbers_read_once() -> Iterator[None]:
    """`once` does nothing again, until the outermost of these ends. The numbers of a Constant do not change, and no two
    nodes are one instance.
    """
    token = _made.set({} if (made := _made.get()) is None else made)
    try:
        yield
    finally:
        _made.reset(token)


def once(key: object, make: Callable[[], T]) -> T:
    """What ``make`` gives, or has given before for an equal ``key`` (`numbers_read_once`)."""
    made = _made.get()
    if made is None:
        return make()
    if key not in made:
        made[key] = make()
    return made[key]


def made_before(key: object) -> Any:
    """What `once` has given for an equal ``key``; None where nothing."""
    made = _made.get()
    return None if made is None else made.get(key)


def meets(node: Node, ends: Callable[[Node], bool], sources: Callable[[Node], Iterable[Node]]) -> bool:
    """Whether a walk from ``node`` upwards over its ``sources``, in their order, comes to a node that ends it."""
    met = _met.get()
    known = set() if met is None else met[ends]
    seen: set[int] = set()
    way: list[tuple[int, Iterator[Node]]] = []  # from the node to where the walk is, and what is left to look at there
    above: Iterator[Node] = iter((node,))
    while True:
        if (source := next(above, None)) is None:
            if not way:
                return False
            _, above = way.pop()
        elif (number := source.get_instance_id()) not in seen:
            if number in known or ends(source):
                known.update((number, *(each for each, _ in way)))
                return True
            seen.add(number)
            way.append((number, above))
            above = iter(sources(source))


def is_constant_path(node: Node) -> bool:
    """Whether nothing above the node depends on data, so that it could be folded.

    As in the native library, weighted operations end the walk as if they were data.
    """
    return not meets(node, _brings_data, _sources)


def _brings_data(node: Node) -> bool:
    return node.get_type_name() in _SOURCES_OF_ACTIVATIONS


def _sources(node: Node) -> Iterator[Node]:
    """The data input first: it ends the walk soonest."""
    for port in range(node.get_input_size()):
        source = node.input_value(port).get_node()
        if not isinstance(source, Constant):
            yield source


def is_real(precision: str) -> bool:
    return precision in REAL
