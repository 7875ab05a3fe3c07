from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.dequantization import read_dequantization
from ovlpt.graph.weights import rounded_zero_point, without_zero, zero_point_fits
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Constant, Node, opset1
from ovlpt.precisions import INT8, REAL
from ovlpt.trace import reject_unless


class ConvertSubtractConstant(LayerTransformation):
    """A real zero point of integer weights is rounded and stored in the weights' own type, after a Convert.

    Not in `LowPrecision`: plugins run it before. A zero point that rounds to zero goes away.
    """

    quiet = True  # most multiplications restore no weights

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Multiply"]

    def can_be_transformed(self, node: Node) -> None:
        found = read_dequantization(node.output(0), INT8)
        reject_unless(
            found.multiply is not None and found.subtract is not None,
            "no_zero_point",
            "no zero point before it",
        )
        reject_unless(
            isinstance(found.data.get_node(), Constant) and found.convert,
            "activations",
            "the data is not constant",
        )
        reject_unless(
            found.data_precision in INT8,
            "weights_precision",
            f"the weights are stored as {found.data_precision}",
        )
        reject_unless(
            found.zero_point_precision in REAL,
            "stored_low",
            f"it is stored as {found.zero_point_precision} already",
        )
        reject_unless(
            zero_point_fits(found.zero_point, found.data_precision),
            "zero_point_range",
            without_zero("the weights", found.zero_point, found.data_precision),
        )
        for link in (found.convert, found.subtract):
            reject_unless(
                len(link.output(0).get_target_inputs()) == 1,
                "several_consumers",
                "the chain has other consumers",
            )

    def transform(self, node: Node) -> None:
        found = read_dequantization(node.output(0), INT8)
        zero_point = rounded_zero_point(found.zero_point, found.data_precision)
        if zero_point is None:
            replace_output(found.subtract.output(0), found.convert.output(0))
            return
        stored = constant(np.broadcast_to(zero_point, found.zero_point.shape), found.data_precision)
        converted = opset1.convert(stored, precision_of(found.convert.output(0)))
        found.subtract.input(1).replace_source_output(converted.output(0))
