"""The models inside a model: the branches of If, the bodies of Loop and TensorIterator."""

from __future__ import annotations

from collections.abc import Iterator

from ovlpt.openvino_api import Model, Node

_BODIES = {"If": 2, "Loop": 1, "TensorIterator": 1}


def bodies_of(node: Node) -> Iterator[Model]:
    """The bodies of an operation; most have none."""
    count = _BODIES.get(node.get_type_name(), 0)
    for index in range(count):
        yield node.get_function(index) if count > 1 else node.get_function()


def with_bodies(model: Model) -> Iterator[Model]:
    """Every body, innermost first, and then the model."""
    for node in model.get_ordered_ops():
        for body in bodies_of(node):
            yield from with_bodies(body)
    yield model


def all_nodes(model: Model) -> Iterator[Node]:
    """The nodes in topological order; those of a body come before the operation that it belongs to."""
    for node in model.get_ordered_ops():
        for body in bodies_of(node):
            yield from all_nodes(body)
        yield node
