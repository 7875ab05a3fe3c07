"""Recurrent layers, which the plugin quantizes only while its own LPT is on."""

from __future__ import annotations

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.recurrent import RECURRENT
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import Constant, Model, Node


def fold_recurrent_weights(node: Node) -> None:
    """With the plugin's own LPT off no quantized recurrent layer is formed: its weights are folded, and it runs in float."""
    for port in RECURRENT.get(node.get_type_name(), ()):
        value = node.input_value(port)
        folded = None if isinstance(value.get_node(), Constant) else folded_constant(value)
        if folded is not None:
            node.input(port).replace_source_output(constant(folded, precision_of(value)).output(0))


def has_quantized_recurrence(model: Model) -> bool:
    """Whether a recurrent layer reads dequantized integer weights."""
    return any(
        not isinstance(node.input_value(port).get_node(), Constant)
        for node in all_nodes(model)
        for port in RECURRENT.get(node.get_type_name(), ())
    )
