"""The float network that a quantized one was made from, and the quantized one in float arithmetic."""

from __future__ import annotations

from ovlpt.graph.constants import constant, is_real, precision_of, values_of
from ovlpt.openvino_api import Constant, Model


def without_fake_quantize(model: Model) -> Model:
    """A clone whose activations are not quantized: each FakeQuantize is bypassed. Weights keep their quantized
    values.
    """
    clone = model.clone()
    for node in clone.get_ordered_ops():
        if node.get_type_name() == "FakeQuantize":
            node.output(0).replace(node.input_value(0))
    clone.validate_nodes_and_infer_types()
    return clone


def with_float_constants(model: Model) -> Model:
    """A clone whose integer weights are stored as the real numbers that they are converted to.

    The CPU plugin of 2024.6, with its LPT off, reads small i8 weights of a MatMul wrongly.
    """
    clone = model.clone()
    for node in clone.get_ordered_ops():
        if node.get_type_name() == "Convert" and is_real(precision_of(node.output(0))):
            source = node.input_value(0).get_node()
            if isinstance(source, Constant) and not is_real(precision_of(source.output(0))):
                node.output(0).replace(constant(values_of(source), precision_of(node.output(0))).output(0))
    return clone
