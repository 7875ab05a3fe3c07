from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.layer_transformation import LayerTransformation, shape_of
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import to_scalar_if_possible
from ovlpt.precisions import REAL
from ovlpt.trace import reject_unless


class ConcatTransformation(LayerTransformation):
    """Raw data is concatenated, and so are the constants along the same axis."""

    operation = OPERATIONS["Concat"]

    def can_be_transformed(self, node: Node) -> None:
        branches = self._branches(node)
        reject_unless(node.get_output_partial_shape(0).rank.is_static, "dynamic_rank", "the rank is not known")
        for port, branch in enumerate(branches):
            reject_unless(
                not branch.empty,
                "not_quantized",
                f"input {port} is {branch.data_precision} and has no dequantization",
            )
            if self.params.update_precisions:
                reject_unless(
                    branch.is_low_precision or branch.data_precision in self.params.default_precisions,
                    "activation_precision",
                    f"input {port} is {branch.data_precision}",
                )
        first, axis = branches[0], self._axis(node)
        types = {branch.data_precision for branch in branches}
        reject_unless(len(types) == 1, "mixed_precisions", f"the inputs are {' and '.join(sorted(types))}")
        if node.get_output_partial_shape(0)[axis].is_dynamic:
            reject_unless(
                all(branch.is_per_tensor and _equal(branch, first) for branch in branches),
                "dynamic_concat_axis",
                "the length of the concatenated axis is not known and the inputs are quantized differently",
            )
            return
        rank = node.get_output_partial_shape(0).rank.get_length()
        for port, branch in enumerate(branches):
            for values in (branch.scale, branch.zero_point):
                if values is None or values.size == 1:
                    continue
                aligned = (1,) * (rank - values.ndim) + values.shape
                reject_unless(
                    all(size == 1 or index == axis for index, size in enumerate(aligned)),
                    "off_concat_axis",
                    f"the scale of input {port} varies along an axis other than the concatenated one",
                )
            reject_unless(
                branch.precision == first.precision,
                "mixed_precisions",
                "the dequantizations compute in different precisions",
            )

    def transform(self, node: Node) -> None:
        branches, axis = self._branches(node), self._axis(node)
        targets, original = self.consumers_of(node.output(0)), precision_of(node.output(0))
        rank = node.get_output_partial_shape(0).rank.get_length()
        lengths = [shape_of(node.input_value(port))[axis] for port in range(node.get_input_size())]
        scale = _joined([branch.scale for branch in branches], 1.0, rank, axis, lengths)
        present = [branch for branch in branches if branch.zero_point is not None]
        is_stored_low = bool(present) and all(branch.zero_point_precision not in REAL for branch in present)
        zero_point = _joined([branch.zero_point for branch in branches], 0.0, rank, axis, lengths, spread=is_stored_low)
        for port, branch in enumerate(branches):
            node.input(port).replace_source_output(branch.data)
        node.validate_and_infer_types()
        stored = {branch.zero_point_precision for branch in branches if branch.zero_point is not None}
        found = branches[0] if len(stored) != 1 else next(b for b in branches if b.zero_point_precision in stored)
        self.dequantize(node.output(0), node.get_friendly_name(), targets, found, scale, zero_point, original)

    def _branches(self, node: Node) -> list[Dequantization]:
        return [self.dequantization(node, port) for port in range(node.get_input_size())]

    @staticmethod
    def _axis(node: Node) -> int:
        return int(node.get_attributes()["axis"]) % node.get_output_partial_shape(0).rank.get_length()


def _equal(one: Dequantization, other: Dequantization) -> bool:
    def same(a: np.ndarray | None, b: np.ndarray | None, absent: float) -> bool:
        return np.array_equal(np.ravel(absent if a is None else a), np.ravel(absent if b is None else b))

    return same(one.scale, other.scale, 1.0) and same(one.zero_point, other.zero_point, 0.0)


def _joined(
    parts: list[np.ndarray | None],
    absent: float,
    rank: int,
    axis: int,
    lengths: list[int | None],
    spread: bool = False,
) -> np.ndarray | None:
    """The constants along the concatenated axis, as one value where they agree (not with ``spread``)."""
    if all(part is None for part in parts):
        return None
    parts = [np.full((), absent, np.float32) if part is None else part for part in parts]
    can_collapse = not spread or None in lengths
    if can_collapse and all(part.size == 1 for part in parts) and len({float(part.flat[0]) for part in parts}) == 1:
        return parts[0].reshape(-1)[0].reshape(())
    pieces = []
    for part, length in zip(parts, lengths, strict=True):
        shape = [1] * rank
        shape[axis] = length
        pieces.append(np.broadcast_to(part.reshape((1,) * (rank - part.ndim) + part.shape), shape))
    joined = np.concatenate(pieces, axis)
    return to_scalar_if_possible(joined) if can_collapse else joined
