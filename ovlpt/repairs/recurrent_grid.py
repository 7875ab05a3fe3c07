"""Quantized recurrent layers, as the int8 kernels for them read numbers."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.dequantization import read_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import MOVES, RECURRENT, state_interval, state_readers
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation, read_once
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8
from ovlpt.trace import Reason, reject_unless

_DATA, _STATE = 0, 1  # inputs
_ACTIVATIONS = {"GRUSequence": ["sigmoid", "tanh"], "LSTMSequence": ["sigmoid", "tanh", "tanh"]}
_LEVELS, _CENTRE = 256, 128
_NEAR = 1e-4  # relative: numbers that count as equal


class RecurrentGrid(LayerTransformation):
    """``lstm(x; w, r, b) == lstm(k * (x - c); w / k, r, b + w * c)``, and GRU likewise.

    Kernels store the hidden state on the grid of the data, read an initial state as if it were on that grid, and have one
    scale for both weights: that of ``w``, and in an LSTM that of gate f for gate i and the reverse. So the data, whose
    integers stay as they are, gets the grid of the states; weights and bias make up for it. The states lie between -1
    and 1, or where calibration has seen them: what is quantized to another grid before or behind would be rounded twice,
    and takes this one. Where scales differ, the finer weights are rounded to the coarser, and an initial state to the
    grid: the kernels have no other numbers. The rest is exact.
    """

    why = Reason("recurrent_grid", "its kernels have one grid for data and state, and one scale for both weights")

    @classmethod
    def type_names(cls) -> list[str]:
        return [name for kind in RECURRENT for name in OPERATIONS[kind].type_names]

    def concerns(self, node: Node) -> bool:
        return (
            self.params.recurrent_on_one_grid
            and not _resets_late(node)
            and self._interval(node, _DATA) is not None
            and (self._interval(node, _STATE) is not None or folded_constant(node.input_value(_STATE)) is not None)
            and all(_scale(node.input_value(port)) is not None for port in _ports(node))
            and not self._is_on_one_grid(node)
        )

    def can_be_transformed(self, node: Node) -> None:
        attributes = node.get_attributes()
        activations = [each.lower() for each in attributes["activations"]]
        plain = activations == _ACTIVATIONS[node.get_type_name()] and not attributes["clip"]
        reject_unless(plain, "activations", "its activations or its clip are not those that the kernels have")
        low, high = self._interval(node, _DATA)
        reject_unless(high > low, "interval", f"its data has the interval [{low:g}, {high:g}]")
        bias = folded_constant(node.input_value(_bias(node)))
        reject_unless(bias is not None, "dynamic_bias", "its bias is not a constant")

    def transform(self, node: Node) -> None:
        data, state = self._interval(node, _DATA), self._interval(node, _STATE)
        step, grid = (data[1] - data[0]) / (_LEVELS - 1), self._bound(node) / (_LEVELS - 1 - _CENTRE)
        weights, recurrent = (folded_constant(node.input_value(port)).astype(np.float64) for port in _ports(node))
        weights *= step / grid
        scale = _by_gates(node, np.maximum(_rows(node, 0) * step / grid, _rows(node, 1)))
        integers = [np.clip(np.rint(each / scale), -128, 127) for each in (weights, recurrent)]
        # the data is step * q + low, and the layer reads grid * (q - 128)
        shift = data[0] * grid / step + _CENTRE * grid
        bias = folded_constant(node.input_value(_bias(node))) + (integers[0] * scale).sum(axis=2) * shift

        _quantize_again(node, _DATA, (*data, *_ends(grid)), "DataGrid")
        for reader in state_readers(node):
            if (finer := _grid(reader)) is not None and finer < grid:
                _take_grid(reader, grid)
        if state is None:
            _read(node, _STATE, constant(folded_constant(node.input_value(_STATE)), _precision(node, _STATE)))
        elif _is_own(node.input_value(_STATE)) and _keeps_values(
            QuantizationDetails.of(_above(node.input_value(_STATE)))
        ):
            _take_grid(_above(node.input_value(_STATE)), grid)
        else:
            _quantize_again(node, _STATE, _ends(grid) * 2, "StateGrid")
        for port, each in zip(_ports(node), integers, strict=True):
            stored = opset1.convert(constant(each, "i8"), _precision(node, port))
            dequantized = opset1.multiply(stored, constant(scale, _precision(node, port)))
            dequantized.set_friendly_name(node.input_value(port).get_node().get_friendly_name())
            _read(node, port, dequantized)
        _read(node, _bias(node), constant(bias, _precision(node, _bias(node))))

    def _is_on_one_grid(self, node: Node) -> bool:
        """Whether the kernels read the numbers of the layer as it is."""
        data, state = self._interval(node, _DATA), self._interval(node, _STATE)
        step, bound = (data[1] - data[0]) / (_LEVELS - 1), self._bound(node)
        holds_state = data[0] <= step - bound and data[1] >= bound - step
        is_fine = step < 2 * bound / (_LEVELS - 1 - _CENTRE)  # else a bit of the state is lost
        if state is None:
            reads_state = isinstance(node.input_value(_STATE).get_node(), Constant)
        else:
            reads_state = np.allclose(state, data, rtol=_NEAR, atol=0)
        first, second = _rows(node, 0), _rows(node, 1)
        return (
            holds_state
            and is_fine
            and reads_state
            and np.allclose(first, second, rtol=_NEAR, atol=0)
            and np.allclose(first, _by_gates(node, first), rtol=_NEAR, atol=0)
        )

    @read_once
    def _bound(self, node: Node) -> float:
        """The largest magnitude of a hidden state, the initial one included, as the end of an interval around level 128."""
        state = self._interval(node, _STATE)
        if state is None:
            largest = float(np.abs(folded_constant(node.input_value(_STATE))).max())
            state = -largest, largest
        return max(_end(state), _end(state_interval(node)))

    @read_once
    def _interval(self, node: Node, port: int) -> tuple[float, float] | None:
        """The output interval of the FakeQuantize above the input, where it has one and 256 levels; None for constants."""
        if folded_constant(node.input_value(port)) is not None:
            return None
        source = _above(node.input_value(port))
        details = QuantizationDetails.of(source) if source.get_type_name() == "FakeQuantize" else None
        if details is None or details.levels != _LEVELS or any(end.size > 1 for end in details.intervals):
            return None
        return float(details.output_low.reshape(())), float(details.output_high.reshape(()))


class LinearBeforeReset(LayerTransformation):
    """Weights of a GRU with ``linear_before_reset`` as real numbers: with integers the CPU plugin throws."""

    why = Reason("linear_before_reset", "its form, linear_before_reset, has no kernel in low precision")

    @classmethod
    def type_names(cls) -> list[str]:
        return OPERATIONS["GRUSequence"].type_names

    def concerns(self, node: Node) -> bool:
        return self.params.recurrent_on_one_grid and _resets_late(node) and bool(self._quantized(node))

    def can_be_transformed(self, node: Node) -> None:
        """Nothing can be against it."""

    def transform(self, node: Node) -> None:
        for port in self._quantized(node):
            _read(node, port, constant(folded_constant(node.input_value(port)), _precision(node, port)))

    @staticmethod
    def _quantized(node: Node) -> list[int]:
        values = {port: node.input_value(port) for port in _ports(node)}
        return [
            port
            for port, value in values.items()
            if not isinstance(value.get_node(), Constant) and folded_constant(value) is not None
        ]


def _resets_late(node: Node) -> bool:
    return bool(node.get_attributes().get("linear_before_reset"))


def _ports(node: Node) -> tuple[int, int]:
    """Of the weights; the bias comes next."""
    return RECURRENT[node.get_type_name()]


def _bias(node: Node) -> int:
    return _ports(node)[1] + 1


def _precision(node: Node, port: int) -> str:
    return precision_of(node.input_value(port))


def _scale(value: Output) -> np.ndarray | None:
    """That of weights on the grid of i8, one for all or for each row; else None."""
    weights = folded_constant(value)
    if weights is None or weights.ndim != 3 or isinstance(value.get_node(), Constant):
        return None
    if value.get_node().get_type_name() == "FakeQuantize":
        details = QuantizationDetails.of(value.get_node())
        scale = (details.output_high - details.output_low) / (details.levels - 1)
    else:
        scale = read_dequantization(value, INT8).scale
    if scale is None or (scale <= 0).any() or (scale.ndim and scale.shape[-1] != 1):
        return None
    integers = weights / scale
    whole = np.rint(integers)
    on_grid = np.abs(integers - whole).max() < 0.01 and whole.min() >= -128 and whole.max() <= 127
    return scale.astype(np.float64) if on_grid else None


def _rows(node: Node, which: int) -> np.ndarray:
    """The scale of weights as [directions, rows, 1]."""
    value = node.input_value(_ports(node)[which])
    return np.broadcast_to(_scale(value), (*value.get_shape()[:2], 1))


def _by_gates(node: Node, scale: np.ndarray) -> np.ndarray:
    """The larger one for the gates f and i of an LSTM, the first two: the CPU plugin confuses them."""
    if node.get_type_name() == "GRUSequence":
        return scale
    gates = np.array(scale).reshape(scale.shape[0], 4, -1, 1)
    gates[:, :2] = gates[:, :2].max(axis=1, keepdims=True)
    return gates.reshape(scale.shape)


def _above(value: Output) -> Node:
    """What gives the values, above all that only moves them."""
    while (node := value.get_node()).get_type_name() in MOVES:
        value = node.input_value(0)
    return node


def _end(interval: tuple[float, float]) -> float:
    """The upper end of the interval around level 128 that holds the given one."""
    low, high = interval
    return max(high, -low * (_LEVELS - 1 - _CENTRE) / _CENTRE)


def _ends(grid: float) -> tuple[float, float]:
    return -_CENTRE * grid, (_LEVELS - 1 - _CENTRE) * grid


def _take_grid(fake_quantize: Node, grid: float) -> None:
    for port, end in enumerate(_ends(grid) * 2, 1):
        _read(fake_quantize, port, constant(np.float32(end), _precision(fake_quantize, port)))


def _quantize_again(node: Node, port: int, ends: tuple[float, ...], name: str) -> None:
    """A FakeQuantize in front of the input. Of the data it changes no integer, and cleanup leaves it out."""
    constants = [constant(np.float32(end), _precision(node, port)) for end in ends]
    new = opset1.fake_quantize(node.input_value(port), *constants, _LEVELS)
    new.set_friendly_name(f"{node.get_friendly_name()}/{name}")
    _read(node, port, new)


def _is_own(value: Output) -> bool:
    """Whether nothing else reads the FakeQuantize above, or what moves its values."""
    node = value.get_node()
    if sum(len(consumers_of(output)) for output in node.outputs()) > 1:
        return False
    return node.get_type_name() not in MOVES or _is_own(node.input_value(0))


def _keeps_values(details: QuantizationDetails) -> bool:
    """Whether the FakeQuantize only rounds and clips."""
    input_low, input_high, *output = details.intervals
    return np.array_equal([input_low, input_high], output)


def _grid(node: Node) -> float | None:
    """The steps of a FakeQuantize that only rounds and clips, around level 128 as one interval; None for another node."""
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    if details is None or details.levels != _LEVELS or details.output_low.size > 1 or not _keeps_values(details):
        return None
    step = float(details.output_high.max() - details.output_low.min()) / (_LEVELS - 1)
    return step if np.allclose(details.output_low, -_CENTRE * step, rtol=_NEAR, atol=0) else None


def _read(node: Node, port: int, source: Node) -> None:
    node.input(port).replace_source_output(source.output(0))
