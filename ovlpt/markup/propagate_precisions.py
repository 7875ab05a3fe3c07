from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ovlpt.attributes import Precisions, input_key
from ovlpt.graph.constants import is_constant_path, precision_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.markup.propagation import (
    CreateAttribute,
    PropagateThroughPrecisionPreserved,
    PropagateToInput,
    Propagation,
    Propagations,
)
from ovlpt.openvino_api import Node, Output
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import CONVOLUTIONS
from ovlpt.precisions import is_low


class _Decide(PropagateToInput):
    """What runs in low precision whoever else reads its data, or asks for no type."""

    turn: ClassVar[int] = 0

    def visit(self, node: Node) -> None:
        if _turn(node) == self.turn:
            super().visit(node)


class _Yield(_Decide):
    """A layer asks for no type where all that are left would leave its data in floats for those before it, too."""

    operations = WEIGHTED

    def visit(self, node: Node) -> None:
        if _turn(node) != self.turn:
            return
        own = {
            port: self.attributes.get(input_key(node, port), Precisions) for port, _ in self.sources(node, Precisions)
        }
        if any(
            wanted is not None and wanted.value and source.value and not self._suits(wanted, source)
            for port, source in self.sources(node, Precisions)
            for wanted in (own[port],)
        ):
            for port in own:
                self.attributes.set(input_key(node, port), Precisions(()))
            return
        super().visit(node)

    def _suits(self, wanted: Precisions, source: Precisions) -> bool:
        """Whether a type is left with which those before it run in low precision: data of convolutions has a zero point only
        where it is unsigned.
        """
        left = set(wanted.value) & set(source.value)
        return bool(left) and (left != {"i8"} or "u8" not in source.value or not self._is_unsigned(source))

    def _is_unsigned(self, source: Precisions) -> bool:
        """Whether convolutions read what would have a zero point in i8."""
        read = self.index.nodes(CONVOLUTIONS)
        if not any(each.shared is source.shared for node in read for _, each in self.sources(node, Precisions)):
            return False
        for quantize in self.index.nodes({"FakeQuantize"}):
            of_data = self.attributes.get(quantize.output(0), Precisions)
            if of_data is not None and of_data.shared is source.shared:
                details = QuantizationDetails.of(quantize)
                if details is not None and details.is_supported and details.precision.precision != "i8":
                    return True
        return False


class _YieldAsProduct(_Yield):
    """Of two tensors."""

    turn = 1


class _YieldInFloat(_Yield):
    """With weights that are not quantized."""

    turn = 2


class PropagatePrecisions(Propagations):
    """Every FakeQuantize learns which element types all its consumers take, through any precision-preserved chain.

    Where there is none, products of two tensors yield to other layers, and layers that run in float to both.
    """

    to_inputs: ClassVar[tuple[type[PropagateToInput], ...]] = (_Decide, _YieldAsProduct, _YieldInFloat)

    def steps(self) -> Iterable[Propagation]:
        settings = self.settings()
        return (
            CreateAttribute(
                {"FakeQuantize"},
                lambda _: Precisions(self.params.default_precisions),
                lambda node: node.output(0),
                **settings,
            ),
            PropagateThroughPrecisionPreserved(Precisions, **settings),
            *(kind(Precisions, **settings) for kind in self.to_inputs),
        )


def _turn(node: Node) -> int:
    """When a node is asked for the types that it takes."""
    kind = node.get_type_name()
    if kind not in WEIGHTED:
        return 0
    weights = node.input_value(1)
    if kind == "MatMul" and not is_constant_path(weights.get_node()):
        return 1
    return 0 if _is_quantized(weights) else 2


def _is_quantized(weights: Output) -> bool:
    """Whether weights come from a FakeQuantize or from integers of 8 bits."""
    node = weights.get_node()
    while node.get_input_size():
        if node.get_type_name() == "FakeQuantize":
            return True
        node = node.input_value(0).get_node()
    return is_low(precision_of(node.output(0)))
