from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, same_operation
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.operations.families import CONVOLUTIONS, RESHAPES
from ovlpt.trace import Reason, reject_unless


class ReshapesBeforeFakeQuantize(LayerTransformation):
    """``reshape(FQ(reshape(x))) == FQ(reshape(x))`` where FQ has one interval for the whole tensor.

    Common optimizations put a FakeQuantize before the Transpose of an image of one channel, which is a Reshape. After a
    Reshape that is there already, it costs nothing; between integers and a convolution, it is a layer, and in bf16 two.
    """

    quiet = True  # a FakeQuantize between two Reshapes is none the worse for it
    why = Reason("reshapes_first", "two Reshapes of floats are one, where one of integers is a layer of its own")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Reshape", "opset1.Squeeze", "opset1.Unsqueeze"]

    def concerns(self, node: Node) -> bool:
        quantize = node.input_value(0).get_node()
        if quantize.get_type_name() != "FakeQuantize" or len(readers_of(quantize)) > 1:
            return False
        if not all(reader.get_type_name() in CONVOLUTIONS for reader in readers_of(node)):
            return False  # before a Transpose, it is a part of what the plugin takes for a shuffle of channels
        first = quantize.input_value(0).get_node()
        return first.get_type_name() in RESHAPES and not is_constant_path(first)

    def can_be_transformed(self, node: Node) -> None:
        quantize = node.input_value(0).get_node()
        details, first = QuantizationDetails.of(quantize), quantize.input_value(0).get_node()
        reject_unless(details is not None, "dynamic_intervals", "a bound of the intervals is not a constant")
        reject_unless(details.is_by_tensor, "per_channel", "its intervals differ by channel")
        reject_unless(len(readers_of(first)) == 1, "shared", "others read the first Reshape")
        shape = node.get_output_partial_shape(0)
        is_one_open = shape.rank.is_static and sum(size.is_dynamic for size in shape) <= 1
        reject_unless(is_one_open, "dynamic_shape", "more than one of its sizes is open")

    def transform(self, node: Node) -> None:
        quantize = node.input_value(0).get_node()
        first = quantize.input_value(0).get_node()
        sizes = [-1 if size.is_dynamic else size.get_length() for size in node.get_output_partial_shape(0)]
        reshape = opset1.reshape(first.input_value(0), constant(np.array(sizes), "i64"), False)
        reshape.set_friendly_name(node.get_friendly_name())
        ends = [constant(end.reshape(())).output(0) for end in QuantizationDetails.of(quantize).intervals]
        moved = same_operation(quantize, [reshape.output(0), *ends])
        moved.set_friendly_name(quantize.get_friendly_name())
        replace_output(node.output(0), moved.output(0))
