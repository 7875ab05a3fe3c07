from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Node
from ovlpt.prerequisites.pull_through_dequantization import PullThroughDequantization


class PullTransposeThroughDequantization(PullThroughDequantization):
    """Weights are stored in the order in which they are read."""

    move = "Transpose"

    def moved_data(self, values: np.ndarray, node: Node) -> np.ndarray:
        return np.ascontiguousarray(values.transpose(_order(node, values.ndim)))

    def moved(self, values: np.ndarray, node: Node) -> np.ndarray | None:
        rank = len(node.get_output_shape(0))
        if values.ndim == 0:
            return values.reshape((1,) * rank)
        values = self._with_rank(values, rank)
        return values.transpose(_order(node, rank)) if values.ndim == rank else None

    def _with_rank(self, values: np.ndarray, rank: int) -> np.ndarray:
        return values.reshape((1,) * (rank - values.ndim) + values.shape) if values.ndim < rank else values


def _order(node: Node, rank: int) -> list[int]:
    order = node.input_value(1).get_node().data.reshape(-1).tolist()
    return order or list(reversed(range(rank)))
