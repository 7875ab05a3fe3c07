"""A quantized network cut into segments at its FakeQuantize operations: to observe it, and to run its parts alone.

A segment is what lies between FakeQuantize operations on data: it ends where a FakeQuantize or a Result reads, and
every operation that depends on data belongs to exactly one, the first in topological order. Values pass from one
segment to another at *points*: the output of a FakeQuantize, or a value that a later segment reads as well.

A value between a layer and its FakeQuantize is not a point: a plugin computes both in one kernel, and to read the value
from outside would end that. After the FakeQuantize the tensor is stored anyway.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from ovlpt.graph.constants import constant, constant_above, is_constant_path, is_real, precision_of
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.dequantization import DEQUANTIZATION
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Model, Node, Output, opset1
from ovlpt.operations import OPERATIONS, RECURRENT, WEIGHTED

_Grid = tuple[Output, Output, int]  # the ends of an interval, levels
_LAYERS = WEIGHTED | RECURRENT.keys()


@dataclass(frozen=True)
class Segment:
    """``end``: its result. ``point``: where the result can be read, after the FakeQuantize that follows if one does.
    ``sources``: the points that it reads.
    """

    end: Output
    point: Output
    nodes: tuple[Node, ...]
    sources: tuple[Output, ...]

    @property
    def layers(self) -> list[Node]:
        """Its operations with weights."""
        return [node for node in self.nodes if node.get_type_name() in _LAYERS]

    @property
    def quantized(self) -> list[Node]:
        """What a quantizer quantizes in it: the layers, and other operations that read a FakeQuantize and compute."""
        return [node for node in self.nodes if node.get_type_name() in _LAYERS or _reads_quantized(node)]


class Segments:
    """The segments of ``model``, equal and in the same order for each of its clones.

    ``inside``: names of FakeQuantize operations that end no segment, because a plugin fuses them with what follows.
    """

    def __init__(self, model: Model, inside: Collection[str] = ()):
        self._inside = inside
        self._owner: dict[int, int] = {}  # node → the number of its segment
        self._crossing: dict[tuple[int, int], Output] = {}
        self.quantizers: list[Node] = []
        self.segments: list[Segment] = []
        for node in model.get_ordered_ops():
            if self._is_quantizer(node) and not is_constant_path(node):
                self.quantizers.append(node)
                self._add(node, node.output(0))
            elif node.get_type_name() == "Result":
                self._add(node, node.input_value(0))

    def _is_quantizer(self, node: Node) -> bool:
        return node.get_type_name() == "FakeQuantize" and node.get_friendly_name() not in self._inside

    def _add(self, reader: Node, point: Output) -> None:
        """The segment that ends where ``reader`` reads, unless all of it belongs to others."""
        end, number = reader.input_value(0), len(self.segments)
        nodes: list[Node] = []
        sources: dict[tuple[int, int], Output] = {}
        pending = [end]
        while pending:
            value = pending.pop()
            node = value.get_node()
            if node.get_type_name() == "Parameter" or is_constant_path(node):
                continue
            owner = self._owner.get(node.get_instance_id())
            if owner == number:
                continue
            if owner is not None:
                if is_real(precision_of(value)):
                    self._crossing[_key(value)] = sources[_key(value)] = value
                continue
            if self._is_quantizer(node):
                sources[_key(value)] = value
                continue
            self._owner[node.get_instance_id()] = number
            nodes.append(node)
            pending.extend(node.input_values())
        if nodes:
            self.segments.append(Segment(end, point, tuple(nodes[::-1]), tuple(sources.values())))

    @property
    def feeds(self) -> list[Output]:
        """The points that segments read."""
        return [node.output(0) for node in self.quantizers] + list(self._crossing.values())

    @property
    def points(self) -> list[Output]:
        """All points: the feeds, then results of the network."""
        values = self.feeds + [segment.point for segment in self.segments]
        return list({_key(value): value for value in values}.values())

    def place_of(self, value: Output) -> int:
        """The index of a point among `points`."""
        return [_key(point) for point in self.points].index(_key(value))

    def detach(self) -> list[Node]:
        """Cut the segments off each other in the model; the new Parameters, one for each of the feeds.

        The readers of a FakeQuantize get another one with the Parameter before it, which leaves the values of the first
        one as they are: from its output interval to the same. So do those of a value that is on the grid of one, as they
        would run in float otherwise. Integers that pass between segments, shapes for instance, stay connected.
        """
        grids = [self._grid(value) for value in self._crossing.values()]  # before anything is cut
        parameters = []
        for node in self.quantizers:
            parameter = opset1.parameter(node.get_input_partial_shape(0), node.get_input_element_type(0))
            copy = _on_grid(parameter, (*node.input_values()[3:], node.get_attributes()["levels"]))
            for target in targets_of(node.output(0)):
                if target.get_node().get_type_name() != "Result":
                    target.replace_source_output(copy.output(0))
            parameters.append(parameter)
        for value, grid in zip(self._crossing.values(), grids, strict=True):
            parameter = opset1.parameter(value.get_partial_shape(), value.get_element_type())
            source = _on_grid(parameter, grid) if grid else parameter
            owner = self._owner[value.get_node().get_instance_id()]
            for target in targets_of(value):
                if self._owner.get(target.get_node().get_instance_id(), owner) != owner:
                    target.replace_source_output(source.output(0))
            parameters.append(parameter)
        return parameters

    def _grid(self, value: Output) -> _Grid | None:
        """The interval and the levels of a value that is only moved or dequantized after a FakeQuantize."""
        links: list[Node] = []
        precision = precision_of(value)
        while not self._is_quantizer(node := value.get_node()):
            row, data = OPERATIONS.get(node.get_type_name()), [each for each in node.input_values() if _is_data(each)]
            if node.get_type_name() in DEQUANTIZATION:
                links.append(node)
            elif row is None or not (row.copies and row.preserves_precision(node.get_attributes())):
                return None
            else:
                data = [each for each in data if is_real(precision_of(each))]
            if len(data) != 1:
                return None
            (value,) = data
        low, high = node.input_values()[3:]
        constants = [each for link in links for each in link.input_values() if not _is_data(each)]
        if any(each.get_partial_shape().is_dynamic or prod(each.get_shape()) != 1 for each in (low, high, *constants)):
            return None
        for link in reversed(links):
            low, high = (_with_data(link, end) for end in (low, high))
        ends = [folded_constant(end) for end in (low, high)]  # a bound that is computed keeps its readers in float
        if ends[0] is None or ends[1] is None or precision_of(low) != precision:
            return None
        low, high = (constant(end, precision).output(0) for end in ends)
        return low, high, node.get_attributes()["levels"]


def observed(model: Model, inside: Collection[str] = (), places: Collection[int] | None = None) -> Model:
    """A clone with points as further outputs, after its own. ``places``: which ones; all without."""
    clone = model.clone()
    points = Segments(clone, inside).points
    clone.add_results([opset1.result(points[place]) for place in (range(len(points)) if places is None else places)])
    return clone


def up_to(model: Model, inside: Collection[str], place: int) -> Model:
    """A clone that ends at one point, its only output."""
    clone = model.clone()
    return Model([opset1.result(Segments(clone, inside).points[place])], clone.get_parameters())


def apart(model: Model, inside: Collection[str] = (), at_point: bool = True) -> Model:
    """All segments side by side in one model, none connected to another.

    Inputs: those of ``model``, then one for each of `Segments.feeds`. Outputs: one per segment, its ``point``, or with
    ``at_point=False`` its ``end``.
    """
    clone = model.clone()
    cut = Segments(clone, inside)
    results = [opset1.result(segment.point if at_point else segment.end) for segment in cut.segments]
    return Model(results, [*clone.get_parameters(), *cut.detach()], clone.get_friendly_name())


def _reads_quantized(node: Node) -> bool:
    row = OPERATIONS.get(node.get_type_name())
    moves_data = row is not None and row.precision_preserved
    computes = not moves_data and is_real(precision_of(node.output(0)))
    return computes and any(
        value.get_node().get_type_name() == "FakeQuantize" and not is_constant_path(value.get_node())
        for value in node.input_values()
    )


def _is_data(value: Output) -> bool:
    return not is_constant_path(value.get_node())


def _with_data(link: Node, data: Output) -> Output:
    """The result of a link of a dequantization for other data, as real numbers."""
    if link.get_type_name() == "Convert":
        return data
    compute = opset1.subtract if link.get_type_name() == "Subtract" else opset1.multiply
    return compute(*(data if _is_data(each) else each for each in link.input_values())).output(0)


def _on_grid(parameter: Node, grid: _Grid) -> Node:
    """A FakeQuantize that leaves values of this grid as they are."""
    ends = _ascending(*grid[:2])
    return opset1.fake_quantize(parameter, *ends, *ends, grid[2])


def _ascending(low: Output, high: Output) -> tuple[Output | Node, Output | Node]:
    """The ends of an interval, which may be given from high to low."""
    values = constant_above(low), constant_above(high)
    if values[0] is None or values[1] is None or (values[0] <= values[1]).all():
        return low, high
    return opset1.minimum(low, high), opset1.maximum(low, high)


def _key(value: Output) -> tuple[int, int]:
    return value.get_node().get_instance_id(), value.get_index()
