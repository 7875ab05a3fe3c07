from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ovlpt.graph.constants import constant, constant_above, precision_of
from ovlpt.graph.consumers import consumers_of, readers_of
from ovlpt.graph.copies import copied_data
from ovlpt.graph.dequantization import Dequantization, dequantizations_below, write_dequantization
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, Output
from ovlpt.precisions import INT8
from ovlpt.trace import Reason


@dataclass(frozen=True)
class _Moved:
    """What copies the stored integers, each operation after what it reads, the dequantizations after them, and the zeros that
    are put around them.
    """

    moves: list[Node]
    ends: list[Dequantization]
    zeros: list[Any]


class DequantizationBeforeMoves(LayerTransformation):
    """``FakeQuantize → Convert (to integers) → MaxPool → Convert → Subtract → Multiply``: dequantized before the MaxPool, and before
    what else only copies values.

    ONNX allows any operation on 8-bit integers between QuantizeLinear and DequantizeLinear, and ONNX Runtime writes its
    format QOperator so. What is not dequantized next to its quantization stays what it is: layers in float, where the integers
    are i8 with a zero point, or are transposed, with the plugin's own LPT, too. Each scale is one positive number, so that the
    largest integer is the largest value.
    """

    quiet = True
    why = Reason("stored_integers", "it moves integers between the two halves of a quantization")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convert"]

    def concerns(self, node: Node) -> bool:
        return (
            precision_of(node.output(0)) in INT8
            and node.input_value(0).get_node().get_type_name() == "FakeQuantize"
            and any(copied_data(reader) for reader in readers_of(node))
        )

    def has_form(self, node: Node) -> bool:
        return _moved(node) is not None

    def transform(self, node: Node) -> None:
        stored, found = node.output(0), _moved(node)
        targets = [target for target in consumers_of(stored) if target.get_node().get_type_name() != "Convert"]
        value, name = _dequantized(stored, found.ends[0]), node.get_friendly_name()
        node.set_friendly_name(f"{name}/Integers")
        value.get_node().set_friendly_name(name)  # which it has in the file
        for target in targets:
            target.replace_source_output(value)
        for zero in found.zeros:
            shape = constant_above(zero.get_source_output()).shape
            zero.replace_source_output(constant(np.zeros(shape, np.float32), precision_of(value)).output(0))
        for move in found.moves:
            move.validate_and_infer_types()
        for end in found.ends:
            replace_output(end.output, value if end.data == stored else end.data)


def _moved(node: Node) -> _Moved | None:
    """What is after the integers that ``node`` stores; None where other than equal dequantizations read them."""
    found, pending = _Moved([], [], []), [node.output(0)]
    while pending:
        value = pending.pop()
        for target in consumers_of(value):
            reader = target.get_node()
            if reader.get_type_name() == "Convert":
                found.ends.extend(dequantizations_below(reader))
            elif target.get_source_output() in (data := copied_data(reader)):
                found.moves.append(reader)
                found.zeros.extend(
                    each for each in reader.inputs() if (read := each.get_source_output()) in data and read != value
                )
                pending += [each for each in reader.outputs() if precision_of(each) in INT8]
            else:
                return None
    if not found.ends or not all(map(_is_per_tensor, found.ends)):
        return None
    (zero_point, *_), *others = {_numbers(end) for end in found.ends}
    is_lost = precision_of(node.output(0)) == "i8" and zero_point and found.moves
    if not is_lost and all(move.get_type_name() != "Transpose" for move in found.moves):
        return None  # layers read such integers, and zeros in reals around others have a scale of their own
    given = [constant_above(each.get_source_output()) for each in found.zeros]
    is_zero = all(values is not None and (values == zero_point).all() for values in given)
    return found if is_zero and not others else None


def _is_per_tensor(found: Dequantization) -> bool:
    return found.multiply is not None and found.is_per_tensor and bool((found.scale > 0).all())


def _numbers(found: Dequantization) -> tuple[float, float, str]:
    zero_point = 0.0 if found.zero_point is None else float(found.zero_point.reshape(()))
    return zero_point, float(found.scale.reshape(())), precision_of(found.output)


def _dequantized(integers: Output, like: Dequantization) -> Output:
    return write_dequantization(
        integers,
        integers.get_node().get_friendly_name(),
        like.scale.reshape(()),
        None if like.zero_point is None else like.zero_point.reshape(()),
        precision_of(like.output),
        zero_point_precision=like.zero_point_precision,
    )[0]
