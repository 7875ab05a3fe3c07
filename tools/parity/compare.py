"""Two graphs, node by node, from the results upwards; names do not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ovlpt.graph.bodies import all_nodes, bodies_of
from ovlpt.graph.constants import precision_of, values_of
from ovlpt.openvino_api import Constant, Model, Node, Output

_SYMMETRIC = frozenset(("Add", "Multiply", "Maximum", "Minimum"))
_NOT_COMPARED = frozenset(
    (
        "type_relax",
        "input_data_types",
        "output_data_types",
        "auto_broadcast",
        "element_type",
        "shape",
        "variable_id",
    )
)
_RELATIVE = 1e-4  # of real constants


@dataclass
class Comparison:
    """What was found: nodes of the reference with an equal partner, nodes of the reference, and each difference."""

    matched: int = 0
    total: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        return self.matched == self.total and not self.differences


def compare(reference: Model, candidate: Model) -> Comparison:
    """Pair the nodes of both models, and of the bodies in them, and count the equal ones.

    Nodes are equal in operation, attributes, element types and the outputs that they read; constants also in values
    (real ones to a relative 1e-4, shapes up to ones). Below a difference the walk goes on where the inputs still correspond.
    """
    result = Comparison(total=sum(1 for _ in all_nodes(reference)))
    ends = list(zip(_ends(reference), _ends(candidate), strict=False))
    if len(_ends(reference)) != len(_ends(candidate)):
        result.differences.append(f"{len(_ends(reference))} results and sinks, not {len(_ends(candidate))}")
    partners: dict[int, int | None] = {}
    while ends:
        one, other = ends.pop()
        key = one.get_instance_id()
        if key in partners:
            if partners[key] not in (None, other.get_instance_id()) and not isinstance(one, Constant):
                result.differences.append(f"{one.get_type_name()} {one.get_friendly_name()}: two stand for it")
            continue
        reasons = list(_differences(one, other))
        partners[key] = None if reasons else other.get_instance_id()
        result.matched += not reasons
        result.differences += [f"{one.get_type_name()} {one.get_friendly_name()}: {reason}" for reason in reasons]
        if one.get_type_name() != other.get_type_name() or one.get_input_size() != other.get_input_size():
            continue
        for mine, its in zip(bodies_of(one), bodies_of(other), strict=True):
            ends += zip(_ends(mine), _ends(its), strict=True)
            ends += zip(mine.get_parameters(), its.get_parameters(), strict=False)  # some of which nothing reads
        for mine, its in _paired_inputs(one, other):
            if mine.get_index() != its.get_index():
                result.differences.append(
                    f"{one.get_type_name()} {one.get_friendly_name()}: reads output {mine.get_index()}, not {its.get_index()}"
                )
            ends.append((mine.get_node(), its.get_node()))
    return result


def _ends(model: Model) -> list[Node]:
    """The results in their order, and the sinks by their variables: their own order changes when one is replaced."""
    return [
        *model.get_results(),
        *sorted(model.get_sinks(), key=lambda sink: str(sink.get_attributes()["variable_id"])),
    ]


def _differences(one: Node, other: Node) -> Iterator[str]:
    if one.get_type_name() != other.get_type_name():
        yield f"there is a {other.get_type_name()}"
        return
    types = [[precision_of(output) for output in node.outputs()] for node in (one, other)]
    if types[0] != types[1]:
        yield f"it gives {', '.join(types[1])}, not {', '.join(types[0])}"
    if isinstance(one, Constant):
        if types[0] == types[1] and (reason := _other_values(values_of(one), values_of(other))):
            yield reason
        return
    mine, its = _attributes(one), _attributes(other)
    for name in sorted(mine.keys() | its.keys()):
        if not _equal_attributes(mine.get(name), its.get(name)):
            yield f"{name} is {its.get(name)}, not {mine.get(name)}"
    if one.get_input_size() != other.get_input_size():
        yield f"it has {other.get_input_size()} inputs, not {one.get_input_size()}"


def _attributes(node: Node) -> dict[str, object]:
    """An axis counted from the first, as it may be counted from the last."""
    found = {name: value for name, value in node.get_attributes().items() if name not in _NOT_COMPARED}
    if isinstance(axis := found.get("axis"), int) and (rank := node.get_output_partial_shape(0).rank).is_static:
        found["axis"] = axis % rank.get_length()
    return found


def _equal_attributes(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=1e-5, atol=1e-6))
    return str(one) == str(other)


def _other_values(one: np.ndarray, other: np.ndarray) -> str | None:
    shapes = [[size for size in values.shape if size != 1] for values in (one, other)]
    if shapes[0] != shapes[1]:
        return f"its shape is {list(other.shape)}, not {list(one.shape)}"
    if not one.size:
        return None
    a, b = (np.ravel(values).astype(np.float64) for values in (one, other))
    if np.issubdtype(one.dtype, np.integer):
        # a value that lies between two integers may be rounded either way
        wrong = np.abs(a - b)
        return (
            None
            if wrong.max() <= 1 and (wrong > 0).mean() <= 0.01
            else f"{(wrong > 0).mean():.1%} of its integers differ"
        )
    if np.allclose(a, b, rtol=_RELATIVE, atol=1e-6 * np.abs(a).max(), equal_nan=True):
        return None
    return f"its values differ by up to {np.nanmax(np.abs(a - b)):g}"


def _paired_inputs(one: Node, other: Node) -> Iterator[tuple[Output, Output]]:
    mine, its = list(one.input_values()), list(other.input_values())
    if one.get_type_name() in _SYMMETRIC and _kinds(mine) != _kinds(its) and _kinds(mine) == _kinds(its[::-1]):
        its.reverse()
    return zip(mine, its, strict=True)


def _kinds(values: list[Output]) -> list[str]:
    return [value.get_node().get_type_name() for value in values]
