from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import add, mul, sub

import numpy as np

from ovlpt.cleanup import native
from ovlpt.cleanup.scale_adjustment import ScaleAdjustment
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.quantization_details import QuantizationDetails, finite
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import ModelTransformation, joins_interface, replace_output
from ovlpt.openvino_api import Model, Node, Output, opset1
from ovlpt.operations import operation_of
from ovlpt.precisions import INT8, NUMPY
from ovlpt.trace import Outcome, Reason, Rejected

_TOLERANCE = 1e-6
_LARGEST_STEP = 1.0
_MARGIN = 10.0
_HALF = 0.501  # and what float32 rounds
_RANGES = {
    "Sigmoid": (0.0, 1.0),
    "HardSigmoid": (0.0, 1.0),
    "HSigmoid": (0.0, 1.0),
    "Softmax": (0.0, 1.0),
    "Tanh": (-1.0, 1.0),
}
_MOVES: dict[str, Callable[[float, float], float]] = {"Add": add, "Subtract": sub, "Multiply": mul}


class FQStrippingTransformation(ModelTransformation):
    """Removes each FakeQuantize with one of the given ``levels`` that maps its interval onto itself; what it clips stays clipped.

    For devices without arithmetic of so many levels (65536: 16 bits), which would only round. Not in `LowPrecision`.
    A quantizer may have left the clipping of a Relu or Clip to the interval: ONNX Runtime's does where it begins at 0.
    Plugins drop it all the same, and ``native_only`` does, but not between an input or output of the model and another
    output, whose names would become one: plugins cannot compile the FakeQuantize there.
    With ``need_weights_adjustment``, for inference in f16, values with a step above 1 are made smaller where only
    normalizations read them, since they could overflow.
    """

    def __init__(self, levels: Iterable[int], need_weights_adjustment: bool = False, **settings):
        super().__init__(**settings)
        self.levels = frozenset(levels)
        self.need_weights_adjustment = need_weights_adjustment

    def run_on_model(self, model: Model) -> bool:
        found = [node for node in all_nodes(model) if self._only_rounds(node)]
        if self.need_weights_adjustment:
            for node in found:  # all, while none is clipped by a constant that would not follow
                if (step := float(_step(QuantizationDetails.of(node)).max())) > _LARGEST_STEP:
                    self._adjust(node, step * _MARGIN)
        for node in found:
            source = node.input_value(0)
            is_idle = self.params.native_only or _lies_within(node) or _is_clipped_after(node)
            if joins_interface(source, node.output(0)) or not is_idle:
                source = _clipped(node)
            replace_output(node.output(0), source)
            self._record(Outcome.TRANSFORMED, node)
        return bool(found)

    def _only_rounds(self, node: Node) -> bool:
        """Whether ``node`` is a FakeQuantize of such levels that gives, but for the rounding, what it takes from its interval."""
        if node.get_type_name() != "FakeQuantize" or node.get_attributes()["levels"] not in self.levels:
            return False
        if self._leave_alone(node):
            return False
        details = QuantizationDetails.of(node)
        if details is None:
            text = "a bound of its intervals is not a constant"
            self._record(Outcome.REJECTED, node, Reason("dynamic_intervals", text))
            return False
        ends = details.intervals if self.params.native_only else [finite(end) for end in details.intervals]
        with np.errstate(invalid="ignore"):
            moved = max(_distance(ends[0], ends[2]), _distance(ends[1], ends[3]))
        if moved > _TOLERANCE:
            text = f"its output interval lies {moved:g} off its input interval"
            self._record(Outcome.REJECTED, node, Reason("maps_range", text))
        return moved <= _TOLERANCE

    def _adjust(self, node: Node, divisor: float) -> None:
        adjustment = (native.ScaleAdjustment if self.params.native_only else ScaleAdjustment)(divisor)
        try:
            adjustment.find(node.output(0))
        except Rejected as refusal:
            self._record(Outcome.REJECTED, node, refusal.reason)  # it is removed all the same
        else:
            adjustment.apply()


def _clipped(node: Node) -> Output:
    """What the interval of a FakeQuantize lets through, under its name."""
    data, low, high, *_ = node.input_values()
    ends = [constant_above(end) for end in (low, high)]
    if all(end is not None and end.size == 1 for end in ends):
        clip = opset1.clamp(data, *(float(finite(end).item()) for end in ends))
    else:
        clip = opset1.minimum(opset1.maximum(data, low), high)
    clip.set_friendly_name(node.get_friendly_name())
    return clip.output(0)


def _lies_within(node: Node) -> bool:
    """Whether a FakeQuantize takes nothing that is more than a step beyond its interval, as far as the graph shows, or than half
    a step of a coarser grid that its data lies on: of a tensor in 8 and in 16 bits the zero points are rounded apart.
    """
    details, grid = QuantizationDetails.of(node), _grid_of(node.input_value(0))
    tolerance = np.maximum(_step(details), grid.step * _HALF)
    low, high = details.input_low - tolerance, details.input_high + tolerance
    return bool((grid.low >= low).all() and (grid.high <= high).all())


def _is_clipped_after(node: Node) -> bool:
    """Whether what reads a FakeQuantize quantizes what it clips to the same ends."""
    ends, readers = QuantizationDetails.of(node), targets_of(node.output(0))
    return bool(readers) and all(
        each.get_index() == 0 and _clips_as(each.get_node(), ends.input_low, ends.input_high) for each in readers
    )


def _clips_as(reader: Node, low: np.ndarray, high: np.ndarray) -> bool:
    details = QuantizationDetails.of(reader) if reader.get_type_name() == "FakeQuantize" else None
    if details is None or (details.input_low >= details.input_high).any():
        return False
    half = _step(details) * (1 - _TOLERANCE) / 2
    return bool((low <= details.input_low + half).all() and (high >= details.input_high - half).all())


@dataclass(frozen=True)
class _Grid:
    """Between which numbers all elements lie, and the least step between two of them; 0 where that is not known."""

    low: float = -np.inf
    high: float = np.inf
    step: float = 0.0


def _grid_of(value: Output) -> _Grid:
    node = value.get_node()
    kind, row = node.get_type_name(), operation_of(node.get_type_name())
    if kind == "FakeQuantize" and (details := QuantizationDetails.of(node)) is not None:
        ends = details.output_low, details.output_high
        step = np.abs(np.subtract(*ends)).min() / (details.levels - 1)
        return _Grid(float(np.minimum(*ends).min()), float(np.maximum(*ends).max()), float(step))
    if kind == "Clamp":
        return _Grid(node.get_attributes()["min"], node.get_attributes()["max"])
    if kind == "Relu":
        inner = _grid_of(node.input_value(0))
        return _Grid(max(inner.low, 0.0), max(inner.high, 0.0), inner.step)
    if row is not None and row.copies:
        ports = row.data_inputs or range(node.get_input_size())
        found = [_grid_of(node.input_value(port)) for port in ports]
        return _Grid(
            min(each.low for each in found), max(each.high for each in found), min(each.step for each in found)
        )
    if kind == "Convert":
        return _of_integers(node.input_value(0))
    if kind in _MOVES:
        return _moved(node)
    return _Grid(*_RANGES.get(kind, ()))


def _of_integers(value: Output) -> _Grid:
    """What a Convert makes of stored integers of 8 bits."""
    if precision_of(value) not in INT8:
        return _Grid()
    limits = np.iinfo(NUMPY[precision_of(value)])
    return _Grid(float(limits.min), float(limits.max), 1.0)


def _moved(node: Node) -> _Grid:
    """By one number: dequantized, or scaled."""
    value, move = node.input_value(1), _MOVES[node.get_type_name()]
    sizes = shape_of(value)
    number = folded_constant(value) if sizes is not None and all(size == 1 for size in sizes) else None
    if number is None or move(1.0, float(number.item())) <= move(0.0, float(number.item())):
        return _Grid()
    inner = _grid_of(node.input_value(0))
    low, high, step, zero = (move(each, float(number.item())) for each in (inner.low, inner.high, inner.step, 0.0))
    return _Grid(low, high, step - zero)


def _step(details: QuantizationDetails) -> np.ndarray:
    ends = (finite(end) for end in (details.input_low, details.input_high))
    return np.abs(np.subtract(*ends)) / (details.levels - 1)  # that of a mask exceeds the range of f32


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max())
