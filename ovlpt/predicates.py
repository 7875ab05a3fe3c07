"""Questions about a node or a model, for callbacks and plugins; none of them changes the graph.

Each mirrors the native function of the same name.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ovlpt.attributes import Bias, Precisions, current_attributes
from ovlpt.graph.bodies import bodies_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.dequantization import dequantization_above, read_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.weights import read_weights, rounded_zero_point
from ovlpt.openvino_api import Constant, Model, Node
from ovlpt.operations import OPERATIONS
from ovlpt.operations.families import CONVOLUTIONS
from ovlpt.precisions import ALL_LEVELS, INT8
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
        weights = read_weights(
            node, row.weights_axes, required.value if required else default_precisions, default_precisions
        )
    except Rejected:
        return False
    return rounded_zero_point(weights.zero_point, weights.precision) is not None


def marked_as_bias(node: Node) -> bool:
    """Whether markup found the Add to be a bias."""
    return current_attributes.get().get(node, Bias) is not None


def can_be_transformed_to_group_convolution(node: Node) -> bool:
    """Whether a Multiply by a Constant could be a depthwise convolution: its rank is 4 or 5."""
    constants = [value for value in node.input_values() if isinstance(value.get_node(), Constant)]
    rank = node.get_output_partial_shape(0).rank
    return len(constants) == 1 and rank.is_static and rank.get_length() in (4, 5)


def is_dynamic_or_scalar(node: Node) -> bool:
    """Whether the constant of an elementwise node has one value, or a shape that is not known; False without one."""
    constant = next((value for value in node.input_values() if isinstance(value.get_node(), Constant)), None)
    if constant is None:
        return False
    shape = constant.get_partial_shape()
    return shape.is_dynamic or all(size == 1 for size in shape.to_shape())


def are_quantize_and_dequantize_supported_for_multiply(node: Node, default_precisions: Sequence[str] = INT8) -> bool:
    """Whether LPT itself takes the Q/DQ pair that ends in this Multiply.

    Its data is constant, or a supported FakeQuantize after a Convert. A common optimization that would turn the pair into one FakeQuantize is then not needed.
    """
    found = read_dequantization(node.output(0), default_precisions)
    if found.empty:
        return False
    source = found.data.get_node()
    return isinstance(source, Constant) or (
        source.get_type_name() == "Convert" and _is_supported(source.input_value(0).get_node())
    )


def are_quantize_and_dequantize_supported_for_subtract(node: Node, default_precisions: Sequence[str] = INT8) -> bool:
    """As `are_quantize_and_dequantize_supported_for_multiply`, for the Subtract that such a Multiply alone reads."""
    consumers = readers_of(node)
    return len(consumers) == 1 and are_quantize_and_dequantize_supported_for_multiply(consumers[0], default_precisions)


def _is_supported(node: Node) -> bool:
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    return details is not None and details.is_supported


def is_function_quantized(model: Model, levels: Container[int] = ALL_LEVELS) -> bool:
    """Whether the model, or a body of its If, Loop or TensorIterator, has a FakeQuantize of one of these levels.

    Its interval ends are constants, maybe after a Convert. Inside bodies all levels that LPT knows count.
    """
    return any(
        _has_constant_ends(node) and node.get_attributes()["levels"] in levels
        if node.get_type_name() == "FakeQuantize"
        else any(is_function_quantized(body) for body in bodies_of(node))
        for node in model.get_ops()
    )


def _has_constant_ends(quantize: Node) -> bool:
    ends = (value.get_node() for value in list(quantize.input_values())[1:])
    return all(
        isinstance(end, Constant)
        or (end.get_type_name() == "Convert" and isinstance(end.input_value(0).get_node(), Constant))
        for end in ends
    )


def is_decompression_multiply(node: Node) -> bool:
    """Whether a Multiply (or the Subtract before it) restores weights that a Convolution or MatMul reads.

    Plugins keep such weights small: what restores them is not folded.
    """
    if node.get_type_name() == "Subtract":
        consumers = readers_of(node)
        return bool(consumers) and all(
            consumer.get_type_name() == "Multiply" and is_decompression_multiply(consumer) for consumer in consumers
        )
    return node.get_type_name() == "Multiply" and _feeds_only_weights(node)


def _feeds_only_weights(node: Node) -> bool:
    pending = [node]
    while pending:
        consumers = readers_of(pending.pop())
        moved = [consumer for consumer in consumers if consumer.get_type_name() in ("Reshape", "Convert")]
        weighted = [each for each in consumers if each.get_type_name() in CONVOLUTIONS | {"MatMul"}]
        if not consumers or len(moved) + len(weighted) < len(consumers):
            return False
        pending += moved
    return True
