"""The generic passes that markup is made of. Source: the native templates of the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ovlpt.attributes import Attribute, AttributeTable, PrecisionPreserved, Precisions
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.dequantization import dequantization_above
from ovlpt.layer_transformation import ModelTransformation
from ovlpt.openvino_api import Model, Node, Output


def source_of(node: Node, port: int) -> Output:
    """Where an input's value is quantized: of a Q/DQ pair, behind its dequantization and its Convert."""
    found = dequantization_above(node, port)
    source = found.data.get_node()
    is_pair = not found.empty and source.get_type_name() == "Convert"
    if is_pair and source.input_value(0).get_node().get_type_name() == "FakeQuantize":
        return source.input_value(0)
    return node.input_value(port)


def source_attribute(attributes: AttributeTable, node: Node, port: int, kind: type[Attribute]) -> Attribute | None:
    """The attribute on the output that an input reads, or on its node."""
    source = source_of(node, port)
    return attributes.get(source, kind) or attributes.get(source.get_node(), kind)


def is_precision_preserved(attributes: AttributeTable, node: Node) -> bool:
    attribute = attributes.get(node, PrecisionPreserved)
    return attribute is not None and attribute.value


class Propagation(ModelTransformation):
    """Visits every node in topological order, those of bodies too."""

    part_of: type | None = None  # the pass whose step this is: its callback counts too

    def run_on_model(self, model: Model) -> bool:
        if not self.pass_config.is_disabled(type(self)):
            for node in all_nodes(model):
                if not self._leave_alone(node) and not (self.part_of and self._leave_alone(node, self.part_of)):
                    self.visit(node)
        return False

    def visit(self, node: Node) -> None:
        raise NotImplementedError


class Propagations(ModelTransformation):
    """A markup pass of several steps. Its callback leaves a node alone in each of them."""

    def steps(self, model: Model) -> Iterable[Propagation]:
        """In order."""
        raise NotImplementedError

    def run_on_model(self, model: Model) -> bool:
        if not self.pass_config.is_disabled(type(self)):
            for step in self.steps(model):
                step.part_of = type(self)
                step.run_on_model(model)
        return False


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
        if self.operations is None or node.get_type_name() in self.operations:
            attribute = self.create(node)
            if attribute is not None:
                self.attributes.set(self.place(node), attribute)


class PropagateThroughPrecisionPreserved(Propagation):
    """A precision-preserved node joins the attributes of its inputs into one."""

    def __init__(self, kind: type[Attribute], **settings):
        super().__init__(**settings)
        self.kind = kind

    def visit(self, node: Node) -> None:
        if not is_precision_preserved(self.attributes, node):
            return
        found = []
        for port in range(node.get_input_size()):
            attribute = source_attribute(self.attributes, node, port, self.kind)
            if attribute is not None and not attribute.is_skipped:
                found.append(attribute)
        if found:
            first, *others = found
            first.merge(others)
            first.join(others)
            self.attributes.set(node, first)


class PropagateToInput(Propagation):
    """An input of a node that is not precision-preserved takes part in the attribute of its source."""

    def __init__(self, kind: type[Attribute], **settings):
        super().__init__(**settings)
        self.kind = kind

    def visit(self, node: Node) -> None:
        if is_precision_preserved(self.attributes, node):
            return
        pairs = []
        for port in range(node.get_input_size()):
            own = self.attributes.get(node.input(port), self.kind)
            source = source_attribute(self.attributes, node, port, self.kind)
            if source is None:
                continue
            if own is not None and self.kind is Precisions and not own.value:
                return
            pairs.append((node.input(port), own, source))
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
        for port in range(node.get_input_size()):
            precisions = self.attributes.get(node.input(port), Precisions)
            if precisions is not None and not precisions.value:
                return
        for port in range(node.get_input_size()):
            if self.expected is not None:
                expected = self.attributes.get(node.input(port), self.expected)
                if expected is None or expected.is_skipped:
                    return
            attribute = source_attribute(self.attributes, node, port, self.kind)
            if attribute is not None:
                attribute.value = True
