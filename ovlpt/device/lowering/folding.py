"""Constants that are computed before the plugin does it wrongly."""

from __future__ import annotations

from ovlpt.graph.constants import constant, is_real, precision_of
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Constant, Node


def fold_float_weights(layer: Node) -> Node:
    """Integer weights of a convolution of open sizes that stays in float become real numbers.

    The plugin would restore them in layers of their own, those of 1x1 convolutions with its own LPT, too. With several
    streams the convolution then reads other numbers, no error.
    """
    data, weights = layer.input_values()[:2]
    is_open = None in (shape_of(data) or (None,))
    if not is_open or not is_real(precision_of(data)) or isinstance(weights.get_node(), Constant):
        return layer
    values = folded_constant(weights)
    if values is not None:
        folded = constant(values, precision_of(weights))
        folded.set_friendly_name(weights.get_node().get_friendly_name())
        layer.input(1).replace_source_output(folded.output(0))
    return layer
