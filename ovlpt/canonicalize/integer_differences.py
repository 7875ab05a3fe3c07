from __future__ import annotations

from ovlpt.graph.constants import constant_above, converted, is_real, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.precisions import INT8
from ovlpt.trace import Reason


class IntegerDifferences(LayerTransformation):
    """``Convert(q - z) * s``, q and z integers of 8 bits: ``(Convert(q) - Convert(z)) * s``.

    So OpenVINO 2026.1 reads what QLinearAdd, QLinearMul and QLinearConcat of ONNX Runtime dequantize. A difference of such
    integers ends at those of the type, for u8 at 0 wherever q is below the zero point, or wraps around; that of a dequantization
    does neither.
    """

    quiet = True
    why = Reason("stored_integers", "it subtracts the zero point in 8 bits, and would lose what is below it")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Subtract"]

    def concerns(self, node: Node) -> bool:
        return precision_of(node.output(0)) in INT8 and constant_above(node.input_value(1)) is not None

    def has_form(self, node: Node) -> bool:
        readers = readers_of(node)
        return bool(readers) and all(map(_is_scaled, readers))

    def transform(self, node: Node) -> None:
        for convert in readers_of(node):
            precision = precision_of(convert.output(0))
            difference = opset1.subtract(*(converted(value, precision) for value in node.input_values()))
            difference.set_friendly_name(convert.get_friendly_name())
            replace_output(convert.output(0), difference.output(0))


def _is_scaled(convert: Node) -> bool:
    """Whether it gives real numbers, which are multiplied by constants and read by nothing else."""
    if convert.get_type_name() != "Convert" or not is_real(precision_of(convert.output(0))):
        return False
    readers = readers_of(convert)
    return bool(readers) and all(
        reader.get_type_name() == "Multiply"
        and any(constant_above(value) is not None for value in reader.input_values())
        for reader in readers
    )
