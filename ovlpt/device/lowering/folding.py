"""Constants that are computed before the plugin does it wrongly."""

from __future__ import annotations

from ovlpt.graph.constants import constant, is_real, precision_of
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Constant, Node


def fold_float_weights(layer: Node) -> Node | None:
    """Integer weights that stay in float become real numbers: those of a convolution, and of a MatMul that reads them
    first, has a vector or a transpose for data, or reads anything but one matrix of up to three axes, which the plugin keeps
    compressed; for one of more axes it throws.

    It would restore the others in layers of their own, some with its own LPT, too. With several streams and dynamic sizes,
    or f16, the layer then reads other numbers, no error.
    """
    inputs = layer.input_values()[:2]
    if not all(is_real(precision_of(value)) for value in inputs):
        return None
    is_folded = False
    for port in _folded_ports(layer):
        values = None if isinstance(inputs[port].get_node(), Constant) else folded_constant(inputs[port])
        if values is not None:
            folded = constant(values, precision_of(inputs[port]))
            folded.set_friendly_name(inputs[port].get_node().get_friendly_name())
            layer.input(port).replace_source_output(folded.output(0))
            is_folded = True
    return layer if is_folded else None


def _folded_ports(layer: Node) -> tuple[int, ...]:
    data = layer.get_input_partial_shape(0)
    if layer.get_type_name() != "MatMul" or (data.rank.is_static and len(data) == 1):
        return (1,)
    if layer.get_attributes()["transpose_a"]:
        return (0, 1)
    weights = shape_of(layer.input_value(1))
    is_one_matrix = weights is None or (len(weights) in (2, 3) and set(weights[:-2]) <= {1})
    return (0,) if is_one_matrix else (0, 1)
