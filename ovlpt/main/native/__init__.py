"""What the native library does differently from the mathematics of a rule, kept with ``native_only``.

Each class stands in the place of the one whose name it has; all have the rows of `ovlpt.operations.native`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ovlpt.graph.constants import constant, precision_of, rounded_to
from ovlpt.graph.dequantization import put_constant_second
from ovlpt.layer_transformation import LayerTransformation, MoveDequantizationAfter, replacing
from ovlpt.main.native.computed import (
    ClampTransformation,
    MVNTransformation,
    NormalizeL2Transformation,
    PadTransformation,
    PReluTransformation,
)
from ovlpt.main.native.elementwise import AddTransformation, MultiplyPartialTransformation
from ovlpt.main.native.mat_mul import MatMulTransformation
from ovlpt.main.native.quantization import (
    FakeQuantizeDecompositionTransformation,
    FakeQuantizeTransformation,
    RecurrentCellTransformation,
)
from ovlpt.main.native.split import SplitTransformation, VariadicSplitTransformation
from ovlpt.main.native.variables import AssignAndReadValueTransformation
from ovlpt.main.native.weighted import (
    ConvolutionBackpropDataTransformation,
    ConvolutionTransformation,
    GroupConvolutionTransformation,
)
from ovlpt.openvino_api import Node
from ovlpt.operations import Operation, keep
from ovlpt.operations import as_native as native_row
from ovlpt.operations.values import with_rank

NATIVE = replacing(
    AddTransformation,
    AssignAndReadValueTransformation,
    ClampTransformation,
    ConvolutionBackpropDataTransformation,
    ConvolutionTransformation,
    FakeQuantizeDecompositionTransformation,
    FakeQuantizeTransformation,
    GroupConvolutionTransformation,
    MVNTransformation,
    MatMulTransformation,
    MultiplyPartialTransformation,
    NormalizeL2Transformation,
    PReluTransformation,
    PadTransformation,
    RecurrentCellTransformation,
    SplitTransformation,
    VariadicSplitTransformation,
)


class _MovesAsReported(MoveDequantizationAfter):
    """Constants are moved with the operation itself, in the type that it reports."""

    def stored(self, values: np.ndarray | None, node: Node) -> np.ndarray | None:
        if values is None or values.size == 1 or self.keeps_precision(node) or self.operation.move is keep:
            return values
        return rounded_to(values, precision_of(node.output(0)))


class _Reduces(LayerTransformation):
    """A scale or zero point of fewer axes gets all of them, also where the reduction stays as it is."""

    def can_be_transformed(self, node: Node) -> None:
        found, rank = self.dequantization(node), node.get_input_partial_shape(0).rank
        for link, values in ((found.subtract, found.zero_point), (found.multiply, found.scale)):
            if link is not None and values.size > 1 and rank.is_static and values.ndim < rank.get_length():
                put_constant_second(found)
                aligned = constant(with_rank(values, rank.get_length()), precision_of(link.input_value(1)))
                link.input(1).replace_source_output(aligned.output(0))
                self.read_anew()
        super().can_be_transformed(node)


@functools.cache
def as_native(kind: type[LayerTransformation]) -> type[LayerTransformation] | None:
    """The transformation as the native library has it; None where it has none."""
    own, row = NATIVE.get(kind, kind), getattr(kind, "operation", None)
    bases = (_MovesAsReported, own) if issubclass(own, MoveDequantizationAfter) else (own,)
    members: dict[str, Any] = {"__module__": own.__module__}
    if isinstance(row, Operation) and row.name.startswith("Reduce"):
        bases = (_Reduces, *bases)
    if isinstance(row, Operation):
        if not native_row(row).has_rule:
            return None
        members["operation"] = native_row(row)
    return type(own.__name__, bases, members)
