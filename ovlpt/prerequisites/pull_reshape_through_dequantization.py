from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Node
from ovlpt.prerequisites.pull_through_dequantization import PullThroughDequantization
from ovlpt.trace import reject_unless


class PullReshapeThroughDequantization(PullThroughDequantization):
    """Weights are stored in the shape in which they are read; those of a GroupConvolution keep their Reshape."""

    move = "Reshape"

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        consumer = next(iter(node.output(0).get_target_inputs())).get_node().get_type_name()
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
        return _spread(values, before, after) if self.params.native_only else reshaped_with(values, before, after)


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


def _spread(values: np.ndarray, before: tuple[int, ...], after: tuple[int, ...]) -> np.ndarray | None:
    """The native rule, which takes axes apart and never joins them: each axis of the constant, from the left, stands for
    the next axes of the target whose product is the size of the data there.
    """
    fits = len(after) == values.ndim and all(
        size in (1, target) for size, target in zip(values.shape, after, strict=True)
    )
    if fits:
        return values
    shape, position = list(after), 0
    for size, whole in zip(values.shape, before, strict=False):
        start, product = position, 1
        while position < len(after) and (position == start or product != whole):
            product *= after[position]
            position += 1
        if size != whole:
            shape[start:position] = [1] * (position - start)
    return values.reshape(shape) if np.prod(shape) == values.size else None


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
