from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ovlpt.attributes import QuantizedWhole
from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.consumers import is_output, targets_of
from ovlpt.graph.dequantization import Dequantization, dequantization_below, write_dequantization
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.layer_transformation import LayerTransformation, replace_output, shape_of
from ovlpt.openvino_api import Node, Output, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless


@dataclass(frozen=True)
class _Parts:
    """``Concat → [Relu] → FakeQuantize → [Convert → Convert → Subtract → Multiply]``"""

    concat: Node
    relu: Node | None
    convert: Node | None  # to the low precision, where a dequantization follows
    below: Dequantization | None

    @property
    def axis(self) -> int:
        return int(self.concat.get_attributes()["axis"]) % self.concat.get_output_partial_shape(0).rank.get_length()


class MoveFakeQuantize(LayerTransformation):
    """``FQ(concat(a, b)) == concat(FQ(a), FQ(b))``: every branch gets its own quantization, aligned by markup later."""

    operation = OPERATIONS["FakeQuantize"]
    quiet = True  # few quantizations follow a Concat

    def can_be_transformed(self, node: Node) -> None:
        parts = self._parts(node)
        reject_unless(
            self.details(node) is not None,
            "dynamic_intervals",
            "a bound of its intervals is not a constant",
        )
        reject_unless(parts.concat.get_output_partial_shape(0).rank.is_static, "dynamic_rank", "the rank is not known")
        reject_unless(node.output(0).get_target_inputs(), "unused", "nothing reads it")
        sources = [value.get_node() for value in parts.concat.input_values()]
        one_split = all(
            source.get_type_name() == "Split" and source.get_instance_id() == sources[0].get_instance_id()
            for source in sources[1:]
        )
        reject_unless(not one_split, "one_split", "the Concat only joins what one Split took apart")
        whole = self.attributes.get(parts.concat, QuantizedWhole)
        reject_unless(
            whole is None, "pieces", "the Concat joins pieces, each of which would be quantized in a layer of its own"
        )
        if any(_varies(end, parts) for end in self._constants(node, parts)):
            reject_unless(
                all(shape_of(value) and shape_of(value)[parts.axis] for value in parts.concat.input_values()),
                "dynamic_shape",
                "the intervals differ along the concatenated axis, whose length is not known",
            )

    def transform(self, node: Node) -> None:
        parts, details = self._parts(node), self.details(node)
        ends = [_split(end, parts) for end in details.intervals]
        chain = (
            []
            if parts.below is None
            else [_split(values, parts) for values in (parts.below.scale, parts.below.zero_point)]
        )
        branches, name = [], node.get_friendly_name()
        for index, value in enumerate(parts.concat.input_values()):
            if parts.relu is not None:
                relu = opset1.relu(value)
                relu.set_friendly_name(f"{parts.relu.get_friendly_name()}_{index + 1}")
                value = relu.output(0)
            constants = [
                constant(end[index], precision_of(node.input_value(port))).output(0)
                for port, end in enumerate(ends, start=1)
            ]
            quantize = fake_quantize_node(value, constants, details.levels, precision_of(node.output(0)))
            quantize.set_friendly_name(f"{name}_{index + 1}")
            if parts.below is None and (given := self._quantized_alike(value, quantize)) is not None:
                quantize = given
            branch = quantize.output(0)
            if parts.below is not None:
                branch = self._dequantized(branch, parts, [values[index] for values in chain], index)
            branches.append(branch)
        last = node.output(0) if parts.below is None else parts.below.output
        concat = opset1.concat(branches, parts.axis)
        concat.set_friendly_name((last.get_node() if is_output(last) else parts.concat).get_friendly_name())
        replace_output(last, concat.output(0))

    def _quantized_alike(self, value: Output, quantize: Node) -> Node | None:
        """A FakeQuantize of a branch that others read, as of a U-Net: of two each would get a type of its own."""
        details, precision = self.details(quantize), precision_of(quantize.output(0))
        for target in targets_of(value):
            reader = target.get_node()
            if reader.get_type_name() != "FakeQuantize" or reader.get_instance_id() == quantize.get_instance_id():
                continue
            is_free = precision_of(reader.output(0)) == precision and not is_output(reader.output(0))
            if is_free and (given := self.details(reader)) is not None and details.has_interval_of(given):
                return reader
        return None

    @staticmethod
    def _dequantized(branch, parts: _Parts, chain: list[np.ndarray | None], index: int):
        convert = opset1.convert(branch, precision_of(parts.convert.output(0)))
        convert.set_friendly_name(f"{parts.convert.get_friendly_name()}_{index + 1}")
        output, _ = write_dequantization(
            convert.output(0),
            convert.get_friendly_name(),
            scale=chain[0],
            zero_point=chain[1],
            precision=parts.below.precision,
            zero_point_precision=parts.below.zero_point_precision,
        )
        return output

    @staticmethod
    def _parts(node: Node) -> _Parts:
        source = node.input_value(0).get_node()
        relu = source if source.get_type_name() == "Relu" else None
        concat = source.input_value(0).get_node() if relu else source
        reject_unless(concat.get_type_name() == "Concat", "no_concat", "no Concat before it")
        reject_unless(
            len(concat.output(0).get_target_inputs()) == 1,
            "several_consumers",
            "the Concat has other consumers",
        )
        targets = targets_of(node.output(0))
        convert = targets[0].get_node() if targets else None
        if convert is None or convert.get_type_name() != "Convert":
            return _Parts(concat, relu, None, None)
        below = dequantization_below(convert, convert_is_mandatory=True)
        return _Parts(concat, relu, convert, None if below.empty else below)

    def _constants(self, node: Node, parts: _Parts) -> list[np.ndarray | None]:
        chain = [] if parts.below is None else [parts.below.scale, parts.below.zero_point]
        return [*self.details(node).intervals, *chain]


def _axis_in(values: np.ndarray, parts: _Parts) -> int:
    """The concatenated axis in a constant that is aligned to the data from the right; negative: it has none."""
    return parts.axis - (parts.concat.get_output_partial_shape(0).rank.get_length() - values.ndim)


def _varies(values: np.ndarray | None, parts: _Parts) -> bool:
    if values is None:
        return False
    axis = _axis_in(values, parts)
    return axis >= 0 and values.shape[axis] != 1


def _split(values: np.ndarray | None, parts: _Parts) -> list[np.ndarray | None]:
    """A constant for each input of the Concat."""
    if not _varies(values, parts):
        return [values] * parts.concat.get_input_size()
    lengths = [shape_of(value)[parts.axis] for value in parts.concat.input_values()]
    return np.split(values, np.cumsum(lengths)[:-1], _axis_in(values, parts))
