from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ovlpt.attributes import QuantizationGranularity, input_key
from ovlpt.config import QuantizationGranularityRestriction
from ovlpt.markup.propagation import Propagation
from ovlpt.openvino_api import Node


class MarkupQuantizationGranularity(Propagation):
    """Marks the inputs that restrictions want quantized per tensor."""

    def __init__(self, restrictions: Sequence[QuantizationGranularityRestriction] = (), **settings):
        super().__init__(**settings)
        self.restrictions: dict[str, list[QuantizationGranularityRestriction]] = {}
        for restriction in restrictions:
            self.restrictions.setdefault(restriction.operation, []).append(restriction)
        self.operations = self.restrictions.keys()

    def visit(self, node: Node) -> None:
        for restriction in self.restrictions[node.get_type_name()]:
            if restriction.opset not in (None, node.get_type_info().version_id):
                continue
            if not self.row(restriction.operation).has_rule:
                continue
            everywhere: list[tuple[int, Any]] = [(port, "per_tensor") for port in range(node.get_input_size())]
            for port, granularity in restriction.by_port or everywhere:
                if port < node.get_input_size():
                    self.attributes.set(input_key(node, port), QuantizationGranularity(granularity))
