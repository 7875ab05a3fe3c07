from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import write_dequantization
from ovlpt.layer_transformation import LayerTransformation, insert_after, shape_of
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import to_scalar_if_possible
from ovlpt.precisions import REAL


class SplitTransformation(LayerTransformation):
    """Each part gets the dequantization of its channels."""

    operation = OPERATIONS["Split"]

    def can_be_transformed(self, node: Node) -> None:
        self.check_row(node, self.require_dequantization(node))

    def transform(self, node: Node) -> None:
        found = self.dequantization(node)
        rank = len(shape_of(found.data))
        axis = int(node.input_value(1).get_node().data.reshape(-1)[0]) % rank
        outputs = [(output, precision_of(output), self.consumers_of(output)) for output in node.outputs()]
        scales, zero_points = (_split(values, node, rank, axis) for values in (found.scale, found.zero_point))
        # f16 data keeps its type under constants in f32, as in the native library
        real = precision_of(found.data if found.convert is None else found.convert.output(0))
        real = real if real in REAL else found.precision
        node.input(0).replace_source_output(found.data)
        node.validate_and_infer_types()
        for index, (output, precision, targets) in enumerate(outputs):
            if not targets:
                continue
            dequantized, nodes = write_dequantization(
                output,
                f"{node.get_friendly_name()}.{index}",
                scales[index],
                zero_points[index],
                real,
                precision,
                found.zero_point_precision,
                found.precision,
            )
            insert_after(output, dequantized, targets, nodes)


def _split(values: np.ndarray | None, node: Node, rank: int, axis: int) -> list[np.ndarray | None]:
    """The constant of each part."""
    if values is None or values.size == 1:
        return [values] * node.get_output_size()
    aligned = values.reshape((1,) * (rank - values.ndim) + values.shape)
    if aligned.shape[axis] == 1:
        return [to_scalar_if_possible(aligned)] * node.get_output_size()
    lengths = _lengths(node, aligned.shape[axis])
    return [to_scalar_if_possible(part) for part in np.split(aligned, np.cumsum(lengths)[:-1], axis)]


def _lengths(node: Node, size: int) -> list[int]:
    """Those of the parts of ``size`` elements; the shapes of data whose size is open do not tell them."""
    if node.get_type_name() == "Split":
        return [size // node.get_output_size()] * node.get_output_size()
    lengths = [int(each) for each in node.input_value(2).get_node().data.reshape(-1)]
    rest = size - sum(each for each in lengths if each != -1)
    return [rest if each == -1 else each for each in lengths]
