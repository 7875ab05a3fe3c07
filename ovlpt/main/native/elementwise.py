"""Operations with two inputs."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, elementwise, precision_of, rounded_to
from ovlpt.graph.dequantization import Dequantization, put_constant_second, write_dequantization
from ovlpt.graph.names import dequantization
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import replace_output
from ovlpt.main import add, multiply_partial
from ovlpt.main.elementwise import ElementwiseTransformation, values_or
from ovlpt.openvino_api import Node, Output
from ovlpt.precisions import REAL
from ovlpt.trace import reject_unless


class _Elementwise(ElementwiseTransformation):
    def _is_mask(self, branch: Dequantization) -> bool:
        return False

    def _check_products(self, node: Node) -> None:
        """It gives up where it finds no constant."""
        for port, branch in enumerate(self.branches(node)):
            product = branch.multiply is None and node.input_value(port).get_node().get_type_name() == "Multiply"
            reject_unless(not product, "product", f"input {port} is a Multiply that is not a dequantization")

    def separate(self, node: Node) -> None:
        """The node gets dequantizations of its own before the last conditions are checked: one, where both inputs are
        the same.
        """
        is_square = node.input_value(0) == node.input_value(1)
        for port, found in enumerate(self.branches(node)):
            put_constant_second(found)
            if found.is_shared and not found.empty and not (is_square and port == 1):
                output, _ = write_dequantization(
                    found.data,
                    found.output.get_node().get_friendly_name(),
                    found.scale,
                    found.zero_point,
                    found.precision,
                    precision_of(found.output),
                    found.zero_point_precision,
                )
                node.input(port).replace_source_output(output)
                self.read_anew()

    def _check_branches(self, node: Node, full: int) -> None:
        """Zero points of integers are made real even where one of them then forbids the rewrite."""
        for found in self.branches(node):
            _fold_zero_point(found)
        self.read_anew()
        super()._check_branches(node, full)


_ZERO_SHIFT = 1e-5  # the largest zero point that counts as none


class AddTransformation(_Elementwise, add.AddTransformation):
    def _combined(self, node: Node, full: int) -> tuple[np.ndarray, np.ndarray]:
        """Without a zero point that is next to nothing, where there is one for all channels: what rounding leaves of two."""
        scale, zero_point = super()._combined(node, full)
        is_one = (zero_point == np.ravel(zero_point)[0]).all()
        return scale, zero_point * 0 if is_one and (np.abs(zero_point) <= _ZERO_SHIFT).all() else zero_point

    def _check_moved(self, node: Node) -> None:
        """A constant that overflows is moved."""

    def _check_reached(self, node: Node, full: int) -> None:
        """So is a mask."""

    def _check_sum(self, node: Node, full: int) -> None:
        """What f32 makes of the sum of zero points does not matter."""

    def _added(self, constant: np.ndarray, found: Dequantization) -> tuple[np.ndarray, str, str]:
        """In the type of what is scaled, whatever its constants are stored in, and along any axes."""
        _, scale = values_or(found)
        deq, stored = precision_of(found.multiply.input_value(0)), found.precision
        if constant.size == scale.size:
            constant = constant.reshape(scale.shape)
        elif 1 not in (constant.size, scale.size):
            stored = "f32"  # both are broadcast
        return constant, deq, stored

    def converts(self, found: Dequantization) -> bool:
        """Where it was before."""
        return found.convert is not None

    def _shifted(self, found: Dequantization, moved: np.ndarray) -> tuple[Output, np.ndarray]:
        """Beside a zero point that a file stores in integers, not with it."""
        if found.subtract is not None and found.zero_point_precision not in REAL:
            return found.subtract.output(0), -moved
        return super()._shifted(found, moved)


class MultiplyPartialTransformation(_Elementwise, multiply_partial.MultiplyPartialTransformation):
    def _computed_in(self, node: Node) -> str:
        """In f16 where all data is f16 without a Convert, and both scales are stored in one type, be it another."""
        branches = self.branches(node)
        types, stored = {each.data_precision for each in branches}, {each.precision for each in branches}
        return types.pop() if len(types) == len(stored) == 1 and types <= REAL else super()._computed_in(node)

    def _joined(self, one: Dequantization, other: Dequantization, deq: str) -> np.ndarray:
        """Of scales that are rounded to the type that their product is stored in."""
        return rounded_to(values_or(one)[1], deq) * rounded_to(values_or(other)[1], deq)

    def _rescaled(self, found: Dequantization, scale: np.ndarray, name: str, deq: str) -> Output:
        """Only the scale is new: what stands before it stays as it is, in its own type."""
        before = found.subtract or found.convert
        data, stored = before.output(0) if before is not None else found.data, constant(scale, deq).output(0)
        if precision_of(data) == deq:
            rescaled = elementwise("Multiply", data, stored)
        else:
            rescaled = relaxed("Multiply", [data, stored], "f32", {"auto_broadcast": "numpy"})
        rescaled.set_friendly_name(dequantization(name, "Multiply"))
        return rescaled.output(0)


def _fold_zero_point(found: Dequantization) -> None:
    """Make a constant of the Convert of a zero point that a file stores in integers, for whoever reads it."""
    if found.subtract is not None and found.multiply is not None and found.zero_point_precision not in REAL:
        converted = found.subtract.input_value(1)
        replace_output(converted, constant(found.zero_point, precision_of(converted)).output(0))
