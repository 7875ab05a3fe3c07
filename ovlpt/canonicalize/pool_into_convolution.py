from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of, same_operation, values_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import has_quantized_weights
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.trace import Reason, reject_unless

_MOST_OUTPUTS = 16  # with more of them, the multiplications cost more than the pool did


class PoolIntoConvolution(LayerTransformation):
    """``conv(w, mean(x)) == conv(w / n, x)``, a 1x1 convolution after a mean over windows of n: over the windows itself.

    An integer pool rounds its means; a convolution sums the integers exactly. For layers with few outputs.
    """

    why = Reason(
        "pool", "an integer pool would round the means, and with so few outputs the layer can absorb the averaging"
    )

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convolution"]

    def concerns(self, node: Node) -> bool:
        pool, weights = node.input_value(0).get_node(), shape_of(node.input_value(1))
        return (
            pool.get_type_name() == "AvgPool"
            and len(pool.output(0).get_target_inputs()) == 1
            and _is_quantized(pool.input_value(0).get_node())
            and weights is not None
            and None not in weights
            and set(weights[2:]) == {1}
            and weights[0] <= _MOST_OUTPUTS
            and has_quantized_weights(node, (0,))
        )

    def can_be_transformed(self, node: Node) -> None:
        pool = node.input_value(0).get_node()
        for each, attributes in ((pool, pool.get_attributes()), (node, node.get_attributes())):
            padded = any((*attributes["pads_begin"], *attributes["pads_end"])) or "same" in attributes["auto_pad"]
            reject_unless(not padded, "padding", f"{each.get_type_name()} pads its data")
        attributes = pool.get_attributes()
        sizes, counts = shape_of(pool.input_value(0))[2:], shape_of(pool.output(0))[2:]
        windows = [
            None if size is None else (size - window) // stride + 1
            for size, window, stride in zip(sizes, attributes["kernel"], attributes["strides"], strict=True)
        ]
        whole = attributes["rounding_type"] == "floor" or (None not in windows and windows == list(counts))
        reject_unless(whole, "pooled_size", "its last windows are incomplete")
        dense = set(node.get_attributes()["strides"]) == {1}
        reject_unless(dense, "strides", "it reads only some of the means")
        reject_unless(_scale_port(node) is not None, "dynamic_weights", "its weights are computed in another way")

    def transform(self, node: Node) -> None:
        pool = node.input_value(0).get_node()
        attributes = pool.get_attributes()
        window, source = attributes["kernel"], node.input_value(1).get_node()
        integers = _rebuilt(source.input_value(0), window)
        scaled = [_divided(value, int(np.prod(window))) for value in source.input_values()[_scale_port(node) :]]
        weights = same_operation(source, [integers, *source.input_values()[1 : _scale_port(node)], *scaled])
        weights.set_friendly_name(source.get_friendly_name())
        nothing, ones = [0] * len(window), [1] * len(window)
        layer = opset1.convolution(pool.input_value(0), weights, attributes["strides"], nothing, nothing, ones)
        layer.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), layer.output(0))


def _is_quantized(node: Node) -> bool:
    """Whether it is a FakeQuantize of one interval."""
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    return details is not None and all(end.size == 1 for end in details.intervals)


def _scale_port(node: Node) -> int | None:
    """The first input of what makes real weights, a FakeQuantize or a Multiply, that scales them; None for others."""
    source = node.input_value(1).get_node()
    first = {"FakeQuantize": 3, "Multiply": 1}.get(source.get_type_name())
    if first is None or not all(isinstance(value.get_node(), Constant) for value in source.input_values()[first:]):
        return None
    stored = source.input_value(0).get_node()
    while stored.get_type_name() in ("Convert", "Subtract"):
        stored = stored.input_value(0).get_node()
    return (
        first
        if isinstance(stored, Constant) and len(shape_of(stored.output(0))) == len(shape_of(node.input_value(1)))
        else None
    )


def _rebuilt(value: Output, window: list[int]) -> Output:
    """The stored weights, once for each place of the window."""
    node = value.get_node()
    if isinstance(node, Constant):
        repeated = np.tile(values_of(node), (1, 1, *window))
        return constant(repeated, precision_of(value)).output(0)
    return same_operation(node, [_rebuilt(node.input_value(0), window), *node.input_values()[1:]]).output(0)


def _divided(value: Output, count: int) -> Output:
    return constant(values_of(value.get_node()) / np.float32(count), precision_of(value)).output(0)
