"""Neighbouring additions and multiplications of constants join. Source: the native ``LinOpSequenceFusion``."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Constant, GraphRewrite, Node, Output, opset1
from ovlpt.trace import reject_unless


class _SequenceFusion(LayerTransformation):
    """``outer(inner(x, a), b)`` with constants a and b, where inner has no other consumer."""

    quiet = True  # most elementwise operations are not such a pair
    part_of = "LinOpSequenceFusion"
    outer: ClassVar[str]
    inner: ClassVar[str]

    @classmethod
    def type_names(cls) -> list[str]:
        return [f"opset1.{cls.outer}"]

    def can_be_transformed(self, node: Node) -> None:
        port = _constant_port(node)
        reject_unless(port is not None, "not_constant", "no input is a constant")
        inner = node.input_value(1 - port).get_node()
        reject_unless(inner.get_type_name() == self.inner, "no_sequence", f"no {self.inner} before it")
        reject_unless(_constant_port(inner) is not None, "not_constant", f"the {self.inner} before it has no constant")
        reject_unless(
            len(inner.output(0).get_target_inputs()) == 1,
            "several_consumers",
            f"the {self.inner} has other consumers",
        )
        types = {precision_of(value) for value in (*node.input_values(), *inner.input_values())}
        reject_unless(len(types) == 1, "mixed_precisions", f"the types are {' and '.join(sorted(types))}")

    def transform(self, node: Node) -> None:
        port = _constant_port(node)
        inner = node.input_value(1 - port).get_node()
        inner_port = _constant_port(inner)
        data, first, second = (
            inner.input_value(1 - inner_port),
            inner.input_value(inner_port),
            node.input_value(port),
        )
        joined = self.join(data, first, second)
        joined.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), joined.output(0))

    def join(self, data: Output, first: Output, second: Output) -> Node:
        """The new last node."""
        raise NotImplementedError


class AddMultiplyFusion(_SequenceFusion):
    """``(x + a) * b == x * b + a * b``"""

    outer, inner = "Multiply", "Add"

    def join(self, data: Output, first: Output, second: Output) -> Node:
        product = opset1.multiply(data, second)
        self.register_new_node(product)
        return opset1.add(product, _folded(np.multiply, first, second))


class AddAddFusion(_SequenceFusion):
    """``(x + a) + b == x + (a + b)``"""

    outer, inner = "Add", "Add"

    def join(self, data: Output, first: Output, second: Output) -> Node:
        total = opset1.add(data, _folded(np.add, first, second))
        self.register_new_node(total)
        return total


class MultiplyMultiplyFusion(_SequenceFusion):
    """``(x * a) * b == x * (a * b)``"""

    outer, inner = "Multiply", "Multiply"

    def join(self, data: Output, first: Output, second: Output) -> Node:
        product = opset1.multiply(data, _folded(np.multiply, first, second))
        self.register_new_node(product)
        return product


LIN_OP_SEQUENCE_FUSION = (AddMultiplyFusion, AddAddFusion, MultiplyMultiplyFusion)


class LinOpSequenceFusion(GraphRewrite):
    """The three fusions as one pass for a Manager. In settings its name stands for all of them."""

    def __init__(self, **settings):
        super().__init__()
        for kind in LIN_OP_SEQUENCE_FUSION:
            self.add_matcher(kind(**settings))


def _constant_port(node: Node) -> int | None:
    return next((port for port in (1, 0) if isinstance(node.input_value(port).get_node(), Constant)), None)


def _folded(operation: np.ufunc, one: Output, other: Output) -> Constant:
    return constant(operation(values_of(one.get_node()), values_of(other.get_node())), precision_of(one))
