from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, is_real, precision_of, values_of
from ovlpt.graph.names import made_for
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Constant, Node
from ovlpt.trace import Reason


class UnsharedConstants(LayerTransformation):
    """A bias, scale or slope that several operations read: each of them gets a copy.

    Plugins fuse an elementwise operation into the layer before it only where nothing else reads its constant.
    """

    why = Reason(
        "shared_constant",
        "other operations read its constant, which would keep it from being fused into the layer before it",
    )

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Add", "opset1.Multiply", "opset1.PRelu", "opset1.Subtract"]

    def concerns(self, node: Node) -> bool:
        return self._port(node) is not None

    def transform(self, node: Node) -> None:
        port = self._port(node)
        shared = node.input_value(port)
        copy = constant(np.copy(values_of(shared.get_node())), precision_of(shared))
        copy.set_friendly_name(made_for(shared.get_node().get_friendly_name(), node.get_friendly_name()))
        node.input(port).replace_source_output(copy.output(0))

    @staticmethod
    def _port(node: Node) -> int | None:
        """That of a shared real constant that varies along one axis at most, beside data."""
        for port in (1, 0):
            value, data = node.input_value(port), node.input_value(1 - port).get_node()
            if not isinstance(value.get_node(), Constant) or not is_real(precision_of(value)):
                continue
            shared = len(value.get_target_inputs()) > 1 and sum(size != 1 for size in shape_of(value)) <= 1
            restores = data.get_type_name() in ("Convert", "Subtract")  # a dequantization is read, not executed
            if shared and not restores and not is_constant_path(data):
                return port
        return None
