"""Quantized weights of convolutions: found, checked, and turned into integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.graph.constants import constant, is_constant_path, meets, precision_of, values_of
from ovlpt.graph.decomposition import decompose, quantized_values
from ovlpt.graph.dequantization import read_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations.families import REARRANGES, RESHAPES
from ovlpt.precisions import INT8, NUMPY, REAL, DataPrecision, fits, is_low, round_half_away
from ovlpt.trace import reject, reject_unless

# What weights pass on their way to the layer, their values unchanged
MOVES_WEIGHTS = frozenset(("Convert", "Reshape", "Transpose", "Unsqueeze"))


@dataclass(frozen=True)
class Weights:
    """Quantized weights: ``w = (integers - zero_point) * scale``; the constants broadcast against the stored values."""

    source: Output  # the integers, or a Constant of the real values that ``fake_quantize`` quantizes
    fake_quantize: Node | None
    scale: np.ndarray
    zero_point: np.ndarray | None
    precision: str
    shape: tuple[int, ...]  # as the operation reads them, after a Reshape

    @property
    def are_constant(self) -> bool:
        return isinstance(self.source.get_node(), Constant)

    def integers(self) -> Output:
        """Of ``precision`` and ``shape``; a Constant where the weights are."""
        if self.fake_quantize is None and shape_of(self.source) == self.shape:
            return self.source
        values = values_of(self.source.get_node())
        if self.fake_quantize is not None:
            details = QuantizationDetails.of(self.fake_quantize)
            data_precision = DataPrecision.of(self.precision, details.levels, self.zero_point is not None)
            values = quantized_values(values, details, decompose(details, data_precision), self.precision)
        return constant(values.reshape(self.shape), self.precision).output(0)


def read_weights(
    node: Node, axes: Sequence[int], allowed: Sequence[str] = INT8, default_precisions: Sequence[str] = INT8
) -> Weights:
    """The weights on input 1 of a convolution; raises `Rejected` where they are not usable.

    ``axes``: the output channels of the weights, the only axes along which a scale may vary. ``allowed``: element types
    of the integers, in order of preference.
    """
    value = node.input_value(1)
    reject_unless(value.get_partial_shape().is_static, "dynamic_weights", "the shape of the weights is not known")
    shape = shape_of(value)
    value, axes = _before_reshape(value, axes)
    if value.get_node().get_type_name() == "FakeQuantize":
        return _fake_quantized(value.get_node(), shape, axes, allowed)
    return _dequantized(value, shape, axes, default_precisions)


def _before_reshape(value: Output, axes: Sequence[int]) -> tuple[Output, Sequence[int]]:
    """Weights before the Reshape that the layer reads, and the axes of their output channels there."""
    if value.get_node().get_type_name() != "Reshape":
        return value, axes
    before = value.get_node().input_value(0)
    return before, axes[:1] if _keeps_outputs(shape_of(before), shape_of(value), axes) else ()


def _keeps_outputs(before: tuple[int, ...], after: tuple[int, ...], axes: Sequence[int]) -> bool:
    """Whether a Reshape leaves the output channels of weights as they are, or only takes their groups apart."""
    first, channels = axes[0], np.cumprod([after[axis] for axis in axes])
    return len(before) > first and before[:first] == after[:first] and before[first] in channels


def _fake_quantized(quantize: Node, shape: tuple[int, ...], axes: Sequence[int], allowed: Sequence[str]) -> Weights:
    details = QuantizationDetails.of(quantize)
    reject_unless(details is not None, "dynamic_intervals", "an interval bound of the weights is not a constant")
    reject_unless(details.is_supported, "weights_levels", f"the weights have {details.levels} levels")
    source = quantize.input_value(0)
    if not isinstance(source.get_node(), Constant):
        folded = folded_constant(source)
        reject_unless(folded is not None, "dynamic_weights", "the weights are not constant")
        source = constant(folded).output(0)
    for end in details.intervals[2:]:
        _check_axes(end, len(shape_of(source)), axes)
    data_precision = weights_precision(details, allowed)
    precision, parts = data_precision.precision, decompose(details, data_precision)
    _check_zero_point(parts.zero_point, precision)
    return Weights(source, quantize, parts.scale, parts.zero_point, precision, shape)


def weights_precision(details: QuantizationDetails, allowed: Sequence[str], what: str = "the weights") -> DataPrecision:
    """The type that a constant's intervals ask for where it is allowed, else the first allowed one with a zero point.

    Raises `Rejected` where the levels do not fit it.
    """
    asked = details.precision
    if not allowed and asked.precision is not None:
        return DataPrecision.of(asked.precision, details.levels, asked.has_zero_point)
    reject_unless(allowed, "consumer_forbids", f"no type is allowed for {what}, and its intervals ask for none")
    precision = asked.precision if asked.precision in allowed else allowed[0]
    reject_unless(
        fits(precision, details.levels), "weights_levels", f"{details.levels} levels of {what} do not fit {precision}"
    )
    return DataPrecision.of(precision, details.levels, asked.precision != precision or asked.has_zero_point)


def _dequantized(
    value: Output, shape: tuple[int, ...], axes: Sequence[int], default_precisions: Sequence[str]
) -> Weights:
    found = read_dequantization(value, default_precisions)
    reject_unless(not found.empty and found.multiply, "weights_not_quantized", "the weights are not quantized")
    source = found.data
    if source.get_node().get_type_name() == "FakeQuantize" and (folded := folded_constant(source)) is not None:
        source = constant(np.rint(folded), precision_of(source)).output(0)
    if source.get_node().get_type_name() == "Convert" and is_constant_path(source.get_node()):
        stored = precision_of(source.get_node().input_value(0))
        reject("weights_precision", f"the weights are stored as {stored}")
    is_direct = found.zero_point is None and shape_of(source) == shape and is_low(found.data_precision)
    reject_unless(
        isinstance(source.get_node(), Constant) or is_direct,
        "dynamic_weights",
        "the weights are not constant, and have a zero point",
    )
    reject_unless(
        is_low(found.data_precision), "weights_precision", f"the weights are stored as {found.data_precision}"
    )
    reject_unless(
        found.zero_point_precision in (None, "f32", "f16", found.data_precision),
        "zero_point_precision",
        f"the weights' zero point has type {found.zero_point_precision}, the weights {found.data_precision}",
    )
    _check_zero_point(found.zero_point, found.data_precision)
    for values in (found.scale, found.zero_point):
        if values is not None:
            _check_axes(values, len(shape_of(found.data)), axes)
    return Weights(source, None, found.scale, found.zero_point, found.data_precision, shape)


def _check_zero_point(zero_point: np.ndarray | None, precision: str) -> None:
    if not zero_point_fits(zero_point, precision):
        reject(
            "weights_zero_point_range",
            without_zero("the weights", zero_point, precision),
        )


def _check_axes(values: np.ndarray, rank: int, axes: Sequence[int]) -> None:
    if not varies_along(values, rank, axes):
        shape = list(values.shape)
        reject(
            "weights_granularity",
            f"the scale of the weights has the shape {shape}; it may vary along the output channels only",
        )


def varies_along(values: np.ndarray, rank: int, axes: Sequence[int]) -> bool:
    """Whether the constant has long dimensions on ``axes`` only, aligned to ``rank`` from the right."""
    if values.size == 1:
        return True
    aligned = (1,) * (rank - values.ndim) + values.shape
    return all(size == 1 or axis in axes for axis, size in enumerate(aligned))


def has_scales_of_outputs(node: Node, axes: Sequence[int]) -> bool:
    """Whether the intervals of quantized weights, if a FakeQuantize has them, vary along the output channels only."""
    value, axes = _before_reshape(node.input_value(1), axes)
    details = QuantizationDetails.of(value.get_node()) if value.get_node().get_type_name() == "FakeQuantize" else None
    if details is None or (shape := shape_of(value)) is None:
        return True
    return all(varies_along(end, len(shape), axes) for end in details.intervals[2:])


def has_quantized_weights(node: Node, axes: Sequence[int], default_precisions: Sequence[str] = INT8) -> bool:
    """The native ``isQuantizedStatic``: looks at the form only, not at whether the numbers are usable."""
    value = node.input_value(1)
    if value.get_node().get_type_name() == "Reshape":
        value = value.get_node().input_value(0)
        axes = axes[:1]
    if value.get_node().get_type_name() == "FakeQuantize":
        details = QuantizationDetails.of(value.get_node())
        return details is not None and details.is_supported
    found = read_dequantization(value, default_precisions)
    if found.empty or found.data.get_partial_shape().rank.is_dynamic:
        return False
    rank = found.data.get_partial_shape().rank.get_length()
    if not all(varies_along(values, rank, axes) for values in (found.scale, found.zero_point) if values is not None):
        return False
    source = found.data.get_node()
    if isinstance(source, Constant):
        same_type = found.zero_point_precision in (None, "f32", "f16", found.data_precision)
        return is_low(found.data_precision) and same_type
    return source.get_type_name() == "FakeQuantize"


def rounded_zero_point(zero_point: np.ndarray | None, precision: str) -> np.ndarray | None:
    """The zero point on the integer grid of ``precision``; None where nothing is left of it."""
    if zero_point is None:
        return None
    limits = np.iinfo(NUMPY[precision])
    rounded = np.clip(round_half_away(zero_point), limits.min, limits.max)
    return rounded if rounded.any() else None


def remainder(zero_point: np.ndarray | None, precision: str) -> np.ndarray | None:
    """``zero_point`` less what `rounded_zero_point` makes of it; None where that is nothing but float32's error."""
    if zero_point is None or precision not in INT8:
        return None
    rounded = rounded_zero_point(zero_point, precision)
    left = zero_point - (0 if rounded is None else rounded)
    return left if (np.abs(left) > 1e-3).any() else None


def zero_point_fits(zero_point: np.ndarray | None, precision: str) -> bool:
    """The native ``checkZeroPoint``: within half a step of the type's range."""
    if zero_point is None:
        return True
    if precision not in INT8:
        return precision in ("f32", "f16")
    limits = np.iinfo(NUMPY[precision])
    return bool(((zero_point >= limits.min - 0.5) & (zero_point <= limits.max + 0.5)).all())


def misfit(zero_point: np.ndarray | None, precision: str) -> float:
    """The value that is farthest outside of a type's range, or nearest to its ends."""
    if zero_point is None:
        return 0.0
    limits = np.iinfo(NUMPY[precision]) if precision in INT8 else np.iinfo(np.int8)
    return float(zero_point.flat[np.maximum(zero_point - limits.max, limits.min - zero_point).argmax()])


def without_zero(what: str, zero_point: np.ndarray | None, precision: str) -> str:
    """What is said of a zero point that does not fit (`zero_point_fits`)."""
    limits = np.iinfo(NUMPY[precision]) if precision in INT8 else np.iinfo(np.int8)
    integer = f"{misfit(zero_point, precision):g}"
    return f"the interval of {what} does not contain zero, which would be {integer} where {precision} has {limits.min} to {limits.max}"


def folded_constant(value: Output) -> np.ndarray | None:
    """The value of a constant path of Convert, Subtract, Multiply, FakeQuantize, Gather and of what reshapes or transposes, in
    float32, else None.

    A Convert to integers of 8 bits has the value of what it reads where those are such integers.
    """
    node = value.get_node()
    if node.get_type_name() not in _FOLDED:  # most values: no walk begins
        return None
    return None if meets(node, _cannot_be_folded, _folded_sources) else _folded(value)


# Which inputs the value of a node is computed from; of a FakeQuantize the ends are read with it.
_FOLDED = {
    "Constant": (), "FakeQuantize": (0,), "Convert": (0,), "Multiply": (0, 1), "Subtract": (0, 1),
    "Gather": (0,), **dict.fromkeys(REARRANGES, (0,)),
}  # fmt: skip


def _cannot_be_folded(node: Node) -> bool:
    return node.get_type_name() not in _FOLDED


def _folded_sources(node: Node) -> list[Node]:
    return [node.input_value(port).get_node() for port in _FOLDED[node.get_type_name()]]


def _are_integers(values: np.ndarray | None, precision: str) -> bool:
    if values is None or precision not in INT8:
        return False
    limits = np.iinfo(NUMPY[precision])
    return bool(((values == np.rint(values)) & (values >= limits.min) & (values <= limits.max)).all())


def _folded(value: Output) -> np.ndarray | None:
    node = value.get_node()
    if isinstance(node, Constant):
        return values_of(node).astype(np.float32, copy=False)
    kind = node.get_type_name()
    if kind == "FakeQuantize":
        details, source = QuantizationDetails.of(node), _folded(node.input_value(0))
        return None if details is None or source is None else fake_quantize(source, *details.intervals, details.levels)
    if kind == "Convert":
        source, precision = _folded(node.input_value(0)), precision_of(value)
        return source if precision in REAL or _are_integers(source, precision) else None
    if kind == "Transpose":
        source, order = _folded(node.input_value(0)), node.input_value(1).get_node()
        plain = source is not None and isinstance(order, Constant)
        return source.transpose(*values_of(order)) if plain and values_of(order).size else None
    if kind in RESHAPES:
        source = _folded(node.input_value(0))
        return None if source is None or value.get_partial_shape().is_dynamic else source.reshape(shape_of(value))
    if kind in ("Multiply", "Subtract"):
        left, right = (_folded(node.input_value(port)) for port in (1, 0))
        if left is None or right is None:
            return None
        with np.errstate(invalid="ignore"):  # 0 * inf of a mask, whose scale is beyond f32
            return right * left if kind == "Multiply" else right - left
    return _gathered(node) if kind == "Gather" else None


def _gathered(node: Node) -> np.ndarray | None:
    """As a table of relative positions is read, by indices that are constant."""
    table, (indices, axis) = _folded(node.input_value(0)), (value.get_node() for value in node.input_values()[1:])
    is_plain = (
        isinstance(indices, Constant) and isinstance(axis, Constant) and not node.get_attributes().get("batch_dims")
    )
    return np.take(table, values_of(indices), int(values_of(axis).item())) if table is not None and is_plain else None
