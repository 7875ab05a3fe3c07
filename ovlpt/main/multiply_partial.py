from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.dequantization import Dequantization, write_dequantization
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.relaxed import relaxed
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import insert_after, replace_output
from ovlpt.main.elementwise import ElementwiseTransformation, values_or
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


class MultiplyPartialTransformation(ElementwiseTransformation):
    """``(s1 * (x1 - z1)) * (s2 * x2) == ((s1 * s2) * (x1 - z1)) * x2``: one input is read raw, the scales join.

    A product with a constant joins the scale: ``((x - z) * s) * c == (x - z) * (s * c)``.
    """

    operation = OPERATIONS["Multiply"]

    def can_be_transformed(self, node: Node) -> None:
        full, branches = self.full_branch(node), self.branches(node)
        reject_unless(
            full is None or not (branches[0].empty or branches[1].empty),
            "not_quantized",
            "one input has no dequantization",
        )
        super().can_be_transformed(node)

    def _check_constant(self, node: Node) -> None:
        port = self._constant_port(node)
        reject_unless(port is not None, "not_constant", "the constant input cannot be folded")
        other = node.input_value(1 - port).get_node()
        reject_unless(
            other.get_type_name() == "Multiply"
            and folded_constant(other.input_value(self._scale_port(other))) is not None,
            "no_scale",
            "the data has no scale that the constant could join",
        )

    def _check_branches(self, node: Node, full: int) -> None:
        empty = self.branches(node)[1 - full]
        if self.params.update_precisions:
            reject_unless(empty.is_low_precision, *self.not_low(1 - full, empty.data_precision))
        reject_unless(empty.zero_point is None, "zero_point", f"input {1 - full}, read raw, has a zero point")

    @staticmethod
    def _constant_port(node: Node) -> int | None:
        return next((port for port in (1, 0) if folded_constant(node.input_value(port)) is not None), None)

    @staticmethod
    def _scale_port(multiply: Node) -> int:
        return 1 if folded_constant(multiply.input_value(1)) is not None else 0

    def transform(self, node: Node) -> None:
        full = self.full_branch(node)
        self.separate(node)
        if full is None:
            self._check_constant(node)
            self._join_constant(node)
            return
        self._check_branches(node, full)
        branches, deq, name = self.branches(node), self._computed_in(node), node.get_friendly_name()
        joined = self._joined(branches[full], branches[1 - full], deq)
        dequantized = self._rescaled(branches[full], joined, made_for(name, Made.FULL_BRANCH), deq)
        inputs = [dequantized, branches[1 - full].data]
        if full == 1:
            inputs.reverse()
        product = relaxed("Multiply", inputs, precision_of(node.output(0)), {"auto_broadcast": "numpy"}, origin=deq)
        product.set_friendly_name(name)
        self.attributes.move(node, product)
        replace_output(node.output(0), product.output(0))

    def _computed_in(self, node: Node) -> str:
        return self.params.deq_precision

    def _joined(self, one: Dequantization, other: Dequantization, deq: str) -> np.ndarray:
        return values_or(one)[1] * values_or(other)[1]

    def _rescaled(self, found: Dequantization, scale: np.ndarray, name: str, deq: str) -> Output:
        """The full branch with another scale."""
        zero_point, _ = values_or(found)
        reported = "f32" if precision_of(found.output) == "f32" else deq
        return write_dequantization(found.data, name, scale, zero_point if zero_point.any() else None, deq, reported)[0]

    def _join_constant(self, node: Node) -> None:
        port = self._constant_port(node)
        inner = node.input_value(1 - port).get_node()
        scale_port = self._scale_port(inner)
        joined = folded_constant(node.input_value(port)) * folded_constant(inner.input_value(scale_port))
        data, original = inner.input_value(1 - scale_port), precision_of(node.output(0))
        targets = self.consumers_of(node.output(0))
        found = self.branches(node)[1 - port]
        if found.subtract is not None and len(inner.output(0).get_target_inputs()) > 1:
            # a chain of its own: one Subtract for both would be fused into the FakeQuantize, which then stays in float
            deq = self.params.deq_precision
            data, _ = write_dequantization(found.data, node.get_friendly_name(), None, found.zero_point, deq)
        inputs = [data, constant(joined.astype(np.float32), self.params.deq_precision).output(0)]
        product = relaxed("Multiply", inputs, original, {"auto_broadcast": "numpy"}, origin=self.params.deq_precision)
        product.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, product)
        replace_output(node.output(0), product.output(0))
        insert_after(node.output(0), product.output(0), targets, [])
