"""The same model in a form that the native library takes."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above, precision_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Model, Node, opset1
from ovlpt.precisions import FLOAT8
from tools.fuzz.operations import create

_DEQUANTIZES = ("Convert", "FakeQuantize", "Multiply", "Subtract")


def spelled_out(model: Model) -> Model | None:
    """A copy in which weights of groups have a scale for each output and no zero point, and a FakeConvert stands for each pair of
    Converts that rounds to 8 bits of floating point; None where there is nothing of it.
    """
    model = model.clone()
    kinds = {"Convert": _round_by_one, "GroupConvolution": _plain_weights}
    changes = [kinds[node.get_type_name()](node) for node in model.get_ordered_ops() if node.get_type_name() in kinds]
    model.validate_nodes_and_infer_types()
    return model if any(changes) else None


def _plain_weights(layer: Node) -> bool:
    groups, outputs = layer.get_input_shape(1)[:2]
    value, changed = layer.input_value(1), False
    while (node := value.get_node()).get_type_name() in _DEQUANTIZES:
        changed |= node.get_type_name() == "Subtract" and _subtracted(node)
        for port in range(1, node.get_input_size()):
            changed |= outputs > 1 and _repeat(node, port, groups, outputs)
        value = node.input_value(0)
    return changed


def _subtracted(subtract: Node) -> bool:
    stored, zero_point = map(constant_above, subtract.input_values())
    if stored is None or zero_point is None:
        return False
    values = stored - zero_point
    if not np.array_equal(values, values.astype(np.int8)):
        return False
    plain = opset1.convert(constant(values, "i8"), precision_of(subtract.output(0)))
    replace_output(subtract.output(0), plain.output(0))
    return True


def _repeat(node: Node, port: int, groups: int, outputs: int) -> bool:
    values = constant_above(node.input_value(port))
    if values is None or values.ndim < 2 or values.shape[:2] != (groups, 1):
        return False
    repeated = np.repeat(values, outputs, 1)
    node.input(port).replace_source_output(constant(repeated, precision_of(node.input_value(port))).output(0))
    return True


def _round_by_one(convert: Node) -> bool:
    rounded = convert.input_value(0)
    if precision_of(rounded) not in FLOAT8 or rounded.get_node().get_type_name() != "Convert":
        return False
    data = rounded.get_node().input_value(0)
    if precision_of(data) != precision_of(convert.output(0)):
        return False
    one = constant(np.float32(1), precision_of(data))
    fake = create("opset13", "FakeConvert", [data, one], destination_type=precision_of(rounded))
    fake.set_friendly_name(convert.get_friendly_name())
    replace_output(convert.output(0), fake.output(0))
    return True
