"""What would let a layer run in int8, as changes to the model that was given.

Each `Advice` prints as one sentence, and `apply` does to a model what the sentence says. Intervals come from the caller,
by the name of the operation whose output is quantized (`Advice.measured`); `calibration.calibrate` takes them from data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ovlpt.common_optimizations import decomposed_attention
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, is_constant_path, precision_of
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.dequantization import DEQUANTIZATION, read_dequantization, write_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import evaluated
from ovlpt.low_precision import as_defined
from ovlpt.openvino_api import Model, Node, Output, opset1
from ovlpt.operations import OPERATIONS, RECURRENT
from ovlpt.operations.families import REARRANGES
from ovlpt.trace import InputError

Ranges = Mapping[str, tuple[float, float]]


class Advice(ABC):
    """One change of a model."""

    @abstractmethod
    def __str__(self) -> str:
        """An imperative, as a clause."""

    @abstractmethod
    def apply(self, model: Model, ranges: Ranges) -> None:
        """Change ``model`` in place. ``ranges``: see `measured`. Raises `InputError` where the model has no such place or
        a range is missing.
        """

    @property
    def measured(self) -> str | None:
        """The name of the operation whose range `apply` needs; None for none."""
        return None

    @property
    @abstractmethod
    def summary(self) -> str:
        """What is done, without names."""

    def prepare(self, model: Model) -> None:  # noqa: B027 - most need nothing
        """Change ``model`` so that it has the operation whose range is measured. Raises `InputError` as `apply` does."""


@dataclass(frozen=True, slots=True)
class QuantizeInput(Advice):
    """A per-tensor FakeQuantize on one input of an operation. ``like``: the FakeQuantize whose interval it copies.

    ``zero_point``: whether the kernels take data with a zero point, so that the interval need not be symmetric.
    ``signed``: whether it has to be, even where nothing is below zero, since the kernels take only i8.
    """

    kind: str
    name: str
    port: int
    source: str  # type and name of what computes the input
    like: str | None = None
    levels: int = 256
    zero_point: bool = False
    signed: bool = False

    @property
    def summary(self) -> str:
        return f"FakeQuantize after {self.source.split(' ', 1)[0]}"

    def __str__(self) -> str:
        interval = f", with the interval of {self.like}" if self.like else ""
        return f"put a FakeQuantize on input {self.port} of {self.kind} {self.name}, after {self.source}{interval}"

    @property
    def measured(self) -> str | None:
        return None if self.like else self.source.split(" ", 1)[1]

    def apply(self, model: Model, ranges: Ranges) -> None:
        node = _find(model, self.name, self.kind)
        value = node.input_value(self.port)
        if self.like:
            details = QuantizationDetails.of(_find(model, self.like, "FakeQuantize"))
            if details is None:
                raise InputError(f'the interval of "{self.like}" is not constant, and cannot be used')
            low, high, levels = details.output_low, details.output_high, details.levels
        else:
            if self.measured not in ranges:
                raise InputError(f'there is no range for the output of "{self.measured}"; calibrate it on data')
            low, high = interval(*ranges[self.measured], self.signed, self.zero_point)
            levels = self.levels
        made = _shared_fake_quantize(value, low, high, levels)
        if made is None:
            made = _fake_quantize(value, low, high, levels)
            made.set_friendly_name(f"{self.name}/FakeQuantize_{self.port}")
        node.input(self.port).replace_source_output(made.output(0))


@dataclass(frozen=True, slots=True)
class Requantize(Advice):
    """Another interval for a FakeQuantize, or for a pair of ONNX's QuantizeLinear and DequantizeLinear, ``name`` being the
    second: per tensor, with 256 levels, one of which is zero. ``signed``: without a zero point, as i8 around zero is.
    """

    name: str
    signed: bool

    @property
    def summary(self) -> str:
        return f"another interval, {'around zero' if self.signed else 'with 256 levels'}"

    def __str__(self) -> str:
        where = "around zero" if self.signed else "that holds zero"
        return f"quantize {self.name} per tensor to 256 levels on an interval {where}"

    def apply(self, model: Model, ranges: Ranges) -> None:
        if not any(map(quantizer, _called(model, self.name))):  # it is in two pieces, or computed by hand
            as_defined(model)
        node = _find(model, self.name, "FakeQuantize", "Multiply")
        ends = real_interval(node)
        if ends is None:
            raise InputError(f'the interval of "{self.name}" is not constant, and cannot be changed')
        low, high = (float(pick(end)) for pick, end in zip((np.min, np.max), ends, strict=True))
        node = _first_of_its_grid(node)
        made = _fake_quantize(_quantized_value(node), *interval(low, high, self.signed, zero_point=True), 256)
        node.output(0).replace(made.output(0))
        made.set_friendly_name(self.name)


@dataclass(frozen=True, slots=True)
class QuantizeWeights(Advice):
    """A FakeQuantize with 255 levels around zero on the weights of an operation.

    ``halved``: over twice the range of the weights, so that their integers are -64 to 64, and no sum of two products with u8
    exceeds 16 bits: for kernels that keep such sums (`ovlpt.device.saturates`).
    """

    kind: str
    name: str
    ports: tuple[int, ...] = (1,)
    halved: bool = False

    @property
    def summary(self) -> str:
        return f"weights to 255 levels{self._range}"

    @property
    def _range(self) -> str:
        return " on twice their range" if self.halved else ""

    def __str__(self) -> str:
        return (
            f"quantize the weights of {self.kind} {self.name} per output channel to 255 levels around zero{self._range}"
        )

    def apply(self, model: Model, ranges: Ranges) -> None:
        node = _find(model, self.name, self.kind)
        for port in self.ports:
            value = node.input_value(port)
            if not is_constant_path(value.get_node()):
                raise InputError(f'the weights of "{self.name}" are not constant, and cannot be quantized')
            values = evaluated(value)
            ends = np.abs(values).max(self._summed(node, port, values.ndim), keepdims=True)
            ends[ends == 0] = 1.0
            ends *= 2 if self.halved else 1
            made = _fake_quantize(constant(values, precision_of(value)).output(0), -ends, ends, 255)
            made.set_friendly_name(f"{self.name}/FakeQuantize_weights_{port}")
            node.input(port).replace_source_output(made.output(0))

    def _summed(self, node: Node, port: int, rank: int) -> tuple[int, ...]:
        """The axes of the weights that one scale covers: all but the output channels."""
        if self.kind == "MatMul":
            are_rows = node.get_attributes()["transpose_b" if port else "transpose_a"] == bool(port)
            kept: Sequence[int] = [rank - (2 if are_rows else 1)] if rank > 1 else []
        elif self.kind in RECURRENT:
            kept = (0, 1)  # directions, and the channels of each gate
        else:
            kept = OPERATIONS[self.kind].weights_axes
        return tuple(axis for axis in range(rank) if axis not in kept)


@dataclass(frozen=True, slots=True)
class QuantizeProbabilities(Advice):
    """A ScaledDotProductAttention decomposed, with a FakeQuantize after its Softmax: on [0, 1], or on the measured range where
    data attends to so many positions that a step of 1/255 would lose the probabilities.
    """

    name: str

    @property
    def summary(self) -> str:
        return "FakeQuantize after the Softmax inside ScaledDotProductAttention"

    def __str__(self) -> str:
        return (
            f"write ScaledDotProductAttention {self.name} as MatMul, Softmax and MatMul, "
            "with a FakeQuantize from 0 up to at most 1 after the Softmax"
        )

    @property
    def measured(self) -> str:
        return f"{self.name}/Softmax"

    def prepare(self, model: Model) -> None:
        self._open(model)

    def apply(self, model: Model, ranges: Ranges) -> None:
        product = self._open(model)
        _, high = ranges.get(self.measured, (0.0, 1.0))
        made = _fake_quantize(product.input_value(0), *interval(0.0, min(high, 1.0)), 256)
        made.set_friendly_name(f"{self.name}/FakeQuantize")
        product.input(0).replace_source_output(made.output(0))

    def _open(self, model: Model) -> Node:
        """Replace the operation by its parts. Returns the second MatMul."""
        node = _find(model, self.name, "ScaledDotProductAttention")
        product = decomposed_attention(node)
        if product is None:
            raise InputError(
                f'"{self.name}" has dynamic ranks or a mask that the pass cannot read; decompose it by hand'
            )
        node.output(0).replace(product.output(0))
        product.set_friendly_name(self.name)
        product.input_value(0).get_node().set_friendly_name(self.measured)
        return product


_ORDER = (Requantize, QuantizeInput, QuantizeWeights, QuantizeProbabilities)  # the last replaces what others change


def in_order(advices: Iterable[Advice]) -> list[Advice]:
    """Each once, in an order in which they can be applied; of two for one FakeQuantize, the one around zero."""
    unique = dict.fromkeys(advices)
    signed = {each.name for each in unique if isinstance(each, Requantize) and each.signed}
    kept = [each for each in unique if not (isinstance(each, Requantize) and not each.signed and each.name in signed)]
    return sorted(kept, key=lambda each: _ORDER.index(type(each)))


def interval(low: float, high: float, signed: bool = False, zero_point: bool = False) -> tuple[float, float]:
    """From a measured range to one that has zero among its 256 levels: from zero up, or that of i8, or, where the kernels
    take a ``zero_point``, the nearest interval whose zero point is an integer.
    """
    reach = max(abs(low), abs(high)) or 1.0
    if low >= 0 and not signed:
        return 0.0, reach
    if signed or not zero_point:
        return -reach * 128 / 127, reach
    high = max(high, 0.0)
    zero = round(-low / (high - low) * 255)
    step = max(-low / zero if zero else 0.0, high / (255 - zero) if zero < 255 else 0.0)
    return -zero * step, (255 - zero) * step


def quantizer(node: Node) -> Node | None:
    """A FakeQuantize itself, or that of QuantizeLinear for the Multiply that DequantizeLinear ends with; else None."""
    for _ in range(4):  # Multiply, Subtract, Convert to float, Convert to integers
        if node.get_type_name() in DEQUANTIZATION:
            node = node.input_value(0).get_node()
    return node if node.get_type_name() == "FakeQuantize" else None


def real_interval(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """The ends of the real values that `quantizer` tells apart; None where they are not constant."""
    quantize = quantizer(node)
    details = None if quantize is None else QuantizationDetails.of(quantize)
    if details is None:
        return None
    found, ends = read_dequantization(node.output(0)), (details.output_low, details.output_high)
    low, high = ends if found.multiply is None else map(found.apply, ends)
    return low, high


def _quantized_value(node: Node) -> Output:
    """The real numbers that `quantizer` rounds; before one that rounds steps, as that of QLinearAdd is read, their multiples."""
    quantize, found = quantizer(node), read_dequantization(node.output(0))
    details, value = QuantizationDetails.of(quantize), quantize.input_value(0)
    if found.multiply is None or not np.array_equal(details.input_low, details.output_low):
        return value
    return write_dequantization(value, node.get_friendly_name(), found.scale, found.zero_point, precision_of(value))[0]


def _first_of_its_grid(node: Node) -> Node:
    """The same grid again before what only moves its data, which nothing else reads; what repeats it there is bypassed."""
    while True:
        above = quantizer(node).input_value(0).get_node()
        while above.get_type_name() in REARRANGES and len(above.output(0).get_target_inputs()) == 1:
            above = above.input_value(0).get_node()
        ends = [real_interval(each) for each in (node, above)] if len(above.output(0).get_target_inputs()) == 1 else []
        if not ends or None in ends or not all(map(np.array_equal, *ends)):
            return node
        node.output(0).replace(quantizer(node).input_value(0))
        node = above


def _fake_quantize(value: Output, low, high, levels: int) -> Node:
    precision = precision_of(value)
    low, high = (constant(np.asarray(end, np.float32), precision) for end in (low, high))
    return opset1.fake_quantize(value, low, high, low, high, levels)


def _shared_fake_quantize(value: Output, low, high, levels: int) -> Node | None:
    """One that another reader of the same value has already, on the same interval."""
    wanted = [np.asarray(end, np.float32) for end in (low, high, low, high)]
    for node in (target.get_node() for target in targets_of(value) if target.get_index() == 0):
        details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
        if details is not None and details.levels == levels:
            ends = zip(details.intervals, wanted, strict=True)
            if all(mine.size == other.size and (mine.ravel() == other.ravel()).all() for mine, other in ends):
                return node
    return None


def _called(model: Model, name: str) -> list[Node]:
    return [node for node in all_nodes(model) if node.get_friendly_name() == name]


def _find(model: Model, name: str, *kinds: str) -> Node:
    for node in _called(model, name):
        if node.get_type_name() in kinds:
            return node
    raise InputError(f'the model has no {kinds[0]} "{name}"')
