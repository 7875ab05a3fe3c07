"""Which normalizations plugins execute as one kernel."""

from __future__ import annotations

from ovlpt.openvino_api import Constant, Node


def has_kernel(node: Node) -> bool:
    """Whether the axes of an MVN-6 are all from the first or the second behind the batch to the last, at rank 5 at most.

    Source: the CPU plugin's ``MVN::isSupportedOperation``; other normalizations are decomposed before LPT.
    """
    rank, axes = node.get_input_partial_shape(0).rank, node.input_value(1).get_node()
    if rank.is_dynamic or not isinstance(axes, Constant):
        return False
    rank = rank.get_length()
    normalized = sorted(int(axis) % rank for axis in axes.data.reshape(-1))
    if rank == 1:
        return normalized == [0]
    return rank <= 5 and normalized in ([*range(1, rank)], [*range(2, rank)])
