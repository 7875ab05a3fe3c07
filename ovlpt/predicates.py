"""Questions about a node for callbacks; none of them changes the graph.

Each mirrors the native function of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovlpt.attributes import Bias, Precisions, current_attributes
from ovlpt.graph.dequantization import dequantization_above
from ovlpt.graph.weights import read_weights, rounded_zero_point
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8
from ovlpt.trace import Rejected


def is_asymmetric_quantization(node: Node, default_precisions: Sequence[str] = INT8) -> bool:
    """Whether the activations (input 0) have a zero point."""
    return dequantization_above(node, 0, default_precisions).subtract is not None


def is_asymmetric_on_weights(node: Node, default_precisions: Sequence[str] = INT8) -> bool:
    """Whether the weights of a convolution keep a zero point once it is rounded to an integer."""
    row = OPERATIONS.get(node.get_type_name())
    if row is None or not row.weights_axes:
        return False
    required = current_attributes.get().get(node.input(1), Precisions)
    try:
        weights = read_weights(node, row.weights_axes, required.value if required else default_precisions, default_precisions)
    except Rejected:
        return False
    return rounded_zero_point(weights.zero_point, weights.precision) is not None


def marked_as_bias(node: Node) -> bool:
    """Whether markup found the Add to be a bias."""
    return current_attributes.get().get(node, Bias) is not None


def is_decompression_multiply(node: Node) -> bool:
    """Whether a Multiply (or the Subtract before it) restores weights that a Convolution or MatMul reads.

    Plugins keep such weights small: what restores them is not folded.
    """
    if node.get_type_name() == "Subtract":
        consumers = [target.get_node() for target in node.output(0).get_target_inputs()]
        return bool(consumers) and all(
            consumer.get_type_name() == "Multiply" and is_decompression_multiply(consumer) for consumer in consumers
        )
    return node.get_type_name() == "Multiply" and _feeds_only_weights(node)


def _feeds_only_weights(node: Node) -> bool:
    consumers = [target.get_node() for target in node.output(0).get_target_inputs()]
    return bool(consumers) and all(
        consumer.get_type_name() in ("Convolution", "GroupConvolution", "MatMul")
        or (consumer.get_type_name() in ("Reshape", "Convert") and _feeds_only_weights(consumer))
        for consumer in consumers
    )
