"""What moves above the dequantization of constant weights: shared by Reshape and Transpose."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovlpt.attributes import WeightsBeforeCanonicalization
from ovlpt.graph.constants import constant, precision_of, same_operation, values_of
from ovlpt.graph.dequantization import read_dequantization, write_dequantization
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Constant, Node
from ovlpt.precisions import INT8
from ovlpt.trace import reject_unless


class PullThroughDequantization(LayerTransformation):
    """``move((w - z) * s) == (move(w) - move(z)) * move(s)`` for integer weights w: the move is folded into them."""

    quiet = True  # activations are moved too, and it is not a refusal that they are not folded
    move: ClassVar[str]

    @classmethod
    def type_names(cls) -> list[str]:
        return [f"opset1.{cls.move}"]

    def can_be_transformed(self, node: Node) -> None:
        found = read_dequantization(node.input_value(0), INT8)
        reject_unless(
            found.multiply is not None and found.convert is not None,
            "not_quantized",
            "no dequantization before it",
        )
        weights = found.data.get_node()
        reject_unless(
            isinstance(weights, Constant) and found.data_precision in INT8,
            "activations",
            "the data is not constant",
        )
        reject_unless(
            isinstance(node.input_value(1).get_node(), Constant),
            "not_constant",
            "where to move to is not constant",
        )
        reject_unless(node.output(0).get_target_inputs(), "unused", "nothing reads it")
        for values in (found.scale, found.zero_point):
            if values is not None:
                reject_unless(
                    self.moved(values, node) is not None,
                    "constant_shape",
                    f"a dequantization of the shape {list(values.shape)} cannot follow",
                )

    def transform(self, node: Node) -> None:
        found = read_dequantization(node.input_value(0), INT8)
        weights = constant(self.moved_data(values_of(found.data.get_node()), node), found.data_precision)
        weights.set_friendly_name(found.data.get_node().get_friendly_name())
        zero_point = None if found.zero_point is None else self.moved(found.zero_point, node)
        output, nodes = write_dequantization(
            weights.output(0),
            node.get_friendly_name(),
            self.moved(found.scale, node),
            zero_point,
            precision_of(node.output(0)),
            zero_point_precision=found.zero_point_precision,
        )
        nodes[-1].set_friendly_name(node.get_friendly_name())
        canonicalized = self.attributes.get(found.multiply, WeightsBeforeCanonicalization)
        if canonicalized is not None:
            before = same_operation(node, [canonicalized.value, node.input_value(1)])
            self.attributes.set(nodes[-1], WeightsBeforeCanonicalization(before.output(0)))
        replace_output(node.output(0), output)

    def moved_data(self, values: np.ndarray, node: Node) -> np.ndarray:
        """The weights after the move."""
        raise NotImplementedError

    def moved(self, values: np.ndarray, node: Node) -> np.ndarray | None:
        """A constant of the dequantization after the move; None where it has no such form."""
        raise NotImplementedError
