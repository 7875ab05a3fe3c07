"""Which normalizations plugins execute as one kernel."""

from __future__ import annotations

from ovlpt.openvino_api import Constant, Node


def spans_whole_channels(node: Node) -> bool:
    """Whether the axes of an MVN-6 are all from the first or the second after the batch to the last, at rank 5 at most.

    Source: the CPU plugin's ``MVN::isSupportedOperation``; it decomposes other normalizations before LPT.
    """
    rank, axes = _rank_and_axes(node)
    if rank == 1:
        return axes == [0]
    return axes is not None and rank <= 5 and axes in ([*range(1, rank)], [*range(2, rank)])


def spans_last_axes(node: Node) -> bool:
    """Whether the axes of an MVN-6 are the last ones, however many, at a rank of 2 to 5: what the GPU plugin executes."""
    rank, axes = _rank_and_axes(node)
    return axes is not None and 2 <= rank <= 5 and axes == [*range(rank - len(axes), rank)]


def _rank_and_axes(node: Node) -> tuple[int, list[int] | None]:
    """The axes in rising order; None where they or the rank are not known."""
    rank, axes = node.get_input_partial_shape(0).rank, node.input_value(1).get_node()
    if rank.is_dynamic or not isinstance(axes, Constant):
        return 0, None
    rank = rank.get_length()
    return rank, sorted(int(axis) % rank for axis in axes.data.reshape(-1))
