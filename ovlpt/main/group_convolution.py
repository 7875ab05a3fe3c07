from __future__ import annotations

from dataclasses import replace

import numpy as np

from ovlpt.graph.constants import constant, values_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import Weights
from ovlpt.main.weightable_layer import WeightableLayerTransformation
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import is_scalar_like
from ovlpt.trace import reject_unless

_RANK_OF_VOLUMES = 6  # of the weights
_HALF = 63  # of the range of i8


class GroupConvolutionTransformation(WeightableLayerTransformation):
    """Weights [G, O, I, …]; the activations may have one scale per group, which then scales the group's outputs."""

    operation = OPERATIONS["GroupConvolution"]
    reads_multiply = False

    def weights(self, node: Node) -> Weights:
        return self._doubled(node, super().weights(node))

    def _doubled(self, node: Node, weights: Weights) -> Weights:
        """``w * s == 2 * w * (s / 2)``: without VNNI a CPU's kernels for volumes of i8 halve their weights, and round them."""
        is_signed = self.dequantization(node).data_precision == weights.precision == "i8"
        if len(weights.shape) != _RANK_OF_VOLUMES or not is_signed or not weights.are_constant:
            return weights
        integers = values_of(weights.integers().get_node())
        if weights.zero_point is not None or np.abs(integers.astype(np.int16)).max() > _HALF:
            return weights
        return replace(
            weights, source=constant(integers * 2, "i8").output(0), fake_quantize=None, scale=weights.scale / 2
        )

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
