import numpy as np

from ovlpt.graph.dequantization import Dequantization
from ovlpt.main.weightable_layer import WeightableLayerTransformation
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import to_scalar_if_possible


class ConvolutionBackpropDataTransformation(WeightableLayerTransformation):
    """Weights [I, O, …]: the output channels are the second axis."""

    operation = OPERATIONS["ConvolutionBackpropData"]

    def _per_channel(self, node: Node, zero_point: np.ndarray, found: Dequantization) -> np.ndarray:
        # as the native library: equal values become one, but where the data is in real numbers
        return to_scalar_if_possible(zero_point) if found.is_low_precision else zero_point
