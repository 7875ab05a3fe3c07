from __future__ import annotations

from collections.abc import Sequence

from ovlpt.attributes import Precisions, input_key
from ovlpt.graph.weights import has_quantized_weights, has_scales_of_outputs
from ovlpt.markup.propagation import ModelIndex, Propagation
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS


class MarkupCanBeQuantized(Propagation):
    """Convolutions whose weights are not quantized, or not by output channel, and Concat of unknown rank take no low precision."""

    def run(self, index: ModelIndex) -> None:
        rows = {kind: OPERATIONS.get(kind) for kind in index.kinds}
        self.operations = frozenset(("Concat", *(kind for kind, row in rows.items() if row and row.weights_axes)))
        super().run(index)

    def visit(self, node: Node) -> None:
        row = self.row(node.get_type_name())
        if not row.has_rule:
            return
        if row.weights_axes:
            usable = self._has_usable_weights(node, row.weights_axes)
        else:
            usable = node.get_output_partial_shape(0).rank.is_static
        if not usable:
            for port in range(node.get_input_size()):
                self.attributes.set(input_key(node, port), Precisions(()))

    def _has_usable_weights(self, node: Node, axes: Sequence[int]) -> bool:
        is_quantized = has_quantized_weights(node, axes, self.params.default_precisions)
        return is_quantized and has_scales_of_outputs(node, axes)
