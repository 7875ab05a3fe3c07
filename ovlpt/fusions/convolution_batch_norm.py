"""Convolution, transposed convolution or MatMul + BatchNormInference."""

from __future__ import annotations

from ovlpt.fusions.channelwise import (
    BATCH_NORM,
    Path,
    affine_of,
    batch_norm_inputs,
    on_axis,
    path_above,
    rank_of,
    set_operand,
)
from ovlpt.fusions.fusion import Fusion, forget_names, take_over
from ovlpt.fusions.weights import factor_for, output_channel_axis, scaled_weights
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.names import made_for
from ovlpt.layer_transformation import consumers_of
from ovlpt.openvino_api import Node, opset1
from ovlpt.trace import reject_unless

_BIAS = frozenset(("Add",))


class ConvolutionBatchNormFusion(Fusion):
    """``(W x + b) * k + s == (k W) x + (b k + s)`` with ``k = gamma / sqrt(variance + epsilon)``, ``s = beta
    - mean k``.

    Transposes and biases may lie between the operation and its normalization; they stay where they are.
    """

    operations = BATCH_NORM

    def path(self, node: Node) -> Path | None:
        return path_above(batch_norm_inputs(node)["data"], output_channel_axis, _BIAS)

    def can_be_transformed(self, node: Node) -> None:
        path = self.path(node)
        source = batch_norm_inputs(node)["data"].get_node()
        reject_unless(
            path is not None,
            "no_weights",
            f"the data comes from {source.get_type_name()}, which has no constant weights to absorb the factor",
        )
        path.check_unshared()
        reject_unless(path.last_axis == 1, "other_axis", f"the output channels lie on axis {path.last_axis}, not on 1")
        affine_of(node, 1)
        for bias, axis in path.with_axes():
            if bias.get_type_name() == "Add":
                affine_of(bias, axis)

    def transform(self, node: Node) -> None:
        path, affine = self.path(node), affine_of(node, 1)
        source = path.source
        weights = scaled_weights(source.input_value(1), factor_for(source, affine.scale))
        biases = [(bias, axis) for bias, axis in path.with_axes() if bias.get_type_name() == "Add"]
        scaled = [affine_of(bias, axis).offset * affine.scale for bias, axis in biases]
        if biases:
            scaled[-1] = scaled[-1] + affine.offset
        source.input(1).replace_source_output(weights)
        for touched in (source, *path.nodes):
            forget_names(touched.output(0))
        for (bias, axis), values in zip(biases, scaled, strict=True):
            set_operand(bias, values, axis)
        if not biases and affine.offset.any():
            add_bias(source, path.axis, affine.offset)
        take_over(node.output(0), batch_norm_inputs(node)["data"])


def add_bias(source: Node, axis: int, values) -> Node:
    """Put an Add of one value a channel after ``source``."""
    value = source.output(0)
    readers = consumers_of(value)
    bias = opset1.add(value, constant(on_axis(values, rank_of(value), axis), precision_of(value)))
    bias.set_friendly_name(made_for(source.get_friendly_name(), "bias"))
    for reader in readers:
        reader.replace_source_output(bias.output(0))
    return bias
