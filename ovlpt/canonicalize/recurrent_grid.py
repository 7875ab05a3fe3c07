"""Quantized recurrent layers, as the int8 kernels for them read numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovlpt.graph.constants import constant, is_constant_path, precision_of
from ovlpt.graph.consumers import consumers_of
from ovlpt.graph.dequantization import read_dequantization, write_dequantization
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import (
    MOVES,
    RECURRENT,
    bias_port,
    evaluated,
    form_obstacle,
    make_weights_real,
    quantized_weights,
    sources,
    state_interval,
    state_readers,
    weights_ports,
)
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation, read_once
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8, NUMPY
from ovlpt.trace import Reason, Rejected

_DATA, _STATE = 0, 1  # inputs
_LAST_STATE = 1  # output
_LEVELS, _CENTRE = 256, 128
_NEAR = 1e-4  # relative: numbers that count as equal
_WHOLE = 1e-2  # of a step: what counts as none
_LOSS = 1 / 40  # of weights in int8, root mean square; their own rounding takes 1/100 of what is normally distributed
_LOSS_ALONE = 1 / 8  # of the input weights, or of the recurrent weights, alone
_USUAL_STATE = 1 / 4  # of its largest magnitude
_NOTHING = 1 / 127  # of a gate's sum: less than a step of the state
_AT_ONCE = 1 << 14  # numbers that a cache holds, with what is computed of them
_NAMES = "weights", "recurrent weights"

Rounded = tuple[np.ndarray, list[np.ndarray], float, float]


class RecurrentGrid(LayerTransformation):
    """``lstm(x; w, r, b) == lstm(k * (x - c); w / k, r, b + w * c)``, and GRU likewise.

    Kernels store the hidden state on the grid of the data, read an initial state as if it were on that grid, and have one
    scale for both weights: that of ``w``, and in an LSTM that of gate f for gate i and the reverse. So the data, whose
    integers stay as they are, gets the grid of the states; weights and bias make up for it. The states lie between -1
    and 1, or where calibration has seen them: what is quantized to another grid before or after would be rounded twice,
    and takes this one. Where scales differ, the finer weights are rounded to the coarser, and an initial state to the
    grid: the kernels have no other numbers. The rest is exact. Weights that would lose much by it stay real numbers.

    A layer that is not of a form that the kernels have reads its weights as real numbers: the plugin with integers
    throws, or computes something else.
    """

    why = Reason("recurrent_grid", "its kernels have one grid for data and state, and one scale for both weights")

    @classmethod
    def type_names(cls) -> list[str]:
        return [name for kind in RECURRENT for name in OPERATIONS[kind].type_names]

    def concerns(self, node: Node) -> bool:
        return self.params.recurrent_on_one_grid and (
            self._obstacle(node) is not None or not self._is_on_one_grid(node)
        )

    def can_be_transformed(self, node: Node) -> None:
        if (reason := self._obstacle(node)) is not None:
            raise Rejected(reason)

    def rejected(self, node: Node) -> bool:
        return make_weights_real(node)

    def transform(self, node: Node) -> None:
        low, step = self._data_grid(node)
        grid = self._step_of_states(node)
        scale, integers, *_ = self._weights(node)
        # the data is step * q + low, and the layer reads grid * (q - 128)
        shift = low * grid / step + _CENTRE * grid
        bias = folded_constant(node.input_value(bias_port(node))) + (integers[0] * scale).sum(axis=2) * shift

        self._put_data_on_grid(node, grid)
        for reader in state_readers(node):
            if (finer := _grid(reader)) is not None and finer < grid:
                _take_grid(reader, grid)
        self._put_state_on_grid(node, grid)
        for port, each in zip(weights_ports(node), integers, strict=True):
            stored = opset1.convert(constant(each, "i8"), _precision(node, port))
            dequantized = opset1.multiply(stored, constant(scale, _precision(node, port)))
            dequantized.set_friendly_name(node.input_value(port).get_node().get_friendly_name())
            _read(node, port, dequantized)
        _read(node, bias_port(node), constant(bias, _precision(node, bias_port(node))))

    def _put_data_on_grid(self, node: Node, grid: float) -> None:
        value, (low, step) = node.input_value(_DATA), self._data_grid(node)
        above = _above(value)
        if _whole_interval(above) is not None and _is_own(value):
            for port, end in enumerate(_ends(grid), 3):
                _read(above, port, constant(np.float32(end), _precision(above, port)))
        else:
            _quantize_again(node, _DATA, (low, low + step * (_LEVELS - 1), *_ends(grid)), "DataGrid")

    def _put_state_on_grid(self, node: Node, grid: float) -> None:
        states = range(_STATE, weights_ports(node)[0] - 1)  # of an LSTM the cell state, too
        for port in states:
            _settle_size(node.input_value(port))
        constants = [port for port in states if _is_constant(node.input_value(port))]
        for port in constants:
            _read(node, port, constant(evaluated(node.input_value(port)), _precision(node, port)))
        if _STATE in constants:
            return
        value = node.input_value(_STATE)
        above = _above(value)
        # a plugin that splits a bidirectional layer splits the state, too, and needs a FakeQuantize before it, of zeros as well
        if self._state(node) == (0.0, 0.0):
            for each in sources(value):
                _write_zeros(each, grid)
            is_split = node.get_attributes()["direction"] == "bidirectional"
            if not is_split and _is_plain(value) and not consumers_of(node.output(_LAST_STATE)):
                return  # the kernel reads the integers, and the scale is that of the state it outputs
        elif _is_own(value) and _is_tensorwise(above):
            _take_grid(above, grid)
        if _grid(above) is None or not np.isclose(_grid(above), grid, rtol=_NEAR, atol=0):
            _quantize_again(node, _STATE, _ends(grid) * 2, "StateGrid")

    def _obstacle(self, node: Node) -> Reason | None:
        """What keeps the layer from the kernels; that its weights are real numbers comes last, where it would be all."""
        if (reason := form_obstacle(node)) is not None:
            return reason
        for port in self._quantized(node):
            if self._scale(node, port) is None:
                text = f"its weights on input {port} are not i8 multiples of one scale, or of one scale for each row"
                return Reason("weights_grid", text)
        grid = self._data_grid(node)
        if grid is None:
            return Reason("data_grid", "its data is not quantized to 8 bits with a single scale")
        if grid[1] < 0:
            return Reason("negative_scale", f"its data has the scale {grid[1]:g}, but the kernels need a positive one")
        if grid[1] == 0:
            return Reason("interval", f"its data has the interval [{grid[0]:g}, {grid[0]:g}]")
        if self._state(node) is None:
            return Reason("state_not_quantized", "its initial state is neither constant nor quantized")
        return self._of_weights(node)

    def _of_weights(self, node: Node) -> Reason | None:
        """What keeps their numbers from the kernels, where data and state fit."""
        ports = weights_ports(node)
        real = [name for name, port in zip(_NAMES, ports, strict=True) if port not in self._quantized(node)]
        if all(self._values(node, port) is not None for port in ports):
            lost = self._by_rows(node) if real else self._weights(node)
            share = f"{max(lost[2:]):.1%}"
            text = f"rounded to the single scale that its kernels use for both, its weights would lose {share}"
            if _is_much(lost) and not real and not _is_much(by_rows := self._by_rows(node)):
                share = f"{max(by_rows[2:]):.1%}"
                return Reason("weights_granularity", f"{text}, and quantized per output channel {share}")
            if _is_much(lost):
                return Reason("weights_lost", text)
        return Reason("weights_not_quantized", f"its {' and '.join(real)} are not quantized") if real else None

    def _is_on_one_grid(self, node: Node) -> bool:
        """Whether the kernels read the numbers of the layer as it is."""
        low, step = self._data_grid(node)
        high, bound = low + step * (_LEVELS - 1), self._bound(node)
        holds_state = low <= step - bound and high >= bound - step
        is_fine = step < 2 * bound / (_LEVELS - 1 - _CENTRE)  # else a bit of the state is lost
        if folded_constant(node.input_value(_STATE)) is not None:
            reads_state = isinstance(node.input_value(_STATE).get_node(), Constant)
        else:
            state = _whole_interval(_above(node.input_value(_STATE)))
            reads_state = state is not None and np.allclose(state, (low, high), rtol=_NEAR, atol=0)
        first, second = (self._rows(node, port) for port in weights_ports(node))
        return (
            holds_state
            and is_fine
            and reads_state
            and _whole_interval(_above(node.input_value(_DATA))) is not None
            and np.allclose(first, second, rtol=_NEAR, atol=0)
            and np.allclose(first, _by_gates(node, first), rtol=_NEAR, atol=0)
        )

    @read_once
    def _bound(self, node: Node) -> float:
        """The largest magnitude of a hidden state, the initial one included, as the end of an interval around level 128."""
        return max(_end(self._state(node)), _end(state_interval(node)))

    def _step_of_states(self, node: Node) -> float:
        return self._bound(node) / (_LEVELS - 1 - _CENTRE)

    @read_once
    def _weights(self, node: Node) -> Rounded:
        """For data on the grid of the states: the scale of both weights, their integers, and what they lose of the sum of
        both products and of one alone, root mean square.

        Beside data of a wide interval the recurrent weights may be lost although the sum loses nothing, until the data
        is zero.
        """
        return self._on_one_scale(node, self._both(node), [self._rows(node, port) for port in weights_ports(node)])

    @read_once
    def _by_rows(self, node: Node) -> Rounded:
        """The same of weights that are quantized with a scale for each row."""
        both = [each.astype(np.float64) for each in self._both(node)]
        rows = [_finest(each) for each in both]
        both = [np.rint(each / scale) * scale for each, scale in zip(both, rows, strict=True)]
        return self._on_one_scale(node, both, rows)

    def _both(self, node: Node) -> list[np.ndarray]:
        return [self._values(node, port) for port in weights_ports(node)]

    @read_once
    def _values(self, node: Node, port: int) -> np.ndarray | None:
        return folded_constant(node.input_value(port))

    @read_once
    def _quantized(self, node: Node) -> list[int]:
        return quantized_weights(node, lambda port: self._values(node, port))

    @read_once
    def _scale(self, node: Node, port: int) -> np.ndarray | None:
        """That of weights on the grid of i8, one for all or for each row; else None."""
        return _scale(node.input_value(port), self._values(node, port))

    def _rows(self, node: Node, port: int) -> np.ndarray:
        """The scale of weights as [directions, rows, 1]."""
        return np.broadcast_to(self._scale(node, port), (*node.get_input_shape(port)[:2], 1))

    def _on_one_scale(self, node: Node, both: Sequence[np.ndarray], rows: Sequence[np.ndarray]) -> Rounded:
        step = self._data_grid(node)[1] / self._step_of_states(node)
        scale = _by_gates(node, np.maximum(rows[0] * step, rows[1]))
        rounded = (_rounded(each, factor, scale) for each, factor in zip(both, (step, 1.0), strict=True))
        integers, lost, sizes = zip(*rounded, strict=True)
        alone = max(map(_lost_alone, lost, sizes, (1, _USUAL_STATE)))
        return scale, list(integers), _size([each.sum() for each in lost]) / max(_size(sizes), 1e-30), alone

    @read_once
    def _data_grid(self, node: Node) -> tuple[float, float] | None:
        """The lowest value of the data and its step: the one grid of what gives it, else that of their union. Constants
        beside, as those that a Pad adds, have to lie on it.
        """
        grids, beside = [], []
        for each in sources(node.input_value(_DATA)):
            if (grid := _grid_of(each)) is not None:
                grids.append(grid)
            elif (values := folded_constant(each)) is not None:
                beside.append(values)
            else:
                return None
        if not grids:
            return None
        low, step = grids[0]
        if not np.allclose(grids, (low, step), rtol=_NEAR, atol=0):
            low, high = min(each[0] for each in grids), max(each[0] + each[1] * (_LEVELS - 1) for each in grids)
            step = (high - low) / (_LEVELS - 1)
        return (low, step) if all(_is_on_grid(values, low, step) for values in beside) else None

    @read_once
    def _state(self, node: Node) -> tuple[float, float] | None:
        """The least and the largest value that an initial state can have; None where nothing says so."""
        ends = []
        for each in sources(node.input_value(_STATE)):
            values = folded_constant(each)
            if values is None:
                source = each.get_node()
                details = QuantizationDetails.of(source) if source.get_type_name() == "FakeQuantize" else None
                if details is None:
                    return None
                values = np.array([details.output_low.min(), details.output_high.max()])
            ends += [float(values.min()), float(values.max())]
        return min(ends), max(ends)


def _precision(node: Node, port: int) -> str:
    return precision_of(node.input_value(port))


def _scale(value: Output, weights: np.ndarray | None) -> np.ndarray | None:
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
    np.subtract(integers, whole, out=integers)
    on_grid = np.abs(integers, out=integers).max() < _WHOLE and whole.min() >= -128 and whole.max() <= 127
    return scale.astype(np.float64) if on_grid else None


def _is_much(rounded: Rounded) -> bool:
    """Whether weights are lost, of the sum of both products or of one alone."""
    return rounded[2] > _LOSS or rounded[3] > _LOSS_ALONE


def _finest(weights: np.ndarray) -> np.ndarray:
    """The smallest scale of each row whose integers i8 holds."""
    ends = np.abs(weights).max(axis=2, keepdims=True)
    return np.where(ends > 0, ends, 1.0) / 127


def _by_gates(node: Node, scale: np.ndarray) -> np.ndarray:
    """The larger one for the gates f and i of an LSTM, the first two: the CPU plugin confuses them."""
    if node.get_type_name() == "GRUSequence":
        return scale
    gates = np.array(scale).reshape(scale.shape[0], 4, -1, 1)
    gates[:, :2] = gates[:, :2].max(axis=1, keepdims=True)
    return gates.reshape(scale.shape)


def _rounded(weights: np.ndarray, factor: float, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The integers of weights times a factor, by rows the squares of what they lose, and the sum of the weights' squares.

    Some rows at a time: new memory takes longer than the numbers.
    """
    integers, lost, size = np.empty(weights.shape, np.int8), np.empty(weights.shape[:2]), 0.0
    count = max(_AT_ONCE // max(weights.shape[2], 1), 1)
    for direction in range(weights.shape[0]):
        for first in range(0, weights.shape[1], count):
            rows = direction, slice(first, first + count)
            exact = weights[rows].astype(np.float64) * factor
            whole = exact / scale[rows]
            np.clip(np.rint(whole, out=whole), -128, 127, out=whole)
            integers[rows] = whole
            whole *= scale[rows]
            whole -= exact
            lost[rows] = np.square(whole, out=whole).sum(axis=1)
            size += float(np.square(exact, out=exact).sum())
    return integers, lost, size


def _size(squares: Sequence[float]) -> float:
    """Of the products of both weights by data and state; ``squares``: the sums of theirs."""
    by_data, by_state = squares
    return float(np.sqrt(by_data + by_state * _USUAL_STATE**2))


def _lost_alone(squares: np.ndarray, size: float, usual: float) -> float:
    """The share of a product with what is ``usual`` of its largest magnitude; 0 where the sums of gates do not show it.

    ``squares``: of what is lost, by rows; ``size``: the sum of those of the weights.
    """
    of_gate = usual * float(np.sqrt(squares.mean()))
    if of_gate < _NOTHING:
        return 0.0
    return float(np.sqrt(squares.sum() / max(size, 1e-30)))


def _grid_of(value: Output) -> tuple[float, float] | None:
    """The lowest value and the step of data that is quantized per tensor to at most 256 levels; else None."""
    node = value.get_node()
    if node.get_type_name() == "FakeQuantize":
        details = QuantizationDetails.of(node)
        if details is None or not 1 < details.levels <= _LEVELS or any(end.size > 1 for end in details.intervals):
            return None
        low, high = float(details.output_low.reshape(())), float(details.output_high.reshape(()))
        return low, (high - low) / (details.levels - 1)
    found = read_dequantization(value, INT8)
    if found.data_precision not in INT8 or found.scale is None or not found.is_per_tensor:
        return None
    step, zero_point = (
        float(found.scale.reshape(())),
        0.0 if found.zero_point is None else float(found.zero_point.max()),
    )
    return (np.iinfo(NUMPY[found.data_precision]).min - zero_point) * step, step


def _is_on_grid(values: np.ndarray, low: float, step: float) -> bool:
    levels = (values - low) / (step or 1.0)
    whole = np.rint(levels)
    return bool(np.abs(levels - whole).max() < _WHOLE and whole.min() >= 0 and whole.max() < _LEVELS)


def _whole_interval(node: Node) -> tuple[float, float] | None:
    """The interval of a FakeQuantize of 256 levels per tensor; None for another node."""
    grid = _grid_of(node.output(0)) if node.get_type_name() == "FakeQuantize" else None
    if grid is None or QuantizationDetails.of(node).levels != _LEVELS:
        return None
    return grid[0], grid[0] + grid[1] * (_LEVELS - 1)


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
    """A wider one: what the interval clipped, a Clamp does."""
    low, high = (float(end.reshape(())) for end in QuantizationDetails.of(fake_quantize).intervals[:2])
    if low > (1 - _NEAR) * _ends(grid)[0] or high < (1 - _NEAR) * _ends(grid)[1]:
        clamp = opset1.clamp(fake_quantize.input_value(_DATA), low, high)
        clamp.set_friendly_name(made_for(fake_quantize.get_friendly_name(), Made.CLIP))
        _read(fake_quantize, _DATA, clamp)
    for port, end in enumerate(_ends(grid) * 2, 1):
        _read(fake_quantize, port, constant(np.float32(end), _precision(fake_quantize, port)))


def _quantize_again(node: Node, port: int, ends: tuple[float, ...], name: str) -> None:
    """A FakeQuantize before the input. Of the data it changes no integer, and cleanup leaves it out."""
    constants = [constant(np.float32(end), _precision(node, port)) for end in ends]
    new = opset1.fake_quantize(node.input_value(port), *constants, _LEVELS)
    new.set_friendly_name(made_for(node.get_friendly_name(), name))
    _read(node, port, new)


def _is_own(value: Output) -> bool:
    """Whether nothing else reads the FakeQuantize above, or what moves its values."""
    while sum(len(consumers_of(output)) for output in value.get_node().outputs()) <= 1:
        if value.get_node().get_type_name() not in MOVES:
            return True
        value = value.get_node().input_value(0)
    return False


def _is_constant(value: Output) -> bool:
    return is_constant_path(value.get_node()) and value.get_partial_shape().is_static


def _settle_size(value: Output) -> None:
    """A constant that is broadcast to the size of other data, which is known, is one of that size: of an initial state that
    is computed the kernels read other numbers where there are several streams.
    """
    node = value.get_node()
    while node.get_input_size() and node.get_type_name() != "Broadcast":
        node = node.input_value(0).get_node()
    if (
        node.get_input_size()
        and is_constant_path(node.input_value(0).get_node())
        and node.get_output_partial_shape(0).is_static
    ):
        size = node.input_value(1)
        node.input(1).replace_source_output(constant(np.array(node.get_output_shape(0)), precision_of(size)).output(0))


def _write_zeros(value: Output, grid: float) -> None:
    """Zeros as integers of a grid around level 128, for all that read them."""
    zero_point = read_dequantization(value, INT8).zero_point
    if zero_point is None or zero_point.max() != _CENTRE:
        zeros = constant(np.full(value.get_shape(), _CENTRE), "u8").output(0)
        written, _ = write_dequantization(
            zeros,
            value.get_node().get_friendly_name(),
            np.asarray(grid, np.float32),
            np.asarray(_CENTRE, np.float32),
            precision_of(value),
        )
        for target in value.get_target_inputs():
            if target.get_node().get_type_name() != "Pad":  # which has a value, not integers of a grid
                target.replace_source_output(written)


def _is_plain(value: Output) -> bool:
    """Whether low precision passes everything that moves the values."""
    while folded_constant(value) is None:
        if value.get_node().get_type_name() not in (*MOVES, "Broadcast"):
            return False
        value = value.get_node().input_value(0)
    return True


def _is_tensorwise(node: Node) -> bool:
    """Whether the node is a FakeQuantize that only rounds and clips, all of a tensor alike."""
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    return details is not None and _keeps_values(details) and all(end.size == 1 for end in details.intervals)


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
