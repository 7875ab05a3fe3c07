"""The models inside a model: the branches of If, the bodies of Loop and TensorIterator."""

from __future__ import annotations

from collections.abc import Iterator

from ovlpt.openvino_api import If, Loop, Model, Node, TensorIterator

_BODIES = {If: 2, Loop: 1, TensorIterator: 1}


def bodies_of(node: Node) -> Iterator[Model]:
    """The bodies of an operation; most have none."""
    count = _BODIES.get(type(node), 0)
    for index in range(count):
        yield node.get_function(index) if count > 1 else node.get_function()


def with_bodies(model: Model) -> Iterator[Model]:
    """Every body, innermost first, and then the model."""
    nodes = model.get_ordered_ops()
    if not _BODIES.keys().isdisjoint(map(type, nodes)):
        for node in nodes:
            for body in bodies_of(node):
                yield from with_bodies(body)
    yield model


def all_nodes(model: Model) -> list[Node]:
    """The nodes in topological order; those of a body come before the operation that it belongs to."""
    nodes = model.get_ordered_ops()
    if _BODIES.keys().isdisjoint(map(type, nodes)):  # most models have no bodies, and are asked often
        return nodes
    inner = ([each for body in bodies_of(node) for each in all_nodes(body)] + [node] for node in nodes)
    return [each for group in inner for each in group]


def kinds_of(model: Model) -> set[str]:
    """The type names of the nodes, those of bodies among them: a walk for one that no node is of takes as long as this."""
    return {node.get_type_name() for node in all_nodes(model)}


def operations_of(model: Model) -> list[tuple[Node, str]]:
    """`all_nodes` but constants, each with its type name. To be dropped before the graph changes: a node that is held goes on to
    count as a consumer after it was replaced.
    """
    return [(node, kind) for node in all_nodes(model) if (kind := node.get_type_name()) != "Constant"]
