from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ovlpt.attributes import Precisions
from ovlpt.graph.constants import constant, is_constant_path, precision_of, values_of
from ovlpt.graph.decomposition import decompose, quantized_values
from ovlpt.graph.dequantization import Dequantization, write_dequantization
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.names import dequantization as dequantization_name
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import relaxed, relaxed_like
from ovlpt.graph.weights import folded_constant, weights_precision
from ovlpt.layer_transformation import (
    LayerTransformation,
    insert_after,
    replace_output,
    shape_of,
)
from ovlpt.main.fake_quantize_decomposition import write_decomposition
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.operations.values import is_scalar_like, to_scalar_if_possible
from ovlpt.precisions import DataPrecision
from ovlpt.trace import reject_unless

# Contracted elements from which int8 with sums is not slower than float, on a CPU without VNNI.
LONG = 128

_ROUNDED = 2**-12  # of a step: what f32 leaves of a zero point less itself


class MatMulTransformation(LayerTransformation):
    """``((a - za) * sa) @ (b * sb) == (a @ b - za @ b) * (sa * sb)``.

    A zero point on ``a`` needs a constant ``b``: ``za @ b`` is then a constant, subtracted after the MatMul.
    Beyond the native library each factor may have one zero point, over a contracted axis of length k:
    ``(a - za) @ (b - zb) == a @ b - za * sum_k(b) - zb * (sum_k(a) - k * za)``.
    """

    operation = OPERATIONS["MatMul"]
    decomposes_data: ClassVar[bool] = False  # a FakeQuantize on data that is still there, whatever the restrictions say

    def can_be_transformed(self, node: Node) -> None:
        left = self.require_dequantization(node)
        self.check_row(node, left)
        attributes = node.get_attributes()
        rank = len(shape_of(left.data) or ())
        if self.params.update_precisions:
            reject_unless(left.is_low_precision, "activation_precision", f"input 0 is {left.data_precision}")
        self._check_contracted(left.scale, rank, rank - 2 if attributes["transpose_a"] else rank - 1, "input 0")
        right = self._right(node)
        b_rank = len(shape_of(node.input_value(1)) or ())
        contracted = b_rank - 1 if attributes["transpose_b"] else b_rank - 2
        is_weights = is_constant_path(node.input_value(1).get_node())
        if not is_weights:
            self._check_asked(node)
        quantize = right.data.get_node() if right.empty else None
        if quantize is not None and quantize.get_type_name() == "FakeQuantize":
            details = self.details(quantize)
            reject_unless(details is not None, "dynamic_intervals", "an interval bound of input 1 is not a constant")
            precision = self._weights_precision(node, details)
            reject_unless(
                not precision.has_zero_point,
                "weights_zero_point",
                f"input 1 has a zero point on {details.ends} at {details.levels} levels",
            )
            text = "the FakeQuantize on input 1 stays in float"
            reject_unless(is_constant_path(quantize) or self.decomposes_data, "not_decomposed", text)
            if is_constant_path(quantize) and not isinstance((source := quantize.input_value(0)).get_node(), Constant):
                reject_unless(
                    folded_constant(source) is not None, "dynamic_weights", "the value of input 1 is not known"
                )
            for end in details.intervals[2:]:
                self._check_contracted(end, b_rank, contracted, "input 1", is_weights)
        else:
            reject_unless(not right.empty, "weights_not_quantized", "input 1 is not quantized")
            if self.params.update_precisions:
                reject_unless(right.is_low_precision, "weights_precision", f"input 1 is {right.data_precision}")
            if self._has_zero_point(right):
                self._check_sums(node, left, right, "weights_zero_point", "input 1 has a zero point")
            self._check_contracted(right.scale, b_rank, contracted, "input 1", is_weights)
        stored = right.empty or isinstance(right.data.get_node(), Constant)
        if left.zero_point is not None and not (stored and is_weights):
            self._check_sums(node, left, right, "zero_point", "input 0 has a zero point and input 1 is not constant")

    def _check_asked(self, node: Node) -> None:
        """Whether it has a say in the type of input 1."""
        found = self.dequantization(node, 1)
        text = "other layers read input 1 in a type that its kernels do not take"
        reject_unless(not self._yields(node) or self._is_signed_anew(node, found), "consumer_forbids", text)

    def _yields(self, node: Node) -> bool:
        """Whether other layers alone decide about the type of input 1."""
        asked = self.attributes.get(node.input(1), Precisions)
        return asked is not None and not asked.value

    def _is_signed_anew(self, node: Node, found: Dequantization) -> bool:
        """Whether input 1, which others read as u8, is quantized to i8 for this operation."""
        source = found.data.get_node()
        is_quantized = source.get_type_name() == "FakeQuantize" and not is_constant_path(source)
        return found.data_precision == "u8" and is_quantized and self._yields(node)

    def _check_sums(self, node: Node, left: Dequantization, right: Dequantization, code: str, text: str) -> None:
        """Whether sums over the contracted axis can stand for the zero points."""
        reject_unless(self.params.update_precisions, code, text)
        for port, found in enumerate((left, right)):
            single = found.zero_point is None or found.zero_point.size == 1
            reject_unless(single, code, f"{text}, and input {port} one for each channel")
            shape = shape_of(found.data)
            length = shape[_contracted(node, port)] if shape is not None and len(shape) > 1 else None
            reject_unless(length, code, f"{text}, and the length of the contracted axis is not known")
            long = f"{text}; computing its part separately pays off only where at least {LONG} products are summed"
            reject_unless(length >= LONG, code, f"{long}, here {length}")

    def _check_contracted(
        self, values: np.ndarray | None, rank: int, axis: int, name: str, is_weights: bool = False
    ) -> None:
        if values is None or values.size == 1:
            return
        if self._is_one(values, name):
            return
        place = axis - rank if rank > 1 else -1  # from the end: an interval may have fewer axes than the data
        reject_unless(
            -place > values.ndim or values.shape[place] == 1,
            "weights_granularity" if is_weights else "contracted_scale",
            f"{name} has a scale along axis {axis} ({values.shape[max(place, -values.ndim)]} values), and that axis is summed",
        )

    def _is_one(self, values: np.ndarray, name: str) -> bool:
        """Whether a scale of several values, of the input of this name, is the same for all that is summed."""
        return is_scalar_like(values)

    def _right(self, node: Node) -> Dequantization:
        found = self.dequantization(node, 1)
        if not self._is_signed_anew(node, found):
            return found
        zero_point = (np.zeros((), np.float32) if found.zero_point is None else found.zero_point) - _offset(found)
        return replace(found, zero_point=np.where(np.abs(zero_point) < _ROUNDED, np.float32(0), zero_point))

    def _weights_precision(self, node: Node, details: QuantizationDetails) -> DataPrecision:
        required = self.attributes.get(node.input(1), Precisions)
        allowed = required.value if required else self.params.default_precisions
        return weights_precision(details, allowed, "input 1")

    def transform(self, node: Node) -> None:
        left, (integers, right_scale) = self.dequantization(node), self._integers(node)
        right, needs_sums = self._right(node), self._needs_sums(node, left)
        if needs_sums:
            right, integers = self._signed(node, right, integers)
        attributes, deq = node.get_attributes(), self.params.deq_precision
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        layer = relaxed_like(node, [left.data, integers], deq, origin=deq)
        self.attributes.move(node, layer)
        replace_output(node.output(0), layer.output(0))
        product = layer.output(0)
        if needs_sums:
            product, zero_point = self._less_sums(layer, left, right), None
        else:
            zero_point = self._folded_zero_point(left, integers, attributes)
        left_scale = left.scale if left.scale is not None else np.ones((), np.float32)
        if left_scale.size > 1:
            left_scale = _transposed(np.atleast_2d(left_scale), attributes["transpose_a"])
        scale = _product(
            self._of_columns(left_scale, (shape_of(product) or ())[-1:]),
            _transposed(right_scale, attributes["transpose_b"]),
            [len(shape_of(value) or (None, None)) for value in (left.data, integers)],
        )
        name = layer.get_friendly_name()
        output, nodes = write_dequantization(product, name, scale, zero_point, deq, original, scale_precision="f32")
        insert_after(layer.output(0), output, targets, nodes)

    def _of_columns(self, scale: np.ndarray, columns: tuple[int | None, ...]) -> np.ndarray:
        """The scale of input 0; equal values along the summed axis fit the columns by chance only."""
        return to_scalar_if_possible(scale)

    def _zero_point_of(self, right: Dequantization) -> np.ndarray | None:
        return right.zero_point

    def _has_zero_point(self, right: Dequantization) -> bool:
        zero_point = self._zero_point_of(right)
        return zero_point is not None and bool(zero_point.any())

    def _needs_sums(self, node: Node, left: Dequantization) -> bool:
        """Whether a zero point meets data."""
        right = self._right(node)
        if right.empty:
            return False
        return self._has_zero_point(right) or (
            left.zero_point is not None and not isinstance(right.data.get_node(), Constant)
        )

    def _signed(self, node: Node, right: Dequantization, integers: Output) -> tuple[Dequantization, Output]:
        """``b - zb == (b - 128) - (zb - 128)``: weights in i8, where no kernel reads u8 ones."""
        required, stored = self.attributes.get(node.input(1), Precisions), integers.get_node()
        allowed = required.value if required else self.params.default_precisions
        if right.zero_point is None or precision_of(integers) != "u8" or "u8" in allowed:
            return right, integers
        if not isinstance(stored, Constant):
            return right, integers
        signed = values_of(stored).astype(np.int16) - 128
        return replace(right, zero_point=right.zero_point - 128), constant(signed, "i8").output(0)

    def _less_sums(self, layer: Node, left: Dequantization, right: Dequantization) -> Output:
        """The result less what the zero points add to it."""
        zero_left, zero_right = (
            np.float32(0) if found.zero_point is None else found.zero_point.reshape(-1)[0] for found in (left, right)
        )
        result, nodes = layer.output(0), []
        if zero_left:
            nodes += self._summed(layer, 1, -zero_left)
            result = opset1.add(result, nodes[-1]).output(0)
            nodes.append(result.get_node())
        if zero_right:
            length = shape_of(left.data)[_contracted(layer, 0)]
            nodes += self._summed(layer, 0, -zero_right, float(zero_right * zero_left * length))
            result = opset1.add(result, nodes[-1]).output(0)
            nodes.append(result.get_node())
        for index, node in enumerate(nodes):
            node.set_friendly_name(dequantization_name(layer.get_friendly_name(), f"Sums{index}"))
        return result

    def _summed(self, layer: Node, port: int, factor: np.float32, term: float = 0) -> list[Node]:
        """``factor * sum_k + term`` of an input, [..., 1, n] of the second and [..., m, 1] of the first.

        Where either input is a vector the result has no such axis of 1.
        """
        axis, deq = constant(np.array([_contracted(layer, port)]), "i64"), self.params.deq_precision
        inputs = [layer.input_value(port), axis.output(0)]
        nodes = [relaxed("ReduceSum", inputs, deq, {"keep_dims": False}, origin=deq)]
        nodes.append(opset1.multiply(nodes[-1], constant(factor, deq)))
        if term:
            nodes.append(opset1.add(nodes[-1], constant(term, deq)))
        rank, other = (len(shape_of(layer.input_value(each))) for each in (port, 1 - port))
        if 1 not in (rank, other):
            shape = constant(np.array([0] * (rank - 2) + ([1, -1] if port else [-1, 1])), "i64")
            nodes.append(opset1.reshape(nodes[-1], shape, special_zero=True))
        return nodes

    def _integers(self, node: Node) -> tuple[Output, np.ndarray]:
        """Input 1 in low precision, and its scale."""
        right = self._right(node)
        source = right.data.get_node()
        if right.empty and source.get_type_name() == "FakeQuantize":
            details = self.details(source)
            precision = self._weights_precision(node, details)
            parts = decompose(details, precision, self.params.update_precisions)
            if not is_constant_path(source):
                stored = precision.precision if self.params.update_precisions else precision_of(source.output(0))
                quantize = write_decomposition(source, stored, details.levels, parts, self.params.deq_precision)
                self.attributes.move(source, quantize)
                return quantize.output(0), parts.scale
            values = folded_constant(source.input_value(0))
            integers = quantized_values(values, details, parts, precision.precision)
            stored = precision.precision if self.params.update_precisions else precision_of(node.input_value(1))
            return constant(integers, stored).output(0), parts.scale
        if self._is_signed_anew(node, right):
            return _signed_anew(source, _offset(self.dequantization(node, 1))), right.scale
        return right.data, right.scale if right.scale is not None else np.ones((), np.float32)

    @staticmethod
    def _folded_zero_point(left: Dequantization, integers: Output, attributes: dict) -> np.ndarray | None:
        if left.zero_point is None:
            return None
        weights = values_of(integers.get_node())
        weights = np.swapaxes(weights, -1, -2) if attributes["transpose_b"] and weights.ndim > 1 else weights
        depth, rank = weights.shape[-2 if weights.ndim > 1 else 0], len(shape_of(left.data))
        if left.zero_point.size == 1:
            sums = weights.sum(-2 if weights.ndim > 1 else 0, dtype=np.int32, keepdims=weights.ndim > 1 and rank > 1)
            row = (sums * left.zero_point.reshape(-1)).astype(np.float32)
            return to_scalar_if_possible(row.reshape((1,) * (rank - row.ndim) + row.shape))
        zero_point = left.zero_point.reshape((1,) * (rank - left.zero_point.ndim) + left.zero_point.shape)
        zero_point = _transposed(zero_point, attributes["transpose_a"])
        return (np.broadcast_to(zero_point, (*zero_point.shape[:-1], depth)) @ weights.astype(np.float32)).astype(
            np.float32
        )


def _offset(found: Dequantization) -> np.float32:
    """What is taken from what a FakeQuantize gives in u8, so that it fits i8: its zero point, where that does."""
    low, high = (values_of(end.get_node()) for end in found.data.get_node().input_values()[3:])
    point = np.float32(128) if found.zero_point is None else np.rint(found.zero_point.reshape(-1)[0])
    return point if (low - point >= -128).all() and (high - point <= 127).all() else np.float32(128)


def _signed_anew(quantize: Node, offset: np.float32) -> Output:
    """What a FakeQuantize gives in u8, in i8."""
    data, *ends = quantize.input_values()
    ends[2:] = [constant(values_of(end.get_node()) - offset, precision_of(end)).output(0) for end in ends[2:]]
    signed = fake_quantize_node(data, ends, quantize.get_attributes()["levels"], "i8")
    signed.set_friendly_name(made_for(quantize.get_friendly_name(), Made.SIGNED))
    return signed.output(0)


def _contracted(node: Node, port: int) -> int:
    """The axis of an input over which a MatMul sums."""
    rank = len(shape_of(node.input_value(port)))
    is_last = node.get_attributes()["transpose_a" if port == 0 else "transpose_b"] == bool(port)
    return rank - 1 if is_last else rank - 2


def _transposed(scale: np.ndarray, transpose: bool) -> np.ndarray:
    return np.swapaxes(scale, -1, -2) if transpose and scale.ndim > 1 else scale


def _product(left: np.ndarray, right: np.ndarray, ranks: Sequence[int]) -> np.ndarray:
    """Of the scales, in the form of the result: that of a vector has no rows, that with a vector no columns."""
    right = (
        right.reshape(-1)[0].reshape(())
        if is_scalar_like(right)
        else right.reshape((1,) * (max(ranks[0], 2) - right.ndim) + right.shape)
    )
    scale = to_scalar_if_possible((left * right).astype(np.float32))
    for axis, rank in zip((-2, -1), ranks, strict=True):
        scale = scale.squeeze(axis) if rank == 1 and scale.ndim else scale
    return scale
