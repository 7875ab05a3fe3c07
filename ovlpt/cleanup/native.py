"""What the native library cleans up differently, kept with ``native_only``; each class replaces the one of its name."""

from __future__ import annotations

import numpy as np

from ovlpt.attributes import Precisions
from ovlpt.cleanup import (
    eliminate_fake_quantize,
    fold_fake_quantize,
    fuse_convert,
    fuse_elementwise_to_fake_quantize,
    multiply_to_group_convolution,
    scale_adjustment,
)
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import replacing
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations import Operation, operation_of
from ovlpt.precisions import max_value, min_value
from ovlpt.trace import reject_unless


class EliminateFakeQuantizeTransformation(eliminate_fake_quantize.EliminateFakeQuantizeTransformation):
    """It asks neither whether data exceeds 255 levels, nor what becomes of the ends of the range."""

    def _range(self, node: Node, precision: str, details: QuantizationDetails) -> tuple[float, float]:
        return min_value(precision, details.levels), max_value(precision, details.levels)

    def _keeps(self, limit: float, details: QuantizationDetails) -> bool:
        return True


class FoldFakeQuantizeTransformation(fold_fake_quantize.FoldFakeQuantizeTransformation):
    """Over any data of known sizes, too, where its output intervals are points."""

    def has_form(self, node: Node) -> bool:
        if super().has_form(node):
            return True
        details = self.details(node)
        is_known = node.get_output_partial_shape(0).is_static
        return is_known and details is not None and np.array_equal(details.output_low, details.output_high)

    def _values(self, node: Node, details: QuantizationDetails) -> np.ndarray:
        if super().has_form(node):
            return super()._values(node, details)
        return np.broadcast_to(details.output_low, node.get_output_shape(0))


class FuseConvertTransformation(fuse_convert.FuseConvertTransformation):
    """After a layer of integers, and of types that no kernel computes with, too; the inputs lose what markup says of them."""

    def _check_source(self, source: str) -> None:
        pass

    def _check_layer(self, data: Output) -> None:
        pass

    def transform(self, node: Node) -> None:
        for port in range(node.get_input_size()):
            self.attributes.remove(node.input(port), Precisions)
        super().transform(node)


class _BySizesAsInferred(fuse_elementwise_to_fake_quantize.FuseElementwiseToFakeQuantizeTransformation):
    """Bounds of an open size count, and the operation has those from before its data was changed."""

    def _keeps_shape(self, node: Node) -> bool:
        return node.get_input_partial_shape(0) == node.get_output_partial_shape(0)


class FuseMultiplyToFakeQuantizeTransformation(
    _BySizesAsInferred, fuse_elementwise_to_fake_quantize.FuseMultiplyToFakeQuantizeTransformation
):
    pass


class FuseSubtractToFakeQuantizeTransformation(
    _BySizesAsInferred, fuse_elementwise_to_fake_quantize.FuseSubtractToFakeQuantizeTransformation
):
    pass


class MultiplyToGroupConvolutionTransformation(multiply_to_group_convolution.MultiplyToGroupConvolutionTransformation):
    """Not of a product of two tensors; of one with a constant, which is lost; and of integers that are stored, where a
    Convert reads them.
    """

    def _check_product(self, source: Node, found: Dequantization) -> None:
        is_product = source.get_type_name() == "Multiply" and found.multiply is None
        reject_unless(not is_product, "product", "the data is a product already")

    def _is_constant(self, source: Node) -> bool:
        below = source.input_value(0).get_node() if source.get_type_name() == "Subtract" else source
        return isinstance(below, Constant)


class ScaleAdjustment(scale_adjustment.ScaleAdjustment):
    """Softmax ends the region, too, and eps stays: both change the results."""

    ends = scale_adjustment.ScaleAdjustment.ends | {"Softmax"}

    def _divide_eps(self, node: Node) -> None:
        pass

    def _row(self, kind: str) -> Operation | None:
        return operation_of(kind, native_only=True)


NATIVE = replacing(
    EliminateFakeQuantizeTransformation,
    FoldFakeQuantizeTransformation,
    FuseConvertTransformation,
    FuseMultiplyToFakeQuantizeTransformation,
    FuseSubtractToFakeQuantizeTransformation,
    MultiplyToGroupConvolutionTransformation,
)
