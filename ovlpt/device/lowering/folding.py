"""Constants that are computed before the plugin does it wrongly."""

from __future__ import annotations

from ovlpt.graph.constants import constant, is_real, precision_of
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Constant, Node


def fold_float_weights(layer: Node) -> Node:
    """Integer weights that stay in float become real numbers: those of a convolution, and of a MatMul that reads them
    first. The plugin keeps a MatMul's second input compressed.

    It would restore the others in layers of their own, some with its own LPT, too. With several streams and open sizes,
    or f16, the layer then reads other numbers, no error.
    """
    port = 0 if layer.get_type_name() == "MatMul" else 1
    data, weights = layer.input_value(1 - port), layer.input_value(port)
    if not is_real(precision_of(data)) or isinstance(weights.get_node(), Constant):
        return layer
    values = folded_constant(weights)
    if values is not None:
        folded = constant(values, precision_of(weights))
        folded.set_friendly_name(weights.get_node().get_friendly_name())
        layer.input(port).replace_source_output(folded.output(0))
    return layer
