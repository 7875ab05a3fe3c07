"""Operations with two inputs."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import precision_of
from ovlpt.graph.dequantization import Dequantization, put_constant_second, write_dequantization
from ovlpt.main import add, multiply_partial
from ovlpt.main.elementwise import ElementwiseTransformation, values_or
from ovlpt.openvino_api import Node, Output
from ovlpt.precisions import REAL
from ovlpt.trace import reject_unless


class _Elementwise(ElementwiseTransformation):
    def _check_products(self, node: Node) -> None:
        """It gives up where it finds no constant."""
        for port, branch in enumerate(self.branches(node)):
            product = branch.multiply is None and node.input_value(port).get_node().get_type_name() == "Multiply"
            reject_unless(not product, "product", f"input {port} is a Multiply that is not a dequantization")

    def separate(self, node: Node) -> None:
        """The node gets dequantizations of its own before the last conditions are checked."""
        for port, found in enumerate(self.branches(node)):
            put_constant_second(found)
            if found.is_shared and not found.empty:
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


class AddTransformation(_Elementwise, add.AddTransformation):
    def _added(self, constant: np.ndarray, found: Dequantization) -> tuple[np.ndarray, str, str]:
        """In f16 where the data is f16 without a Convert, and along any axes."""
        _, scale = values_or(found)
        deq = stored = found.precision
        if found.convert is None and found.data_precision in REAL:
            deq = found.data_precision  # whatever its constants are stored in
        if constant.size == scale.size:
            constant = constant.reshape(scale.shape)
        elif 1 not in (constant.size, scale.size):
            stored = "f32"  # both are broadcast
        return constant, deq, stored

    def _shifted(self, found: Dequantization, moved: np.ndarray) -> tuple[Output, np.ndarray]:
        """Beside a zero point that a file stores in integers, not with it."""
        if found.subtract is not None and found.zero_point_precision not in REAL:
            return found.subtract.output(0), -moved
        return super()._shifted(found, moved)


class MultiplyPartialTransformation(_Elementwise, multiply_partial.MultiplyPartialTransformation):
    def _computed_in(self, node: Node) -> str:
        """In f16 where all data is f16 without a Convert."""
        types = {kind for branch in self.branches(node) for kind in (branch.data_precision, branch.precision)}
        return types.pop() if len(types) == 1 and types <= REAL else super()._computed_in(node)
