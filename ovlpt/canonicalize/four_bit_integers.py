from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ovlpt.graph.constants import constant, converted, precision_of, values_of
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import stored_values
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import RELEASE, Constant, Node, Output
from ovlpt.operations.families import REARRANGES
from ovlpt.precisions import INT4
from ovlpt.trace import Reason

_READS = dict.fromkeys((*REARRANGES, "Convert"), (0,)) | dict.fromkeys(("Multiply", "Subtract"), (0, 1))
_SIGN = 8  # what i4 integers are less than u4 ones


class FourBitIntegers(LayerTransformation):
    """The CPU plugin reads stored integers of 4 bits wrongly where a MatMul sums up an odd number of them, where they pass a
    Reshape (2024.6), or their zero point is one of i4 (before 2025.4): so they are stored in 8 bits, in their shape, and both
    in u4.
    """

    quiet = True
    why = Reason("four_bits", "its integers of 4 bits would be read wrongly")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convert", "opset1.MatMul", "opset1.Subtract"]

    def concerns(self, node: Node) -> bool:
        if node.get_type_name() == "MatMul":
            return _sums_up_odd(node) and any(_is_stored(target) for target in _inputs_above(node.input(1)))
        if node.get_type_name() == "Subtract":
            return RELEASE < (2025, 4) and all(map(_is_signed, node.input_values()))
        if RELEASE >= (2025, 0):
            return False
        value = node.input_value(0)
        is_moved = precision_of(value) in INT4 and not isinstance(value.get_node(), Constant)
        return is_moved and stored_values(value) is not None

    def can_be_transformed(self, node: Node) -> None:
        """There is nothing to refuse."""

    def transform(self, node: Node) -> None:
        if node.get_type_name() == "MatMul":
            path = list(_inputs_above(node.input(1)))
            for target in filter(_is_stored, path):
                stored = target.get_source_output()
                kind = "u8" if precision_of(stored) == "u4" else "i8"
                target.replace_source_output(constant(values_of(stored.get_node()), kind).output(0))
            for target in reversed(path):
                target.get_node().validate_and_infer_types()
            return
        if node.get_type_name() == "Convert":
            value = node.input_value(0)
            node.input(0).replace_source_output(constant(stored_values(value), precision_of(value)).output(0))
            return
        for port, value in enumerate(node.input_values()):
            values = stored_values(value.get_node().input_value(0)).astype(np.int8) + _SIGN
            moved = converted(constant(values, "u4").output(0), precision_of(value))
            node.input(port).replace_source_output(moved.output(0))


def _sums_up_odd(product: Node) -> bool:
    sizes = shape_of(product.input_value(1)) or ()
    size = sizes[-1 if product.get_attributes()["transpose_b"] else -2] if len(sizes) > 1 else None
    return bool(size and size % 2)


def _inputs_above(first: Any) -> Iterator[Any]:
    """An input, and those of what computes its value from stored integers: of readers before what they read."""
    found = [first]
    while found:
        target = found.pop()
        yield target
        node = target.get_source_output().get_node()
        found += [node.input(port) for port in _READS.get(node.get_type_name(), ())]


def _is_stored(target: Any) -> bool:
    stored = target.get_source_output()
    return isinstance(stored.get_node(), Constant) and precision_of(stored) in INT4


def _is_signed(value: Output) -> bool:
    """Whether real numbers come from stored integers of i4."""
    node = value.get_node()
    if node.get_type_name() != "Convert" or precision_of(node.input_value(0)) != "i4":
        return False
    return stored_values(node.input_value(0)) is not None
