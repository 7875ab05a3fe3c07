"""Weights without a zero point: where that is exact, and where it is asked for, in a coarser step."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ovlpt.attributes import WeightsBeforeCanonicalization
from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.graph.constants import constant, is_constant_path, precision_of, values_of
from ovlpt.graph.dequantization import read_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import MOVES_WEIGHTS, folded_constant
from ovlpt.layer_transformation import LayerTransformation, read_once, replace_output
from ovlpt.openvino_api import Constant, Node, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT4, INT8, fits
from ovlpt.trace import Reason, Rejected, reject_unless

_FAR = 1 << 14  # from integers of 8 bits
_STEP = 1e-4  # of a quantization step: what float32 intervals leave of a whole number


def feeds_weights(node: Node) -> bool:
    """Whether weighted operations alone read the node, as their weights."""
    pending = [node]
    while pending:
        targets = pending.pop().output(0).get_target_inputs()
        for target in targets:
            reader = target.get_node()
            if reader.get_type_name() in MOVES_WEIGHTS:
                pending.append(reader)
            elif getattr(OPERATIONS.get(reader.get_type_name()), "kind", None) != "weighted" or (
                target.get_index() == 0 and not _is_first_of_product(reader)
            ):
                return False
        if not targets:
            return False
    return True


def _is_first_of_product(node: Node) -> bool:
    """Whether a node is a MatMul whose first input is constant and whose second is data."""
    inputs = [value.get_node() for value in node.input_values()]
    return node.get_type_name() == "MatMul" and is_constant_path(inputs[0]) and not is_constant_path(inputs[1])


class _SymmetricWeights(LayerTransformation):
    """``(w - z) * s == w' * s`` with ``w' = w - z`` stored in i8."""

    reversible = True

    def _checked(self, integers: np.ndarray) -> np.ndarray:
        low, high = int(integers.min()), int(integers.max())
        reject_unless(
            low >= -128 and high <= 127,
            "weights_range",
            f"without their zero point the weights reach from {low} to {high}, beyond i8",
        )
        return integers

    def _store(self, node: Node, integers: np.ndarray, scale: np.ndarray) -> None:
        precision = precision_of(node.output(0))
        stored = opset1.convert(constant(integers, "i8"), precision)
        weights = opset1.multiply(stored, constant(scale, precision))
        weights.set_friendly_name(node.get_friendly_name())
        self.attributes.set(weights, WeightsBeforeCanonicalization(node.output(0)))
        replace_output(node.output(0), weights.output(0))


class SymmetricIntegerWeights(_SymmetricWeights):
    """Stored integers of 4 bits, and those of 8 with a zero point, as the u8 weights around 128 of ONNX models."""

    why = Reason("weights_zero_point", "kernels need i8 weights without a zero point, and these integers fit i8")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Multiply"]

    def concerns(self, node: Node) -> bool:
        found = read_dequantization(node.output(0), INT8)
        is_stored = isinstance(found.data.get_node(), Constant) and found.data_precision in (*INT8, *INT4)
        return (
            is_stored
            and found.multiply is not None
            and (found.data_precision != "i8" or found.zero_point is not None)
            and feeds_weights(node)
        )

    def can_be_transformed(self, node: Node) -> None:
        self._integers(node)

    def transform(self, node: Node) -> None:
        self._store(node, self._integers(node), read_dequantization(node.output(0), INT8).scale)

    @read_once
    def _integers(self, node: Node) -> np.ndarray:
        found = read_dequantization(node.output(0), INT8)
        zero_point = np.zeros((), np.float32) if found.zero_point is None else found.zero_point
        whole = np.rint(zero_point)
        reject_unless(
            (zero_point == whole).all(),
            "fractional_zero_point",
            f"the zero point {float(zero_point[zero_point != whole][:1].sum()):g} is not an integer",
        )
        wide = np.int16 if np.abs(whole).max(initial=0) < _FAR else np.int32  # half the memory is half the time
        return self._checked(values_of(found.data.get_node()).astype(wide) - whole.astype(wide))


class CoarserIntegerWeights(SymmetricIntegerWeights):
    """Stored integers that reach beyond i8 without their zero point, as in old TFLite files: the output channels that do get a
    coarser step. This is not exact; all other channels keep their integers.
    """

    why = Reason(
        "weights_range", "kernels need i8 weights without a zero point, and those of a few channels are rounded"
    )

    def concerns(self, node: Node) -> bool:
        if not self.params.coarser_weights or not super().concerns(node):
            return False
        with suppress(Rejected):
            return bool(_beyond(self._integers(node)).any())
        return False

    def transform(self, node: Node) -> None:
        integers = self._integers(node)
        others = tuple(axis for axis in range(integers.ndim) if not _is_of_outputs(node, axis))
        factor = np.maximum(_beyond(integers).max(others, keepdims=True), 1)
        scale = read_dequantization(node.output(0), INT8).scale * factor
        self._store(node, np.rint(integers / factor).astype(np.int32), scale.astype(np.float32))

    def _checked(self, integers: np.ndarray) -> np.ndarray:
        return integers


def _beyond(integers: np.ndarray) -> np.ndarray:
    """How many times the ends of i8 integers beyond it are, and 0 for others."""
    times = np.maximum(integers / 127, integers / -128)
    return np.where(times > 1, times, 0)


def _is_of_outputs(weights: Node, axis: int) -> bool:
    """Whether along an axis of stored weights nothing but the output channels of all that reads them changes."""
    sizes = shape_of(weights.output(0))
    index = np.arange(sizes[axis]).reshape([-1 if at == axis else 1 for at in range(len(sizes))])
    pending = [(weights, np.broadcast_to(index, sizes))]
    while pending:
        node, index = pending.pop()
        for target in node.output(0).get_target_inputs():
            reader = target.get_node()
            if reader.get_type_name() == "Transpose":
                pending.append((reader, index.transpose(values_of(reader.input_value(1).get_node()))))
            elif reader.get_type_name() in MOVES_WEIGHTS:
                pending.append((reader, index.reshape(shape_of(reader.output(0)))))
            else:
                others = tuple(
                    at for at in range(index.ndim) if at not in _output_axes(reader, target.get_index(), index.ndim)
                )
                if (index.min(others) != index.max(others)).any():
                    return False
    return True


def _output_axes(layer: Node, port: int, rank: int) -> tuple[int, ...]:
    if layer.get_type_name() != "MatMul":
        return OPERATIONS[layer.get_type_name()].weights_axes
    is_turned = layer.get_attributes()["transpose_b" if port else "transpose_a"]
    return (rank - (1 if bool(port) != is_turned else 2),)


class SymmetricQuantizedWeights(_SymmetricWeights):
    """Weights after a FakeQuantize that low precision does not take as it is: other levels, an asymmetric interval, or
    the first place in a MatMul, where a FakeQuantize is one of data.

    The grid is that of an i8 type where it holds zero, and where the values that occur lie near enough to it.
    """

    why = Reason("weights_grid", "its grid contains zero, and all values that occur fit i8")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.FakeQuantize"]

    def concerns(self, node: Node) -> bool:
        details = QuantizationDetails.of(node)
        if details is None or folded_constant(node.input_value(0)) is None or not feeds_weights(node):
            return False
        asked = details.precision
        as_it_is = fits("i8", details.levels) and asked.precision == "i8" and not asked.has_zero_point
        return not as_it_is or any(
            target.get_index() == 0 and target.get_node().get_type_name() == "MatMul"
            for target in node.output(0).get_target_inputs()
        )

    def can_be_transformed(self, node: Node) -> None:
        self._weights(node)

    def transform(self, node: Node) -> None:
        self._store(node, *self._weights(node))

    @read_once
    def _weights(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """The integers and their scale."""
        details = QuantizationDetails.of(node)
        low, high = np.broadcast_arrays(details.output_low, details.output_high)
        steps = details.levels - 1
        width = high.astype(np.float64) - low
        point = width == 0  # a channel of one value
        step = np.where(point, np.where(low == 0, 1, low), width / steps)
        zero_point = np.where(point, np.where(low == 0, 0, -1), -low / step)
        whole = np.rint(zero_point)
        distance = np.abs(zero_point - whole)
        reject_unless(
            (distance < _STEP).all(),
            "weights_grid",
            f"zero lies {distance.max():.2g} of a step off the grid of the weights, [{low.min():g}, {high.max():g}] "
            f"in {details.levels} levels",
        )
        inputs = folded_constant(node.input_value(0)), details.input_low, details.input_high
        index = fake_quantize(*inputs, np.float32(0), np.where(point, 0, steps), details.levels)
        integers = (np.rint(index) - whole).astype(np.int32) * np.where(step < 0, -1, 1)
        return self._checked(integers), np.abs(step).astype(np.float32)
