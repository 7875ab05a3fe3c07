"""The dequantization chain ``Convert → Subtract → Multiply``, read and written in one place.

``y = (x - zero_point) * scale``; every link may be absent. Source: the native ``FakeQuantizeDequantization``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ovlpt.graph.constants import constant, converted, elementwise, numbers_of, precision_of, values_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.names import dequantization as dequantization_name
from ovlpt.graph.relaxed import relaxed
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.precisions import INT4, INT8, REAL, is_low

DEQUANTIZATION = frozenset(("Convert", "Subtract", "Multiply"))  # what a chain is made of


@dataclass(frozen=True)
class Dequantization:
    """A chain as found in the graph. ``data`` is what it reads; an absent chain has only ``data``."""

    data: Output
    convert: Node | None = None
    subtract: Node | None = None
    zero_point: np.ndarray | None = None  # float32, in the constant's shape
    zero_point_precision: str | None = None  # type of the stored constant
    multiply: Node | None = None
    scale: np.ndarray | None = None  # float32, in the constant's shape

    @property
    def empty(self) -> bool:
        """Neither Subtract nor Multiply; a lone Convert counts as empty."""
        return self.subtract is None and self.multiply is None

    @property
    def output(self) -> Output:
        """The dequantized value."""
        last = self.multiply or self.subtract or self.convert
        return last.output(0) if last is not None else self.data

    @functools.cached_property
    def data_precision(self) -> str:
        return precision_of(self.data)

    @property
    def is_low_precision(self) -> bool:
        return is_low(self.data_precision)

    @property
    def precision(self) -> str:
        """Element type of the arithmetic of the chain."""
        node = self.multiply or self.subtract
        return (
            precision_of(node.input_value(1 if _constant_port(node) == 1 else 0)) if node else precision_of(self.output)
        )

    @property
    def has_zero_or_denormal_scale(self) -> bool:
        return self.scale is not None and bool((np.abs(self.scale) < 1e-32).any())

    def apply(self, integers: np.ndarray) -> np.ndarray:
        """What the chain makes of integers, in float32."""
        shifted = integers if self.zero_point is None else integers - self.zero_point
        return shifted if self.scale is None else shifted * self.scale

    @property
    def is_shared(self) -> bool:
        """Whether a link has several consumers."""
        links = (self.convert, self.subtract, self.multiply)
        return any(link is not None and len(link.output(0).get_target_inputs()) > 1 for link in links)

    @property
    def is_per_tensor(self) -> bool:
        return all(values is None or values.size == 1 for values in (self.zero_point, self.scale))

    @property
    def channel_axis(self) -> int:
        """Where a scale per channel lies: the last axis after a MatMul, else axis 1 (0 for vectors)."""
        shape = self.data.get_partial_shape()
        if shape.rank.is_dynamic:
            return 1
        rank = shape.rank.get_length()
        if self.data.get_node().get_type_name() == "MatMul":
            return rank - 1
        return 0 if rank == 1 else 1


def _constant_port(node: Node) -> int | None:
    """The port of an elementwise node that holds its real-valued constant (maybe after a Convert).

    A constant minus data is not a zero point: the sign would change.
    """
    for port in (1,) if node.get_type_name() == "Subtract" else (1, 0):
        source = node.input_value(port).get_node()
        if isinstance(source, Constant):
            if precision_of(source.output(0)) in REAL:
                return port
        elif (
            source.get_type_name() == "Convert"
            and isinstance(source.input_value(0).get_node(), Constant)
            and precision_of(source.output(0)) in REAL
        ):
            return port
    return None


def _stored_constant(node: Node, port: int) -> Constant:
    source = node.input_value(port).get_node()
    return source if isinstance(source, Constant) else source.input_value(0).get_node()


def settles_open_size(node: Node) -> bool:
    """Whether a constant of an elementwise operation gives a size that is open in the data, and there may be 1."""
    if node.get_input_partial_shape(0).is_static and node.get_input_partial_shape(1).is_static:
        return False
    port = _constant_port(node)
    if port is None or str(node.get_input_partial_shape(port)) == "[]":  # one number leaves data of any rank as it is
        return False
    return _broadcasts_its_data(node, 1 - port, False) and not _broadcasts_its_data(node, 1 - port)


def _broadcasts_its_data(node: Node, data_port: int, open_sizes: bool = True) -> bool:
    """Whether the constant makes the output larger than the data.

    ``open_sizes``: a dynamic size is taken to be that of the constant, as the native library does.
    """
    return _is_larger(str(node.get_output_partial_shape(0)), str(node.get_input_partial_shape(data_port)), open_sizes)


@functools.lru_cache(maxsize=4096)
def _is_larger(output: str, data: str, open_sizes: bool) -> bool:
    """Of shapes as OpenVINO prints them: to walk over its dimensions takes many times as long."""
    if data == output and (open_sizes or ("?" not in data and ".." not in data)):
        return False
    before, after = (shape[1:-1].split(",") if shape != "[]" else [] for shape in (data, output))
    if "[...]" in (data, output) or len(before) != len(after):
        return True
    return any(old != new and (old.isdigit() or not open_sizes) for old, new in zip(before, after, strict=True))


def read_dequantization(
    output: Output, default_precisions: Sequence[str] = INT8, open_sizes: bool = True
) -> Dequantization:
    """The chain that ends in ``output``. A constant that broadcasts its data ends the search.

    ``open_sizes``: not one that gives a size which is open in the data; such data may turn out to be of size 1.
    """
    raw = output
    found: dict = {}
    node = output.get_node()
    if (kind := node.get_type_name()) not in DEQUANTIZATION:
        return Dequantization(output)
    if kind == "Multiply" and (port := _constant_port(node)) is not None:
        if _broadcasts_its_data(node, 1 - port, open_sizes):
            return Dequantization(raw)
        found |= {"multiply": node, "scale": numbers_of(_stored_constant(node, port))}
        output = node.input_value(1 - port)
        node = output.get_node()
        kind = node.get_type_name()
    if kind == "Subtract" and (port := _constant_port(node)) is not None:
        if _broadcasts_its_data(node, 1 - port, open_sizes):
            return Dequantization(output, **found)
        stored = _stored_constant(node, port)
        found |= {
            "subtract": node,
            "zero_point": numbers_of(stored),
            "zero_point_precision": precision_of(stored.output(0)),
        }
        output = node.input_value(1 - port)
        node = output.get_node()
        kind = node.get_type_name()
    if kind == "Convert":
        source = node.input_value(0)
        if precision_of(source) in (*default_precisions, *INT4, "f32", "f16"):
            return Dequantization(source, convert=node, **found)
    return Dequantization(output, **found)


def dequantization_above(
    node: Node, port: int = 0, default_precisions: Sequence[str] = INT8, open_sizes: bool = True
) -> Dequantization:
    """The chain on an input of ``node``."""
    return read_dequantization(node.input_value(port), default_precisions, open_sizes)


def dequantization_below(node: Node, convert_is_mandatory: bool = False) -> Dequantization:
    """The chain that starts at the first consumer of ``node``; every link but the last has a single consumer."""
    data = node.output(0)
    found: dict = {}

    def only_consumer(output: Output) -> Node | None:
        targets = list(output.get_target_inputs())
        return targets[0].get_node() if len(targets) == 1 else None

    consumer = only_consumer(data)
    if consumer is not None and consumer.get_type_name() == "Convert":
        found["convert"] = consumer
        consumer = only_consumer(consumer.output(0))
    elif convert_is_mandatory:
        return Dequantization(data)
    if (
        consumer is not None
        and consumer.get_type_name() == "Subtract"
        and (port := _constant_port(consumer)) is not None
    ):
        stored = _stored_constant(consumer, port)
        found |= {
            "subtract": consumer,
            "zero_point": numbers_of(stored),
            "zero_point_precision": precision_of(stored.output(0)),
        }
        consumer = only_consumer(consumer.output(0))
    if (
        consumer is not None
        and consumer.get_type_name() == "Multiply"
        and (port := _constant_port(consumer)) is not None
    ):
        found |= {
            "multiply": consumer,
            "scale": numbers_of(_stored_constant(consumer, port)),
        }
    return Dequantization(data, **found)


def dequantizations_below(convert: Node) -> list[Dequantization]:
    """The chains that begin with ``convert``, one for each of its readers; what is none has no Multiply."""
    if convert.get_type_name() != "Convert":
        return [Dequantization(convert.output(0))]
    ends = [
        end
        for reader in readers_of(convert)
        for end in (readers_of(reader) if reader.get_type_name() == "Subtract" else [reader])
    ]
    return [read_dequantization(end.output(0)) if end.outputs() else Dequantization(convert.output(0)) for end in ends]


def put_constant_second(found: Dequantization) -> None:
    """``c * x`` as ``x * c``: what else reads the Multiply finds it so, as after the native ``normalizeDequantization``."""
    if (node := found.multiply) is not None and isinstance(node.input_value(0).get_node(), Constant):
        first, second = node.input_values()
        node.input(0).replace_source_output(second)
        node.input(1).replace_source_output(first)


def _fits(values: np.ndarray, precision: str) -> bool:
    return np.array_equal(values_of(constant(values, precision)), values)


def write_dequantization(
    data: Output,
    name: str,
    scale: np.ndarray | None,
    zero_point: np.ndarray | None = None,
    precision: str = "f32",
    output_precision: str | None = None,
    zero_point_precision: str | None = None,
    scale_precision: str | None = None,
    shift_precision: str | None = None,
    converts: bool = True,
) -> tuple[Output, list[Node]]:
    """Build ``(Convert(data) - zero_point) * scale`` and return its output with the new nodes in order.

    The Convert appears where ``data`` is not of ``precision``, unless told otherwise: then what follows reads ``data``. A zero point of a low ``zero_point_precision`` that holds it
    (a sum of integers, for one, has another) is stored in that type after a Convert of its own, any other as
    ``shift_precision``. The Multiply reports
    ``output_precision``, and its constant is stored as ``scale_precision``; all three are ``precision`` by default.
    """
    output, nodes = data, []
    output_precision = output_precision or precision

    def append(node: Node, link: str) -> None:
        nonlocal output
        node.set_friendly_name(dequantization_name(name, link))
        nodes.append(node)
        output = node.output(0)

    def append_elementwise(kind: str, stored: Node, reported: str) -> None:
        if {precision, *map(precision_of, (output, stored.output(0)))} == {reported}:
            append(elementwise(kind, output, stored.output(0)), kind)
        else:
            inputs = [output, stored.output(0)]
            append(relaxed(kind, inputs, reported, {"auto_broadcast": "numpy"}, origin=precision), kind)

    if converts and precision_of(output) != precision:
        append(converted(output, precision), "Convert")
    if zero_point is not None:
        if zero_point_precision and zero_point_precision not in REAL and _fits(zero_point, zero_point_precision):
            stored = converted(constant(zero_point, zero_point_precision).output(0), precision)
        else:
            stored = constant(zero_point, shift_precision or precision)
        append_elementwise("Subtract", stored, precision)
    if scale is not None:
        append_elementwise("Multiply", constant(scale, scale_precision or precision), output_precision)
    elif output_precision != precision:
        append(converted(output, output_precision), "Convert")
    return output, nodes
