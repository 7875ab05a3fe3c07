from __future__ import annotations

import numpy as np

from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.shapes import shape_of
from ovlpt.main.weightable_layer import WeightableLayerTransformation
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import is_scalar_like
from ovlpt.trace import reject_unless


class GroupConvolutionTransformation(WeightableLayerTransformation):
    """Weights [G, O, I, …]; the activations may have one scale per group, which then scales the group's outputs."""

    operation = OPERATIONS["GroupConvolution"]
    reads_multiply = False

    def input_channels(self, node: Node) -> int:
        groups, _, channels, *_ = shape_of(node.input_value(1))
        return groups * channels

    def check_activations(self, node: Node, found: Dequantization) -> None:
        if is_scalar_like(found.scale):
            return
        groups = node.get_input_partial_shape(1)[0]
        reject_unless(groups.is_static, "dynamic_weights", "the number of groups is not known")
        groups = groups.get_length()
        if groups == 1:
            super().check_activations(node, found)
        reject_unless(
            found.scale.size % groups == 0,
            "scale_shape",
            f"{found.scale.size} scales do not divide into {groups} groups",
        )
        per_group = found.scale.reshape(groups, -1)
        reject_unless(
            (per_group == per_group[:, :1]).all(),
            "per_channel_activations",
            "the scale differs between channels of one group, and they are summed",
        )

    def _activation_scale(self, node: Node, found: Dequantization) -> np.ndarray:
        if is_scalar_like(found.scale):
            return super()._activation_scale(node, found)
        groups, outputs, *_ = shape_of(node.input_value(1))
        return np.repeat(found.scale.reshape(groups, -1)[:, 0], outputs)
