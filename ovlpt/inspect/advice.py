"""What would let a layer be executed in int8, as changes of the model that was given.

Each advice prints as one sentence, and `apply` does to a model what the sentence says. Intervals come from the caller,
by the name of the operation whose output is quantized (`Advice.measured`); `calibrate` reads them from data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.weights import folded_constant
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Core, Model, Node, Output, opset1
from ovlpt.operations import OPERATIONS
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


@dataclass(frozen=True, slots=True)
class QuantizeInput(Advice):
    """A FakeQuantize per tensor on one input of an operation. ``like``: the FakeQuantize whose interval it takes."""

    kind: str
    name: str
    port: int
    source: str  # type and name of what computes the input
    like: str | None = None
    levels: int = 256

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
            like = _find(model, self.like, "FakeQuantize")
            ends, levels = [each.get_node() for each in like.input_values()[1:]], like.get_attributes()["levels"]
            made = opset1.fake_quantize(value, *ends, levels)
        else:
            if self.measured not in ranges:
                raise InputError(f'there is no range for the output of "{self.measured}"; calibrate it on data')
            made = _fake_quantize(value, *interval(*ranges[self.measured]), self.levels)
        made.set_friendly_name(f"{self.name}/FakeQuantize_{self.port}")
        node.input(self.port).replace_source_output(made.output(0))


@dataclass(frozen=True, slots=True)
class Requantize(Advice):
    """Another interval for a FakeQuantize: per tensor, 256 levels, zero among them. ``signed``: without a zero point of
    integers, which i8 around zero has.
    """

    name: str
    signed: bool

    def __str__(self) -> str:
        where = "around zero" if self.signed else "that begins at zero or lies around it"
        return f"quantize {self.name} per tensor to 256 levels on an interval {where}"

    def apply(self, model: Model, ranges: Ranges) -> None:
        node = _find(model, self.name, "FakeQuantize")
        details = QuantizationDetails.of(node)
        if details is None:
            raise InputError(f'the interval of "{self.name}" is not constant, and cannot be changed')
        low, high = float(details.output_low.min()), float(details.output_high.max())
        made = _fake_quantize(node.input_value(0), *interval(low, high, self.signed), 256)
        node.output(0).replace(made.output(0))
        made.set_friendly_name(self.name)


@dataclass(frozen=True, slots=True)
class QuantizeWeights(Advice):
    """A FakeQuantize with 255 levels around zero on the weights of an operation."""

    kind: str
    name: str
    ports: tuple[int, ...] = (1,)

    def __str__(self) -> str:
        each = "per output channel" if self.kind in OPERATIONS and self.ports == (1,) else "per tensor"
        return f"quantize the weights of {self.kind} {self.name} {each} to 255 levels around zero"

    def apply(self, model: Model, ranges: Ranges) -> None:
        node = _find(model, self.name, self.kind)
        for port in self.ports:
            value = node.input_value(port)
            values = folded_constant(value)
            if values is None:
                raise InputError(f'the weights of "{self.name}" are not constant, and cannot be quantized')
            ends = np.abs(values).max(self._summed(node, values.ndim), keepdims=True)
            ends[ends == 0] = 1.0
            made = _fake_quantize(constant(values, precision_of(value)).output(0), -ends, ends, 255)
            made.set_friendly_name(f"{self.name}/FakeQuantize_weights_{port}")
            node.input(port).replace_source_output(made.output(0))

    def _summed(self, node: Node, rank: int) -> tuple[int, ...]:
        """The axes of the weights that one scale covers: all but the output channels."""
        if self.kind == "MatMul":
            kept: Sequence[int] = [rank - (2 if node.get_attributes()["transpose_b"] else 1)] if rank > 1 else []
        else:
            kept = OPERATIONS[self.kind].weights_axes
        return tuple(axis for axis in range(rank) if axis not in kept)


@dataclass(frozen=True, slots=True)
class QuantizeProbabilities(Advice):
    """The parts of a ScaledDotProductAttention without a mask of its own, and a FakeQuantize between them."""

    name: str

    def __str__(self) -> str:
        return (
            f"write ScaledDotProductAttention {self.name} as MatMul, Softmax and MatMul, "
            "with a FakeQuantize on [0, 1] after the Softmax"
        )

    def apply(self, model: Model, ranges: Ranges) -> None:
        from ovlpt.openvino_api import _module  # an operation set that the package needs here only

        node = _find(model, self.name, "ScaledDotProductAttention")
        inputs, precision = node.input_values(), precision_of(node.output(0))
        if node.get_attributes()["causal"] or len(inputs) > 4 or not inputs[0].get_partial_shape()[-1].is_static:
            raise InputError(
                f'"{self.name}" is causal, has a scale of its own or an open size; write its parts by hand'
            )
        size = inputs[0].get_partial_shape()[-1].get_length()
        scores = opset1.multiply(
            opset1.matmul(inputs[0], inputs[1], False, True), constant(np.float32(size**-0.5), precision)
        )
        if len(inputs) == 4:
            scores = opset1.add(scores, inputs[3])
        soft = _module("opset8").softmax(scores, -1)
        soft.set_friendly_name(f"{self.name}/Softmax")
        made = opset1.matmul(_fake_quantize(soft.output(0), 0.0, 1.0, 256), inputs[2], False, False)
        node.output(0).replace(made.output(0))
        made.set_friendly_name(self.name)


def interval(low: float, high: float, signed: bool = False) -> tuple[float, float]:
    """From a measured range to one that 256 levels hold without a zero point: from zero up, or that of i8."""
    reach = max(abs(low), abs(high)) or 1.0
    return (-reach * 128 / 127, reach) if low < 0 or signed else (0.0, reach)


def calibrate(
    model: Model, advices: Iterable[Advice], samples: Iterable[Sequence[np.ndarray]], core: Core
) -> dict[str, tuple[float, float]]:
    """The smallest and the largest value of what ``advices`` quantize, over samples of one array per input."""
    names = {advice.measured for advice in advices} - {None}
    model = model.clone()
    outputs = [
        (node.get_friendly_name(), node.output(0))
        for node in model.get_ordered_ops()
        if node.get_friendly_name() in names
    ]
    if not outputs:
        return {}
    measured = Model([opset1.convert(value, "f32").output(0) for _, value in outputs], model.get_parameters(), "ranges")
    compiled = simulate(measured, core)
    ranges: dict[str, tuple[float, float]] = {}
    for sample in samples:
        for (name, _), values in zip(outputs, compiled(list(sample)).values(), strict=True):
            low, high = ranges.get(name, (np.inf, -np.inf))
            ranges[name] = min(low, float(values.min())), max(high, float(values.max()))
    return ranges


def _fake_quantize(value: Output, low, high, levels: int) -> Node:
    precision = precision_of(value)
    low, high = (constant(np.asarray(end, np.float32), precision) for end in (low, high))
    return opset1.fake_quantize(value, low, high, low, high, levels)


def _find(model: Model, name: str, kind: str) -> Node:
    for node in all_nodes(model):
        if node.get_friendly_name() == name and node.get_type_name() == kind:
            return node
    raise InputError(f'the model has no {kind} "{name}"')
