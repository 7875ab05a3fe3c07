"""Variables of language models."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.openvino_api import RELEASE, Model, Node, opset1
from ovlpt.precisions import INT8

_WHOLE = "ScaledDotProductAttention"


def keep_products_together(model: Model) -> list[Node]:
    """Where variables store a Concat of what they stored before and of new data, the plugin assumes that the model's
    attentions are ScaledDotProductAttention operations, and fuses the MatMuls of no other attention into one layer. A
    FakeQuantize before the Concat prevented that; with integers in the variable there is none. So a Reshape that
    changes nothing stands before the Assign. Not where the model has such an operation, since the assumption then
    holds, nor before OpenVINO 2025.

    Without it a token of a long sequence in f32 takes less time, and its prompt and those of short sequences more.
    """
    caches = [sink for sink in model.get_sinks() if _is_cache(sink)]
    if not caches or RELEASE < (2025, 0) or any(node.get_type_name() == _WHOLE for node in model.get_ops()):
        return []
    for assign in caches:
        concat = assign.input_value(0)
        sizes = np.zeros(concat.get_partial_shape().rank.get_length(), np.int64)  # as they are
        sizes[concat.get_node().get_attributes()["axis"]] = -1  # with zeros only it would be left out
        same = opset1.reshape(concat, constant(sizes, "i64"), True)
        same.set_friendly_name(made_for(assign.get_friendly_name(), Made.ALONE))
        assign.input(0).replace_source_output(same.output(0))
    return caches


def _is_cache(sink: Node) -> bool:
    if precision_of(sink.input_value(0)) not in INT8:
        return False
    if sink.get_type_name() != "Assign" or sink.input_value(0).get_node().get_type_name() != "Concat":
        return False
    variable = sink.get_attributes()["variable_id"]
    past = [_before(value.get_node()) for value in sink.input_value(0).get_node().input_values()]
    return any(
        node.get_type_name() == "ReadValue" and node.get_attributes()["variable_id"] == variable for node in past
    )


def _before(node: Node) -> Node:
    """What beams choose from, or what is converted."""
    while node.get_type_name() in ("Convert", "Gather"):
        node = node.input_value(0).get_node()
    return node
