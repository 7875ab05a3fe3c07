"""Convolutions."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.weights import Weights
from ovlpt.main import convolution, convolution_backprop_data, group_convolution
from ovlpt.main.weightable_layer import WeightableLayerTransformation
from ovlpt.openvino_api import Node, Output
from ovlpt.precisions import round_half_away
from ovlpt.trace import reject_unless


class _Weighted(WeightableLayerTransformation):
    def _check_weights(self, weights: Weights, found: Dequantization) -> None:
        """Data that a FakeQuantize right before it quantizes does for weights."""
        is_direct = weights.are_constant or weights.source.get_node().get_type_name() == "FakeQuantize"
        reject_unless(is_direct, "dynamic_weights", "the weights are not constant, nor quantized right before it")

    def _takes_for_channels(self, node: Node, values: np.ndarray) -> bool:
        """Constants by columns, after a MatMul; where their number is another, it throws."""
        return node.get_input_partial_shape(1).is_static and values.size == self.input_channels(node)

    def _real_less_zero_point(self, node: Node, found: Dequantization, name: str) -> Output:
        """What was converted is subtracted from before, rounded, in its own type."""
        if found.convert is None:
            return super()._real_less_zero_point(node, found, name)
        zero_point = round_half_away(found.zero_point)
        if not zero_point.any():
            return found.data
        zero_point = self._per_channel(node, zero_point, found)
        return self._minus(found.data, zero_point, found.data_precision, name, found.precision)

    def _spread(self, zero_point: np.ndarray, weights: Weights) -> np.ndarray:
        """Rank 5 is taken for groups, and no other."""
        axes, spread = self.operation.weights_axes, self._per_output(zero_point, weights)
        if axes[0] != 0:
            return spread
        kept = 2 if len(weights.shape) == 5 else 1
        if kept == 1 and len(axes) == 2:
            if (spread == spread[:, :1]).all():
                spread = spread[:, :1]
            else:  # there it throws
                kept = 2
        return np.broadcast_to(spread, weights.shape[:kept] + (1,) * (len(weights.shape) - kept))

    def _remainder(self, node: Node, found: Dequantization) -> np.ndarray | None:
        """What rounding takes off the zero point is dropped."""
        return found.zero_point if self._zero_point_is_after(node, found) else None


class ConvolutionTransformation(_Weighted, convolution.ConvolutionTransformation):
    pass


class GroupConvolutionTransformation(_Weighted, group_convolution.GroupConvolutionTransformation):
    def _doubled(self, node: Node, weights: Weights) -> Weights:
        """They stay as they are."""
        return weights


class ConvolutionBackpropDataTransformation(_Weighted, convolution_backprop_data.ConvolutionBackpropDataTransformation):
    pass
