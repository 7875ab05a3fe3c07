from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovlpt.graph.constants import constant, constant_above, converted, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.precisions import INT8
from ovlpt.trace import Reason

_NEAR = 2e-3  # of a scale: constants may be stored as f16


class OutputChannelScales(LayerTransformation):
    """QLinearConv of ONNX scales weights by output channels; OpenVINO reads these scales as those of input channels where
    there are as many.

    ``Convolution(x, w * s)``, s of shape [1, C, 1, 1], is what a DequantizeLinear of axis 1 says as well. That it is not
    one is seen by either of two things: the scales of the bias, in integers, are a multiple of those of the weights, and
    they are those of outputs; or neither the weights nor the layer, but what it is quantized to, has a name: every tensor
    of an ONNX file has one, so the layer is part of a single operation. Where neither is left, it stays as it is read.
    """

    quiet = True
    why = Reason(
        "scales_of_outputs", "its weights have scales for output channels, which were read as those of input channels"
    )

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convolution", "opset1.GroupConvolution"]

    def concerns(self, node: Node) -> bool:
        return (multiply := _scaled_by_inputs(node)) is not None and (
            _has_bias_of_these_scales(node, _value_of(multiply.input_value(1))) or _is_part_of_one(node, multiply)
        )

    def transform(self, node: Node) -> None:
        multiply = _scaled_by_inputs(node)
        value = multiply.input_value(1)
        _put(multiply, constant(_by_outputs(_value_of(value)), precision_of(value)))
        subtract = multiply.input_value(0).get_node()
        if subtract.get_type_name() != "Subtract" or not _is_by_inputs(subtract.input_value(1), multiply):
            return
        value = subtract.input_value(1)
        stored = precision_of(subtract.input_value(0).get_node().input_value(0))
        zero_point = constant(_by_outputs(_value_of(value)), stored)
        _put(subtract, converted(zero_point.output(0), precision_of(value)))


def _put(node: Node, values: Node) -> None:
    node.input(1).replace_source_output(values.output(0))
    node.validate_and_infer_types()


def _by_outputs(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, *[1] * (values.ndim - 1))


def _scaled_by_inputs(node: Node) -> Node | None:
    """The Multiply of a layer's stored weights by scales along axis 1, where they fit along axis 0."""
    source = node.input_value(1).get_node()
    if source.get_type_name() == "Reshape":  # into groups
        source = source.input_value(0).get_node()
    if source.get_type_name() != "Multiply" or not _is_by_inputs(source.input_value(1), source):
        return None
    stored = source.input_value(0).get_node()
    if stored.get_type_name() == "Subtract":
        stored = stored.input_value(0).get_node()
    if stored.get_type_name() != "Convert":
        return None
    weights = stored.input_value(0)
    return source if isinstance(weights.get_node(), Constant) and precision_of(weights) in INT8 else None


def _is_by_inputs(value: Output, weights: Node) -> bool:
    """Whether constants lie along axis 1 of weights that have as many outputs as inputs."""
    shape, size = shape_of(weights.output(0)), shape_of(value)
    if shape is None or len(shape) < 3 or shape[0] != shape[1] or shape[0] == 1:
        return False
    return size == (1, shape[1], *[1] * (len(shape) - 2)) and _value_of(value) is not None


def _value_of(value: Output) -> np.ndarray | None:
    """Of a constant, converted and reshaped or not."""
    if value.get_node().get_type_name() != "Reshape":
        return constant_above(value)
    found, shape = constant_above(value.get_node().input_value(0)), shape_of(value)
    return None if found is None or shape is None or None in shape else found.reshape(shape)


def _bias_of(node: Node) -> tuple[Node, Output] | None:
    """The Add after a layer, and what it adds."""
    readers = [reader for reader in readers_of(node) if reader.get_type_name() != "ShapeOf"]  # of the bias's Reshape
    if len(readers) != 1 or readers[0].get_type_name() != "Add":
        return None
    port = 1 if readers[0].input_value(0) == node.output(0) else 0
    return readers[0], readers[0].input_value(port)


def _has_bias_of_these_scales(node: Node, scales: np.ndarray) -> bool:
    """Whether the bias is stored as integers whose scales are the same multiple of each of the weights' scales."""
    if (found := _bias_of(node)) is None:
        return False
    bias = found[1].get_node()
    if bias.get_type_name() == "Reshape":
        bias = bias.input_value(0).get_node()
    if bias.get_type_name() != "Multiply" or not _is_stored_in_32_bits(bias.input_value(0).get_node()):
        return False
    given = _product(bias.input_value(1))
    if given is None or given.size != scales.size or not (given.all() and scales.all()):
        return False
    factors = given.ravel() / scales.ravel()
    return np.ptp(scales) > _NEAR * np.abs(scales).max() and np.allclose(factors, factors[0], rtol=2 * _NEAR, atol=0)


def _is_stored_in_32_bits(node: Node) -> bool:
    stored = node.input_value(0) if node.get_type_name() == "Convert" else None
    return stored is not None and isinstance(stored.get_node(), Constant) and precision_of(stored) == "i32"


def _product(value: Output) -> np.ndarray | None:
    """Of two constants, multiplied already or not."""
    node = value.get_node()
    if node.get_type_name() != "Multiply":
        return constant_above(value)
    factors = list(map(constant_above, node.input_values()))
    return None if any(each is None for each in factors) else factors[0] * factors[1]


def _is_part_of_one(node: Node, multiply: Node) -> bool:
    """Whether tensors have names, but none that lies between the stored weights and what the layer is quantized to."""
    last = found[0] if (found := _bias_of(node)) is not None else node
    inside = (multiply, node.input_value(1).get_node(), node, last)
    if any(each.output(0).get_names() for each in inside):
        return False
    below = list(readers_of(last))
    return len(below) == 1 and below[0].get_type_name() == "FakeQuantize" and any(_names_below(below[0]))


def _names_below(quantize: Node) -> Iterator[bool]:
    """Whether a FakeQuantize, or the integers that it is converted to, has a name."""
    yield bool(quantize.output(0).get_names())
    yield from (
        reader.get_type_name() == "Convert" and bool(reader.output(0).get_names()) for reader in readers_of(quantize)
    )
