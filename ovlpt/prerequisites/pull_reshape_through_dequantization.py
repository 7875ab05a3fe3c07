from __future__ import annotations

import numpy as np

from ovlpt.graph.consumers import targets_of
from ovlpt.openvino_api import Node
from ovlpt.prerequisites.pull_through_dequantization import PullThroughDequantization
from ovlpt.trace import reject_unless


class PullReshapeThroughDequantization(PullThroughDequantization):
    """Weights are stored in the shape in which they are read; those of a GroupConvolution keep their Reshape."""

    move = "Reshape"

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        consumer = targets_of(node.output(0))[0].get_node().get_type_name()
        reject_unless(
            consumer != "GroupConvolution",
            "grouped_weights",
            "the Reshape makes the groups of a GroupConvolution",
        )

    def moved_data(self, values: np.ndarray, node: Node) -> np.ndarray:
        return values.reshape(node.get_output_shape(0))

    def moved(self, values: np.ndarray, node: Node) -> np.ndarray | None:
        if values.size == 1:
            return values.reshape(())
        before, after = tuple(node.get_input_shape(0)), tuple(node.get_output_shape(0))
        return self._reshaped(values, before, after)

    def _reshaped(self, values: np.ndarray, before: tuple[int, ...], after: tuple[int, ...]) -> np.ndarray | None:
        return reshaped_with(values, before, after)


def reshaped_with(values: np.ndarray, before: tuple[int, ...], after: tuple[int, ...]) -> np.ndarray | None:
    """A constant that broadcasts against data of one shape, for the data in another; None where there is none."""
    aligned = (1,) * (len(before) - values.ndim) + values.shape
    shape: list[int] = []
    for old, new in _groups(before, after):
        sizes = aligned[old]
        if all(size == 1 for size in sizes):
            shape += [1] * len(after[new])
        elif sizes == before[old]:
            shape += after[new]
        else:
            return None
    return values.reshape(shape)


def _groups(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """The shortest runs of axes with equal products; axes of size 1 at the end belong to the last run."""
    groups, old, new = [], 0, 0
    while old < len(before) and new < len(after):
        i, j, one, other = old + 1, new + 1, before[old], after[new]
        while one != other:
            if one < other:
                one, i = one * before[i], i + 1
            else:
                other, j = other * after[j], j + 1
        groups.append((slice(old, i), slice(new, j)))
        old, new = i, j
    if old < len(before) or new < len(after):
        groups.append((slice(old, len(before)), slice(new, len(after))))
    return groups
