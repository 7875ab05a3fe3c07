"""Parts of a layer's result, as those of a Split, each with scale and zero point of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovlpt.device.lowering.rows import varies_by_rows
from ovlpt.graph.constants import constant, constant_above, precision_of, values_of
from ovlpt.graph.consumers import consumers_of, is_output
from ovlpt.graph.names import dequantization
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import varies_along
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations.families import AFFINE, SPLITS

_MOVES = SPLITS | {"Gather", "Transpose"}


class _OtherReader(Exception):
    """Something else than a dequantization reads a part."""


@dataclass(frozen=True)
class _Columns:
    """Which columns of the layer's result a value has, and along which of its axes."""

    numbers: np.ndarray
    axis: int

    def along(self, axis: int, taken: slice | np.ndarray) -> _Columns:
        """What is left of them where a part is taken along ``axis``."""
        return _Columns(self.numbers[taken], self.axis) if axis == self.axis else self


@dataclass(frozen=True)
class _Part:
    """``value * scale + shift``, for each of its columns, is what ``last`` gives."""

    value: Output
    columns: _Columns
    last: Node
    scale: np.ndarray
    shift: np.ndarray


def dequantize_before_parts(product: Node) -> Node | None:
    """``(split(x)[i] - z[i]) * s[i]`` as parts of ``(x - z) * s``, a scale and a bias of the layer, where one of them has a zero
    point. So where a Gather takes the parts, where axes change places, and where the sum of a part and a constant
    has become a zero point: what two readers of a part differ by is added after it.
    """
    if not isinstance(product.input_value(1).get_node(), Constant) or varies_by_rows(product):
        return None
    shape = shape_of(product.output(0))
    if shape is None or len(shape) < 2 or shape[-1] is None or len(product.get_input_shape(1)) > 2:
        return None
    columns = _Columns(np.arange(shape[-1]), len(shape) - 1)
    try:
        parts = list(_parts(product.output(0), columns))
    except _OtherReader:
        return None
    if not any(part.shift.any() for part in parts) or all(part.value == product.output(0) for part in parts):
        return None
    scale, shift = np.ones(shape[-1]), np.zeros(shape[-1])
    for part in sorted(parts, key=lambda part: -abs(part.shift).sum()):
        scale[part.columns.numbers], shift[part.columns.numbers] = part.scale, part.shift
    if not scale.all() or any((scale[part.columns.numbers] != part.scale).any() for part in parts):
        return None
    _dequantize(product, scale, shift)
    for part in parts:
        _leave_difference(part, part.shift - shift[part.columns.numbers])
    return product


def _dequantize(product: Node, scale: np.ndarray, shift: np.ndarray) -> None:
    targets = consumers_of(product.output(0))
    shifted = opset1.add(product, constant(shift / scale, "f32"))
    scaled = opset1.multiply(shifted, constant(scale, "f32"))
    shifted.set_friendly_name(dequantization(product.get_friendly_name(), "Subtract"))
    scaled.set_friendly_name(dequantization(product.get_friendly_name(), "Multiply"))
    for target in targets:
        target.replace_source_output(scaled.output(0))


def _leave_difference(part: _Part, difference: np.ndarray) -> None:
    value = part.value
    if difference.any():
        shape = [1] * len(shape_of(value))
        shape[part.columns.axis] = -1
        added = opset1.add(value, constant(difference.reshape(shape), "f32"))
        added.set_friendly_name(part.last.get_friendly_name())
        value = added.output(0)
    replace_output(part.last.output(0), value)


def _parts(value: Output, columns: _Columns) -> Iterator[_Part]:
    """What reads a value, at the ends of what moves it."""
    for target in consumers_of(value):
        node = target.get_node()
        moved = None if target.get_index() else _moved(node, columns)
        if moved is None:
            yield _dequantized(value, target, columns)
            continue
        for output, left in zip(node.outputs(), moved, strict=True):
            if is_output(output):
                raise _OtherReader
            yield from _parts(output, left)


def _moved(node: Node, columns: _Columns) -> list[_Columns] | None:
    """The columns of each output of what only moves data; None for all else."""
    kind, ports = node.get_type_name(), range(1, node.get_input_size())
    if kind not in _MOVES:
        return None
    given = [node.input_value(port).get_node() for port in ports]
    if not all(isinstance(each, Constant) for each in given):
        return None
    constants = list(map(values_of, given))
    if kind == "Transpose":
        places = [at for at, axis in enumerate(constants[0].flat) if axis == columns.axis]
        return [_Columns(columns.numbers, *places)] if places else None
    return _split(node, columns, constants[0]) if kind in SPLITS else _gathered(node, columns, *constants)


def _axis(node: Node, values: np.ndarray) -> int:
    return int(values.item()) % node.get_input_partial_shape(0).rank.get_length()


def _split(node: Node, columns: _Columns, axes: np.ndarray) -> list[_Columns] | None:
    axis = _axis(node, axes)
    if axis != columns.axis:
        return [columns] * node.get_output_size()
    sizes = [(shape_of(output) or (None,) * (axis + 1))[axis] for output in node.outputs()]
    if None in sizes:
        return None
    ends = np.cumsum(sizes)
    return [columns.along(axis, slice(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def _gathered(node: Node, columns: _Columns, indices: np.ndarray, axes: np.ndarray) -> list[_Columns] | None:
    axis = _axis(node, axes)
    if node.get_attributes().get("batch_dims", 0):
        return None
    if axis != columns.axis:
        moved = indices.ndim - 1 if axis < columns.axis else 0
        return [_Columns(columns.numbers, columns.axis + moved)]
    return [columns.along(axis, indices)] if indices.ndim == 1 else None


def _dequantized(value: Output, target: Any, columns: _Columns) -> _Part:
    """A part and its dequantization, or such a one with a sum before it: constants by column are added and multiplied."""
    scale, shift, rank = np.float64(1), np.float64(0), len(shape_of(value) or ())
    while True:
        node, kind = target.get_node(), target.get_node().get_type_name()
        if kind not in AFFINE or target.get_index() or precision_of(node.output(0)) != "f32":
            raise _OtherReader
        values = constant_above(node.input_value(1))
        if values is None or values.ndim > rank or not varies_along(values, rank, (columns.axis,)):
            raise _OtherReader
        values = values.astype(np.float64).ravel()
        if kind == "Multiply":
            scale, shift = scale * values, shift * values
            break
        shift = shift + values if kind == "Add" else shift - values
        if len(targets := consumers_of(node.output(0))) != 1:
            raise _OtherReader
        (target,) = targets
    if is_output(node.output(0)):
        raise _OtherReader
    count = len(columns.numbers)
    return _Part(value, columns, node, *(np.broadcast_to(each, (count,)) for each in (scale, shift)))
