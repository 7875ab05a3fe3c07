"""Channel shuffles whose order goes into the weights around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ovlpt.attributes import QuantizedWhole
from ovlpt.graph.channel_order import Place, above, below
from ovlpt.graph.constants import constant
from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation, read_once
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations.families import SPLITS
from ovlpt.trace import Outcome, Reason, reject_unless

AXIS = 1
Key = tuple[int, int]


def _key(value: Output) -> Key:
    return value.get_node().get_instance_id(), value.get_index()


@dataclass(frozen=True)
class Router:
    """An operation that carries channels from its inputs to its outputs, and does nothing else."""

    node: Node
    inputs: list[Output]
    route: Callable[[list[np.ndarray]], Sequence[np.ndarray]]  # the channels of the outputs from those of the inputs
    shuffles: bool = False


def router_of(node: Node) -> Router | None:
    """The router whose outputs the node has."""
    kind, inputs = node.get_type_name(), node.input_values()
    shape = shape_of(node.output(0)) if node.get_output_size() else None
    if shape is None or len(shape) < 3:
        return None
    if kind == "Concat" and node.get_attributes()["axis"] in (AXIS, AXIS - len(shape)):
        return Router(node, inputs, lambda channels: [np.concatenate(channels)])
    if kind in SPLITS:
        axis, sizes = inputs[1].get_node(), [shape_of(value)[AXIS] for value in node.outputs()]
        if not isinstance(axis, Constant) or axis.data.item() not in (AXIS, AXIS - len(shape)) or None in sizes:
            return None
        return Router(node, inputs[:1], lambda channels: np.split(channels[0], np.cumsum(sizes)[:-1]))
    shuffled = _shuffled(node)
    if shuffled is None:
        return None
    data, groups = shuffled
    return Router(node, [data], lambda channels: [channels[0].reshape(groups, -1).T.reshape(-1)], True)


def _shuffled(node: Node) -> tuple[Output, int] | None:
    """The data and the number of groups of a ShuffleChannels, or of the Reshape that ends Reshape, Transpose, Reshape."""
    if node.get_type_name() == "ShuffleChannels":
        attributes = node.get_attributes()
        rank = len(shape_of(node.output(0)) or ())
        return (node.input_value(0), attributes["group"]) if attributes["axis"] in (AXIS, AXIS - rank) else None
    if node.get_type_name() != "Reshape":
        return None
    transpose = node.input_value(0).get_node()
    if transpose.get_type_name() != "Transpose" or not isinstance(transpose.input_value(1).get_node(), Constant):
        return None
    apart = transpose.input_value(0).get_node()
    if apart.get_type_name() != "Reshape" or any(len(consumers_of(each.output(0))) != 1 for each in (apart, transpose)):
        return None
    data = apart.input_value(0)
    shape, split, result = (shape_of(value) for value in (data, apart.output(0), node.output(0)))
    order = transpose.input_value(1).get_node().data.reshape(-1).tolist()
    if shape is None or split is None or len(shape) < 3 or len(split) < 4 or shape != result:
        return None
    if order != [0, 2, 1, *range(3, len(split))] or None in (shape[1], *split[1:3]) or shape[1] != split[1] * split[2]:
        return None
    same_batch = shape[0] is not None and shape[0] == split[0] and shape[2:].count(None) <= 1
    same_space = None not in (*shape[2:], *split[3:]) and np.prod(shape[2:]) == np.prod(split[3:])
    return (data, split[1]) if same_batch or same_space else None  # each of the two follows from the other


def _router_reading(target) -> Router | None:
    node = target.get_node()
    if node.get_type_name() != "Reshape":
        return router_of(node) if target.get_index() == 0 or node.get_type_name() == "Concat" else None
    for _ in range(2):  # to the Reshape after
        readers = consumers_of(node.output(0))
        if len(readers) != 1:
            return None
        node = readers[0].get_node()
    router = router_of(node)
    return router if router is not None and _key(router.inputs[0]) == _key(target.get_source_output()) else None


@dataclass
class Routes:
    """All routers that are connected with a shuffle.

    ``channels``: of each value in between, as numbers over the channels of all sources; ``exits``: the values that
    others read, with these readers.
    """

    shuffles: list[Node] = field(default_factory=list)
    sources: list[tuple[int, Output]] = field(default_factory=list)  # with the number of the first channel
    exits: list[tuple[Output, list]] = field(default_factory=list)
    channels: dict[Key, np.ndarray] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def around(cls, shuffle: Node) -> Routes:
        values, routers, pending = {}, {}, [router_of(shuffle)]
        while pending:
            router = pending.pop()
            if router is None or router.node.get_instance_id() in routers:
                continue
            routers[router.node.get_instance_id()] = router
            for value in (*router.inputs, *router.node.outputs()):
                if _key(value) not in values:
                    values[_key(value)] = value
                    pending.append(router_of(value.get_node()))
                    pending += map(_router_reading, consumers_of(value))
        routes = cls([router.node for router in routers.values() if router.shuffles])
        for value in values.values():
            routes._resolve(value, routers)
        for value in values.values():
            readers = [target for target in consumers_of(value) if _router_reading(target) is None]
            if readers:
                routes.exits.append((value, readers))
        routes.exits.sort(key=lambda pair: pair[0].get_node().get_instance_id())
        return routes

    def _resolve(self, value: Output, routers: dict[int, Router]) -> None:
        """Find the channels of a value, and before them those that routers above give it."""
        pending = [value]
        while pending:
            value = pending.pop()
            if _key(value) in self.channels:
                continue
            router = routers.get(value.get_node().get_instance_id())
            if router is None:
                size = (shape_of(value) or (None,) * 2)[AXIS]
                reject_unless(size is not None, "dynamic_shape", "the number of channels is not known")
                self.sources.append((self.count, value))
                self.channels[_key(value)] = np.arange(self.count, self.count + size)
                self.count += size
            elif above := [each for each in router.inputs if _key(each) not in self.channels]:
                pending += [value, *reversed(above)]
            else:
                resolved = router.route([self.channels[_key(each)] for each in router.inputs])
                for output, numbers in zip(router.node.outputs(), resolved, strict=True):
                    self.channels[_key(output)] = numbers


@dataclass(frozen=True)
class Piece:
    """Neighbouring channels of a source, by their numbers, that the same exits read."""

    numbers: np.ndarray
    exits: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """``sources`` with the pieces they are split into, in order, and the constants that follow; exits likewise."""

    routes: Routes
    sources: list[tuple[Output, list[Piece], list[Place], np.ndarray]]
    exits: list[tuple[Output, list, list[Place]]]


class ChannelShuffles(LayerTransformation):
    """``conv(shuffle(x), w) == conv(x, w')``: the weights of the layers around take the channels' order.

    Shuffles, with the Splits and Concats around them, say which channels each layer reads. A layer before them puts out
    its channels in such an order that each reader finds its own side by side; a layer after takes them as they come.
    What is left is one Split of each output and one Concat of each input, quantized as a whole where it is quantized.
    """

    why = Reason("channel_shuffle", "the weights of the layers around it absorb the new order of the channels")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset3.ShuffleChannels", "opset1.Reshape"]

    def concerns(self, node: Node) -> bool:
        return _shuffled(node) is not None and bool(consumers_of(node.output(0)))

    def can_be_transformed(self, node: Node) -> None:
        self._plan(node)

    def transform(self, node: Node) -> None:
        plan = self._plan(node)
        pieces: list[tuple[Piece, Output]] = []
        for value, parts, places, order in plan.sources:
            for place in places:
                place.reorder(order)
            outputs = [value]
            if len(parts) > 1:
                lengths = constant(np.array([len(part.numbers) for part in parts]), "i64")
                split = opset1.variadic_split(value, constant(np.array(AXIS), "i64"), lengths)
                split.set_friendly_name(made_for(value.get_node().get_friendly_name(), Made.PIECES))
                outputs = split.outputs()
            pieces += zip(parts, outputs, strict=True)
        for index, (value, readers, places) in enumerate(plan.exits):
            mine = [(part, output) for part, output in pieces if index in part.exits]
            new = mine[0][1]
            if len(mine) > 1:
                new = opset1.concat([output for _, output in mine], AXIS).output(0)
                new.get_node().set_friendly_name(_name(value))
                if sum(output.get_node().get_output_size() > 1 for _, output in mine) > 1:
                    self.attributes.set(new.get_node(), QuantizedWhole(True))
            numbers = plan.routes.channels[_key(value)]
            where = np.argsort(numbers)
            order = where[np.searchsorted(numbers, np.concatenate([part.numbers for part, _ in mine]), sorter=where)]
            for place in places:
                place.reorder(order)
            for target in readers:
                target.replace_source_output(new)
        for shuffle in plan.routes.shuffles:
            if shuffle.get_instance_id() != node.get_instance_id():
                self._record(Outcome.TRANSFORMED, shuffle, self.why)

    @read_once
    def _plan(self, node: Node) -> Plan:
        routes = Routes.around(node)
        exits, reads = [], np.zeros((routes.count, len(routes.exits)), bool)
        for index, (value, readers) in enumerate(routes.exits):
            numbers = routes.channels[_key(value)]
            reads[numbers, index] = True
            reject_unless(reads[:, index].sum() == len(numbers), "repeated_channels", "a layer reads a channel twice")
            exits.append((value, readers, below(value, readers)))
        sources = [_source(first, value, reads) for first, value in routes.sources]
        return Plan(routes, sources, exits)


def _name(value: Output) -> str:
    name = value.get_node().get_friendly_name()
    return name if value.get_node().get_output_size() == 1 else f"{name}.{value.get_index()}"


def _source(first: int, value: Output, reads: np.ndarray) -> tuple[Output, list[Piece], list[Place], np.ndarray]:
    """Channels that are read alike come together, first those that the first exit reads."""
    mine = reads[first : first + shape_of(value)[AXIS]]
    order = np.lexsort((~mine).T[::-1])
    starts = [at for at in range(len(order)) if at == 0 or (mine[order[at]] != mine[order[at - 1]]).any()]
    pieces = [Piece(first + part, tuple(np.flatnonzero(mine[part[0]]))) for part in np.split(order, starts[1:])]
    places = [] if (order == np.arange(len(order))).all() else above(value)
    return value, pieces, places, order
