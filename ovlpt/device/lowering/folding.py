"""Constants that are computed before the plugin does it wrongly."""

from __future__ import annotations

from ovlpt.graph.constants import constant, is_real, precision_of
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Constant, Node


def fold_float_weights(layer: Node) -> Node:
    """Integer weights that stay in float become real numbers: those of a convolution, and of a MatMul that reads them
    first, or has a vector for data. The plugin keeps the second input of other products compressed.

    It would restore the others in layers of their own, some with its own LPT, too. With several streams and open sizes,
    or f16, the layer then reads other numbers, no error.
    """
    inputs = layer.input_values()[:2]
    if not all(is_real(precision_of(value)) for value in inputs):
        return layer
    shapes = [value.get_partial_shape() for value in inputs]
    is_product = layer.get_type_name() == "MatMul"
    port = 0 if is_product and not (shapes[0].rank.is_static and len(shapes[0]) == 1) else 1
    if isinstance(inputs[port].get_node(), Constant):
        return layer
    values = folded_constant(inputs[port])
    if values is not None:
        folded = constant(values, precision_of(inputs[port]))
        folded.set_friendly_name(inputs[port].get_node().get_friendly_name())
        layer.input(port).replace_source_output(folded.output(0))
    return layer
