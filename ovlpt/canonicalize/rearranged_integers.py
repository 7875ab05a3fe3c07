from __future__ import annotations

from ovlpt.graph.constants import constant_above, is_constant_path, precision_of, same_operation
from ovlpt.graph.consumers import readers_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.operations.families import AFFINE, REARRANGES
from ovlpt.precisions import INT8, REAL
from ovlpt.trace import Reason, reject_unless


class RearrangedIntegers(LayerTransformation):
    """``transpose(float(x)) == float(transpose(x))``, for integers x that are dequantized after it.

    A dequantization begins with the Convert; common optimizations move Transposes past it, and the layers that follow would
    read floats.
    """

    quiet = True  # what reads the data says more
    why = Reason("rearranged_integers", "integers are rearranged before they are converted: what follows can read them")

    @classmethod
    def type_names(cls) -> list[str]:
        return [f"opset1.{kind}" for kind in sorted(REARRANGES)]

    def concerns(self, node: Node) -> bool:
        convert = node.input_value(0).get_node()
        is_of_integers = convert.get_type_name() == "Convert" and precision_of(convert.input_value(0)) in INT8
        return is_of_integers and precision_of(node.output(0)) in REAL and not is_constant_path(convert)

    def can_be_transformed(self, node: Node) -> None:
        alone = len(readers_of(node.input_value(0).get_node())) == 1
        reject_unless(alone, "shared", "others read the converted integers")
        reject_unless(_feeds_layer(node), "no_weights", "no layer with weights reads what is dequantized")

    def transform(self, node: Node) -> None:
        convert = node.input_value(0).get_node()
        moved = same_operation(node, [convert.input_value(0), *node.input_values()[1:]])
        back = opset1.convert(moved, precision_of(node.output(0)))
        moved.set_friendly_name(convert.get_friendly_name())
        back.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), back.output(0))


def _feeds_layer(node: Node) -> bool:
    """Whether a scale or zero point follows, and then a layer with weights, which can read integers."""
    scaled = [reader for reader in readers_of(node) if _is_affine(reader)]
    while scaled:
        reader = scaled.pop()
        for each in readers_of(reader):
            if _is_affine(each):
                scaled.append(each)
            elif _is_weighted(each) and is_constant_path(each.input_value(1).get_node()):
                return True
    return False


def _is_weighted(node: Node) -> bool:
    row = OPERATIONS.get(node.get_type_name())
    return row is not None and row.kind == "weighted"


def _is_affine(node: Node) -> bool:
    return node.get_type_name() in AFFINE and constant_above(node.input_value(1)) is not None
