from __future__ import annotations

from collections.abc import Sequence

from ovlpt.attributes import PrecisionPreserved, Precisions, Restricted, input_key
from ovlpt.config import PrecisionsRestriction
from ovlpt.graph.dequantization import dequantization_above
from ovlpt.layer_transformation import facts_of
from ovlpt.markup.propagation import Propagation
from ovlpt.openvino_api import Node
from ovlpt.operations import NodeFacts, along_channels


class MarkupPrecisions(Propagation):
    """Marks precision-preserved operations, and the element types that restrictions allow on inputs.

    An operation without a rule, or whose dequantization varies along an axis other than that of the channels, takes no low precision.
    """

    def __init__(self, restrictions: Sequence[PrecisionsRestriction] = (), **settings):
        super().__init__(**settings)
        self.restrictions: dict[str, list[PrecisionsRestriction]] = {}
        for restriction in restrictions:
            self.restrictions.setdefault(restriction.operation, []).append(restriction)

    def visit(self, node: Node) -> None:
        kind = node.get_type_name()
        if kind == "Parameter":
            return
        row = self.row(kind)
        if kind not in ("Result", "Convert", "Subtract") and (row is None or not row.has_rule):
            return self._forbid(node)
        if not self._can_be_transformed(node):
            return self._forbid(node)
        preserves = row is not None and row.precision_preserved and row.preserves_precision(node.get_attributes())
        if preserves and not self._is_disabled(node):
            self.attributes.set(node, PrecisionPreserved(True))
        for restriction in self.restrictions.get(kind, ()):
            if restriction.opset in (None, node.get_type_info().version_id):
                self._restrict(node, restriction)

    def _forbid(self, node: Node) -> None:
        if node.get_input_size():
            self.attributes.set(input_key(node, 0), Precisions(()))

    def _can_be_transformed(self, node: Node) -> bool:
        if not node.get_input_size() or not node.get_output_size():
            return True
        if any(node.get_output_partial_shape(port).rank.is_dynamic for port in range(node.get_output_size())):
            return False
        found = dequantization_above(node, 0, self.params.default_precisions)
        if found.empty:
            return True
        return self._passes(node, facts_of(node, found))

    def _passes(self, node: Node, facts: NodeFacts) -> bool:
        """Whether the dequantization passes by the row, or lies along the channels, which most rules take."""
        row = self.row(node.get_type_name())
        return (row is not None and row.check(facts) is None) or along_channels(facts) is None

    def _is_disabled(self, node: Node) -> bool:
        marks = (self.attributes.get(input_key(node, port), Precisions) for port in range(node.get_input_size()))
        return any(mark is not None and not mark.value for mark in marks)

    def _restrict(self, node: Node, restriction: PrecisionsRestriction) -> None:
        groups = restriction.of(node)
        if not groups:
            self.attributes.set(node, Restricted(True))
            for port in range(node.get_input_size()):
                self.attributes.set(input_key(node, port), Precisions(()))
        for ports, precisions in groups:
            shared = Precisions(precisions)
            for port in ports:
                if port >= node.get_input_size():
                    continue
                own = self.attributes.get(input_key(node, port), Precisions)
                if own is None or own.value:
                    self.attributes.set(input_key(node, port), shared)
