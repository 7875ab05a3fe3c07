"""What convolutions share: the conditions, and the rewrite itself."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovlpt.attributes import DisableCleanup, ZeroPointAfter
from ovlpt.graph.constants import constant, precision_of, rounded_to, values_of
from ovlpt.graph.dequantization import Dequantization, write_dequantization
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import relaxed, relaxed_like
from ovlpt.graph.weights import (
    Weights,
    folded_constant,
    remainder,
    rounded_zero_point,
    varies_along,
    without_zero,
    zero_point_fits,
)
from ovlpt.layer_transformation import (
    LayerTransformation,
    insert_after,
    replace_output,
    shape_of,
)
from ovlpt.openvino_api import Node, Output
from ovlpt.operations.values import is_scalar_like
from ovlpt.trace import reject, reject_unless


class WeightableLayerTransformation(LayerTransformation):
    """``conv((x - zx) * sx, (w - zw) * sw) == conv(x - zx, w - zw) * (sx * sw)``.

    The subtractions stay before the convolution: plugins execute them as zero points. Only that of the data of what was
    a MatMul becomes a constant after it, as after a MatMul.
    """

    reads_multiply: ClassVar[bool] = True  # what is shown to the pass follows a Multiply

    # Conditions

    def can_be_transformed(self, node: Node) -> None:
        found = self.require_dequantization(node)
        self.check_row(node, found)
        self._check_axis(node, found)
        reject_unless(found.multiply is not None, "no_scale", "the activations have a zero point but no scale")
        self.check_activations(node, found)
        if self.params.update_precisions:
            reject_unless(found.is_low_precision, "activation_precision", f"the activations are {found.data_precision}")
            reject_unless(
                zero_point_fits(found.zero_point, found.data_precision),
                "zero_point_range",
                without_zero("the data", found.zero_point, found.data_precision),
            )
            reject_unless(
                found.zero_point_precision in (None, "f32", "f16", found.data_precision),
                "zero_point_precision",
                f"the zero point has type {found.zero_point_precision}, the data {found.data_precision}",
            )
        self._check_weights(self.weights(node), found)

    def _check_weights(self, weights: Weights, found: Dequantization) -> None:
        reject_unless(
            weights.are_constant or found.zero_point is None,
            "dynamic_weights",
            "the weights are not constant, and the data has a zero point",
        )
        if remainder(weights.zero_point, weights.precision) is not None:
            _reject_fraction(weights.zero_point)

    def _check_axis(self, node: Node, found: Dequantization) -> None:
        """After a MatMul constants differ by columns."""
        rank = len(shape_of(found.data))
        for values in (found.scale, found.zero_point):
            if values is None or is_scalar_like(values):
                continue
            reject_unless(
                varies_along(values, rank, (1,)) or self._takes_for_channels(node, values),
                "not_per_channel",
                f"its scale or zero point has the shape {list(values.shape)} and varies along another axis than that of the channels",
            )

    def _takes_for_channels(self, node: Node, values: np.ndarray) -> bool:
        """Whether constants along another axis count as such of channels."""
        return False

    def check_activations(self, node: Node, found: Dequantization) -> None:
        reject_unless(
            is_scalar_like(found.scale),
            "per_channel_activations",
            f"the data has a scale per channel ({found.scale.size}) and the channels are summed",
        )

    # Rewrite

    def transform(self, node: Node) -> None:
        found, weights = self.dequantization(node), self.weights(node)
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        inputs = [self._activations(node, found), self._weights_input(node, weights), *node.input_values()[2:]]
        precision = self.params.deq_precision
        layer = relaxed_like(node, inputs, precision, origin=precision)
        self.attributes.move(node, layer)
        replace_output(node.output(0), layer.output(0))
        scale, shift = self._output_scale(node, found, weights), self._output_shift(node, found, weights)
        output, nodes = write_dequantization(
            layer.output(0), layer.get_friendly_name(), scale, shift, precision, original
        )
        insert_after(layer.output(0), output, targets, nodes)

    def _activations(self, node: Node, found: Dequantization) -> Output:
        """The raw data, minus its zero point as an array of one value per input channel, if that is subtracted here."""
        name = made_for(node.get_friendly_name(), Made.ZERO_POINT)
        if found.zero_point is None or self._zero_point_is_after(node, found):
            return found.data
        if not found.is_low_precision:  # precisions are not updated
            return self._real_less_zero_point(node, found, name)
        zero_point = rounded_zero_point(found.zero_point, found.data_precision)
        if zero_point is None:
            return found.data
        return self._minus(
            found.data, self._per_channel(node, zero_point, found), found.data_precision, name, found.precision
        )

    def _real_less_zero_point(self, node: Node, found: Dequantization, name: str) -> Output:
        data = found.data if found.convert is None else found.convert.output(0)
        zero_point = self._per_channel(node, found.zero_point, found)
        return self._minus(data, zero_point, found.precision, name, found.precision)

    def _per_channel(self, node: Node, zero_point: np.ndarray, found: Dequantization) -> np.ndarray:
        spatial = (1,) * (len(shape_of(found.data)) - 2)
        return np.broadcast_to(zero_point.reshape(1, -1, *spatial), (1, self.input_channels(node), *spatial))

    def input_channels(self, node: Node) -> int:
        """As the weights have them: the data's own number may be open."""
        return node.get_input_shape(1)[1]

    def _weights_input(self, node: Node, weights: Weights) -> Output:
        integers = weights.integers()
        if weights.fake_quantize is not None and not self.params.update_precisions:
            integers = constant(values_of(integers.get_node()), precision_of(node.input_value(1))).output(0)
        zero_point = rounded_zero_point(weights.zero_point, weights.precision)
        if zero_point is None:
            return integers
        spread = self._spread(zero_point, weights)
        name = f"{node.get_friendly_name()}/WeightsZeroPoint"
        output_precision = "f32" if weights.fake_quantize else precision_of(node.input_value(1))
        return self._minus(integers, spread, weights.precision, name, output_precision)

    def _spread(self, zero_point: np.ndarray, weights: Weights) -> np.ndarray:
        """The zero point of the weights, as it is stored."""
        return self._per_output(zero_point, weights)

    def _per_output(self, values: np.ndarray, weights: Weights) -> np.ndarray:
        """One value for each output channel, in the layout of the weights."""
        axes = self.operation.weights_axes
        shape = [size if axis in axes else 1 for axis, size in enumerate(weights.shape)]
        if values.size == np.prod(shape):
            return values.reshape(shape)
        return np.broadcast_to(values.reshape(()) if values.size == 1 else values, shape)

    def _minus(self, data: Output, zero_point: np.ndarray, precision: str, name: str, output_precision: str) -> Output:
        stored = constant(zero_point, precision).output(0)
        origin = self.params.deq_precision
        subtract = relaxed("Subtract", [data, stored], output_precision, {"auto_broadcast": "numpy"}, origin=origin)
        subtract.set_friendly_name(name)
        self.attributes.set(subtract, DisableCleanup(True))  # plugins recognize it
        return subtract.output(0)

    def _output_scale(self, node: Node, found: Dequantization, weights: Weights) -> np.ndarray:
        """``sx * sw`` in the layout of the output: one value, or [1, C_out, 1, …]."""
        rank = len(shape_of(node.output(0)))
        scale = weights.scale if weights.scale.size == 1 else self._per_output(weights.scale, weights)
        scales = self._activation_scale(node, found), scale.reshape(-1)
        product = np.multiply(*(rounded_to(each, self.params.deq_precision) for each in scales))
        if is_scalar_like(product):
            return product.reshape(-1)[0].reshape((1,) * rank)
        return product.reshape(1, -1, *(1 for _ in range(rank - 2)))

    def _zero_point_is_after(self, node: Node, found: Dequantization) -> bool:
        return found.is_low_precision and self.attributes.get(node, ZeroPointAfter) is not None

    def _remainder(self, node: Node, found: Dequantization) -> np.ndarray | None:
        """What is not subtracted before it: what rounding takes off the data's zero point, up to half a step, or all.

        Under padding it is dropped: at the border only a part of its sum is due, and the rest may be more than what is
        dropped.
        """
        if self._zero_point_is_after(node, found):
            return found.zero_point
        if found.convert is None or not self._is_unpadded(node):
            return None
        return remainder(found.zero_point, found.data_precision)

    @staticmethod
    def _is_unpadded(node: Node) -> bool:
        attributes = node.get_attributes()
        padded = any(attributes["pads_begin"]) or any(attributes["pads_end"])
        return not padded and "Backprop" not in node.get_type_name()

    def _output_shift(self, node: Node, found: Dequantization, weights: Weights) -> np.ndarray | None:
        """``conv(r, w)`` of the remainder ``r``, [1, C_out, 1, …]: one sum per output channel without padding."""
        left = self._remainder(node, found)
        if left is None:
            return None
        zero_point = rounded_zero_point(weights.zero_point, weights.precision)
        integers = values_of(weights.integers().get_node())
        if zero_point is not None:
            integers = integers - zero_point
        first = len(self.operation.weights_axes)  # of the axes that are summed: [(G,) O, I, …]
        if left.size == 1:
            shift = integers.sum(axis=tuple(range(first, integers.ndim))) * left.reshape(())
        else:
            groups, channels = integers.shape[0] if first == 2 else 1, integers.shape[first]
            inputs = integers.sum(axis=tuple(range(first + 1, integers.ndim)))
            shift = inputs.reshape(groups, -1, channels) @ left.reshape(groups, channels, 1)
        return shift.reshape(1, -1, *(1 for _ in shape_of(node.output(0))[2:])).astype(np.float32)

    def _activation_scale(self, node: Node, found: Dequantization) -> np.ndarray:
        """One value, or one per output channel."""
        return found.scale.reshape(-1)[:1]

    def rejected(self, node: Node) -> bool:
        """A convolution that stays in float after a dequantization reads plain weights."""
        value = node.input_value(1)
        if self.reads_multiply and node.input_value(0).get_node().get_type_name() != "Multiply":
            return False
        if value.get_node().get_type_name() not in ("Multiply", "FakeQuantize", "Reshape"):
            return False
        if value.get_node().get_type_name() == "FakeQuantize" and not _folds(value.get_node()):
            return False
        folded = folded_constant(value)
        if folded is None:
            return False
        node.input(1).replace_source_output(constant(folded, precision_of(value)).output(0))
        return True


def _reject_fraction(zero_point: np.ndarray) -> None:
    """Names the value farthest from an integer."""
    values = zero_point.reshape(-1)
    worst = values[np.abs(values - np.rint(values)).argmax()]
    text = f"the zero point of the weights is {worst:g}, and rounding it would change the numbers"
    reject("fractional_zero_point", text)


def _folds(quantize: Node) -> bool:
    """The native library folds a FakeQuantize whose intervals vary along one axis at most."""
    details = QuantizationDetails.of(quantize)
    return details is not None and all(sum(size > 1 for size in end.shape) <= 1 for end in details.intervals)
