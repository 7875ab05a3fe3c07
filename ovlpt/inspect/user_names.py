"""Names that a person can find: of the model that was given, not of the one that it was transformed to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.names import given as given_name
from ovlpt.inspect.executed import has_weights
from ovlpt.openvino_api import Model, Node
from ovlpt.operations.families import ARITHMETIC, REARRANGES

_FUSED = ARITHMETIC | REARRANGES | {"BatchNormInference"}  # into what they follow
_FAR = 8


class UserNames:
    """From operations of a transformed model to names of the given one; without a given one, their own."""

    def __init__(self, source: Model | None, transformed: Model):
        self._given = {node.get_friendly_name(): node for node in all_nodes(source)} if source is not None else None
        self._transformed = {node.get_friendly_name() for node in transformed.get_ops()}

    def of(self, node: Node, name: str) -> str:
        """``name``: of the node in the transformed model, without what a dequantization added to it."""
        return self._found(node, name)[0]

    def title(self, node: Node, name: str) -> str:
        """The type and the name; of what the given model does not have, the operation that it lies in or before."""
        kind = node.get_type_name()
        found, where = self._found(node, name)
        return f"{kind} {where} {self._given[found].get_type_name()} {found}" if where else f"{kind} {found}"

    def _found(self, node: Node, name: str) -> tuple[str, str]:
        """A name of the given model, and "inside" or "before" where it is not that of the operation itself."""
        if self._given is None:
            return name, ""
        given = self._given.get(name)
        if given is None:
            return self._around(node, name)
        if has_weights(node.get_type_name()) and given.get_type_name() in _FUSED:
            return self._fused_into(given) or name, ""
        return name, "inside" if _is_decomposed(node, given) else ""

    def _fused_into(self, given: Node) -> str | None:
        """The operation with weights that fusions gave the name of what follows it."""
        for _ in range(_FAR):
            if has_weights(given.get_type_name()) or given.get_type_name() == "ScaledDotProductAttention":
                return given.get_friendly_name()
            if given.get_type_name() not in _FUSED:
                return None
            given = given.input_value(0).get_node()
        return None

    def _around(self, node: Node, name: str) -> tuple[str, str]:
        """The operation that a fusion rebuilt, or the nearest operation after it that the given model has."""
        for reader in _walk(node, _readers):
            own = given_name(reader.get_friendly_name())
            if own in self._given and reader.get_type_name() != "Result":
                given = self._given[own]
                if _is_decomposed(reader, given):
                    return own, "inside"
                same = (each for each in _walk(given, _sources) if each.get_type_name() == node.get_type_name())
                rebuilt = next(same, None)
                return (rebuilt.get_friendly_name(), "") if rebuilt is not None else (own, "before")
        return name, ""


def _is_decomposed(node: Node, given: Node) -> bool:
    """Whether the operation of the given model that has the node's name was taken apart."""
    return given.get_type_name() in ("ScaledDotProductAttention", "Einsum", "GroupNormalization") and (
        node.get_type_name() != given.get_type_name()
    )


def _walk(node: Node, step: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """The nearest first, at most a hundred; the node itself left out."""
    pending, seen = deque(step(node)), {node.get_instance_id()}
    while pending and len(seen) < 100:
        current = pending.popleft()
        if current.get_instance_id() not in seen:
            seen.add(current.get_instance_id())
            yield current
            pending.extend(step(current))


def _readers(node: Node) -> list[Node]:
    return [target.get_node() for output in node.outputs() for target in targets_of(output)]


def _sources(node: Node) -> list[Node]:
    return [value.get_node() for value in node.input_values()]
