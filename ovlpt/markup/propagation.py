"""The generic passes that markup is made of. Source: the native templates of the same names."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import ClassVar, TypeVar

from ovlpt.attributes import Attribute, AttributeTable, Key, PrecisionPreserved, Precisions
from ovlpt.graph.bodies import operations_of
from ovlpt.graph.dequantization import DEQUANTIZATION, read_dequantization
from ovlpt.layer_transformation import ModelTransformation
from ovlpt.openvino_api import Constant, Model, Node, Output

A = TypeVar("A", bound=Attribute)


class ModelIndex:
    """A model as markup reads it, bodies included. Markup changes no graph, so all its steps share one look at it.

    Constants are left out: nothing is marked on them. An index is dropped before the graph changes: a node that it
    holds goes on to count as a consumer after it was replaced.
    """

    def __init__(self, model: Model):
        self._nodes = operations_of(model)
        self.kinds = {kind for _, kind in self._nodes}
        self._sources: dict[int, list[tuple[int, Key, Key]]] = {}

    def nodes(self, operations: Container[str] | None = None) -> list[Node]:
        """In topological order; those of the given type names, or all."""
        return [node for node, kind in self._nodes if operations is None or kind in operations]

    def sources(self, attributes: AttributeTable, node: Node, kind: type[A]) -> Iterator[tuple[int, A]]:
        """Of each input that has one, the attribute on the output that it reads, or on the node of that."""
        number = node.get_instance_id()
        if (places := self._sources.get(number)) is None:
            places = self._sources[number] = list(_sources(node))
        for port, output, producer in places:
            if (found := attributes.get(output, kind) or attributes.get(producer, kind)) is not None:
                yield port, found


def _sources(node: Node) -> Iterator[tuple[int, Key, Key]]:
    """What the inputs of a node read, but for constants: port, output, and node."""
    for port, value in enumerate(node.input_values()):
        producer = value.get_node()
        if isinstance(producer, Constant):
            continue
        if producer.get_type_name() in DEQUANTIZATION:
            value = _quantized(value)
            if isinstance(producer := value.get_node(), Constant):
                continue
        number = producer.get_instance_id()
        yield port, (number, "out", value.get_index()), (number, "node", 0)


def _quantized(value: Output) -> Output:
    """Where a dequantized value is quantized: of a Q/DQ pair, after its dequantization and its Convert."""
    found = read_dequantization(value)
    source = found.data.get_node()
    is_pair = not found.empty and source.get_type_name() == "Convert"
    if is_pair and source.input_value(0).get_node().get_type_name() == "FakeQuantize":
        return source.input_value(0)
    return value


def is_precision_preserved(attributes: AttributeTable, node: Node) -> bool:
    attribute = attributes.get(node, PrecisionPreserved)
    return attribute is not None and attribute.value


class Markup(ModelTransformation):
    """A pass that marks and changes nothing. Several of them in turn can share one `ModelIndex`."""

    def run_on_model(self, model: Model) -> bool:
        self.run(ModelIndex(model))
        return False

    def run(self, index: ModelIndex) -> None:
        raise NotImplementedError


class Propagation(Markup):
    """Visits every node in topological order, or those of its ``operations``."""

    operations: Container[str] | None = None  # type names
    reverse: ClassVar[bool] = False  # consumers before producers
    part_of: type | None = None  # the pass whose step this is: its callback counts too
    index: ModelIndex | None = None  # while it runs

    def run(self, index: ModelIndex) -> None:
        if self.pass_config.is_disabled(type(self)):
            return
        asked = [kind for kind in (type(self), self.part_of) if kind and self.pass_config.has_callback(kind)]
        self.index = index
        nodes = index.nodes(self.operations)
        for node in reversed(nodes) if self.reverse else nodes:
            if not asked or not any(self._leave_alone(node, kind) for kind in asked):
                self.visit(node)
        self.index = None

    def visit(self, node: Node) -> None:
        raise NotImplementedError

    def sources(self, node: Node, kind: type[A]) -> Iterator[tuple[int, A]]:
        return self.index.sources(self.attributes, node, kind)


class Propagations(Markup):
    """A markup pass of several steps. Its callback leaves a node alone in each of them."""

    def steps(self) -> Iterable[Propagation]:
        """In order."""
        raise NotImplementedError

    def run(self, index: ModelIndex) -> None:
        if not self.pass_config.is_disabled(type(self)):
            for step in self.steps():
                step.part_of = type(self)
                step.run(index)


class CreateAttribute(Propagation):
    """Puts ``create(node)`` at ``place(node)`` of each node with one of the type names; None creates nothing."""

    def __init__(
        self,
        operations: set[str] | None,
        create: Callable[[Node], Attribute | None],
        place: Callable[[Node], object] = lambda node: node,
        **settings,
    ):
        super().__init__(**settings)
        self.operations, self.create, self.place = operations, create, place

    def visit(self, node: Node) -> None:
        attribute = self.create(node)
        if attribute is not None:
            self.attributes.set(self.place(node), attribute)


class PropagateThroughPrecisionPreserved(Propagation):
    """A precision-preserved node joins the attributes of its inputs into one; with ``where``, one whose attribute of
    that kind is True.
    """

    def __init__(self, kind: type[Attribute], where: type[Attribute[bool]] = PrecisionPreserved, **settings):
        super().__init__(**settings)
        self.kind, self.where = kind, where

    def visit(self, node: Node) -> None:
        wanted = self.attributes.get(node, self.where)
        if wanted is None or not wanted.value:
            return
        found = [attribute for _, attribute in self.sources(node, self.kind) if not attribute.is_skipped]
        if found:
            first, *others = found
            first.merge(others)
            first.join(others)
            self.attributes.set(node, first)


class PropagateToSources(Propagation):
    """What is True of a node is True of what its inputs read; consumers come first."""

    reverse: ClassVar[bool] = True

    def __init__(self, kind: type[Attribute[bool]], **settings):
        super().__init__(**settings)
        self.kind = kind

    def visit(self, node: Node) -> None:
        own = self.attributes.get(node, self.kind)
        if own is not None and own.value:
            for _, source in self.sources(node, self.kind):
                source.value = True


class PropagateToInput(Propagation):
    """An input of a node that is not precision-preserved takes part in the attribute of its source."""

    def __init__(self, kind: type[Attribute], **settings):
        super().__init__(**settings)
        self.kind = kind

    def visit(self, node: Node) -> None:
        if is_precision_preserved(self.attributes, node):
            return
        pairs = []
        number = node.get_instance_id()
        for port, source in self.sources(node, self.kind):
            own = self.attributes.get(place := (number, "in", port), self.kind)
            if own is not None and self.kind is Precisions and not own.value:
                return
            pairs.append((place, own, source))
        for place, own, source in pairs:
            if own is None:
                self.attributes.set(place, source)
            elif own.shared is not source.shared:
                own.merge([source])
                own.join([source])


class UpdateSharedPrecisionPreserved(Propagation):
    """A quantized consumer sets the shared value of its source to True.

    With ``expected`` only inputs that carry that attribute count, and the first that does not ends the node.
    """

    def __init__(self, kind: type[Attribute], expected: type[Attribute] | None = None, **settings):
        super().__init__(**settings)
        self.kind, self.expected = kind, expected

    def visit(self, node: Node) -> None:
        kind = node.get_type_name()
        if kind == "FakeQuantize" or (self.expected is None and kind == "Result"):
            return
        if is_precision_preserved(self.attributes, node) or self.attributes.get(node, self.kind) is not None:
            return  # a node that waits for its own value decides about no other
        number, count = node.get_instance_id(), node.get_input_size()
        for port in range(count):
            precisions = self.attributes.get((number, "in", port), Precisions)
            if precisions is not None and not precisions.value:
                return
        sources = dict(self.sources(node, self.kind))
        for port in range(count):
            if self.expected is not None:
                expected = self.attributes.get((number, "in", port), self.expected)
                if expected is None or expected.is_skipped:
                    return
            if (attribute := sources.get(port)) is not None:
                attribute.value = True
