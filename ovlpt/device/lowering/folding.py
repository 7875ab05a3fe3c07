"""Constants that are computed before the plugin does it wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ovlpt.device.lowering.kernels import is_pointwise
from ovlpt.graph.constants import constant, is_constant_path, is_real, precision_of, values_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.shapes import order_of, shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import RELEASE, Constant, Model, Node, Output, Type, opset1
from ovlpt.operations.families import BRING_DATA, REARRANGES
from ovlpt.precisions import COMPRESSED, FLOAT8, INT8

_ROWS = 4  # of weights that the plugin keeps compressed, or of each block that has a scale of its own, at least
_AT_ONCE = 32  # numbers of fewer than 8 bits that a kernel reads of a block, and inputs that it multiplies
_CHANNELS_FIRST, _CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]  # orders of Transposes
_IN_BYTES = {"i4": "i8", **dict.fromkeys(("u1", "u2", "u3", "u4", "u6"), "u8")}
_DEQUANTIZES = dict.fromkeys((*REARRANGES, "Convert"), (0,)) | dict.fromkeys(("Multiply", "Subtract"), (0, 1))  # inputs
_COMMUTES = frozenset(("Add", "Multiply", "SquaredDifference"))
_WRITES = _COMMUTES | {"Divide", "FloorMod", "Mod", "Power", "Subtract"}  # a Maximum of its last result is the same


def keep_computed(model: Model) -> list[Node]:
    """``c + x`` as ``x + c`` and ``c - x`` as ``-(x - c)``, where ``c`` is computed from constants, as by a FakeQuantize or a
    layer; other operations read it as a constant.

    The plugin computes it once, and an elementwise operation that reads it first stores its result in the same place, which it
    reads in the next inference.
    """
    return [changed for node, port in read_computed(model) if port == 0 for changed in _keep_first(node)]


def read_computed(model: Model) -> list[tuple[Node, int]]:
    """The elementwise operations that have, at an input, what is computed from constants and as large as their result."""
    computed: set[int] = set()
    found = []
    for node in model.get_ordered_ops():
        kind, sources = node.get_type_name(), [value.get_node() for value in node.input_values()]
        given = [isinstance(source, Constant) or source.get_instance_id() in computed for source in sources]
        if given and all(given):
            if kind not in BRING_DATA:
                computed.add(node.get_instance_id())
        elif kind in _WRITES and any(given):
            port = given.index(True)
            is_place = shape_of(node.input_value(port)) == shape_of(node.output(0))
            if is_place and not isinstance(sources[port], Constant):
                found.append((node, port))
    return found


def _keep_first(node: Node) -> list[Node]:
    first, second = node.input_values()
    if node.get_type_name() == "Subtract":  # a sum with what is negated the plugin would make this again
        negated = opset1.multiply(opset1.subtract(second, first), constant(np.array(-1), precision_of(second)))
        negated.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), negated.output(0))
        return [negated]
    if node.get_type_name() in _COMMUTES:
        node.input(0).replace_source_output(second)
        node.input(1).replace_source_output(first)
        return [node]
    if (values := folded_constant(first)) is None:
        return []
    node.input(0).replace_source_output(constant(values, precision_of(first)).output(0))
    return [node]


def fold_float_weights(layer: Node) -> Node | None:
    """Integer weights that stay in float become real numbers: those of a convolution, and of a MatMul that reads them
    first, has a vector, what may be one, a transpose, or a constant for data, or reads anything but one matrix of up to three
    axes, which the plugin keeps compressed unless it is a column, stored in f8, or of fewer than four rows, or blocks of so few
    have a scale each; for one of more axes it throws.
    What has constant data, as the first step of an unrolled recurrence, it folds only after that, and throws.
    What is scaled by rows it computes wrongly, and before 2025.0 what has one scale, of which it reads as many as there
    are columns.

    It would restore the others in layers of their own, some with its own LPT, too. With several streams the layer then
    reads other numbers, no error, in some inferences only. What a FakeQuantize gives stays: the plugin's kernel computes it
    once, and its last bits, which are not the reference's, are the simulation's as well.
    """
    return _fold(layer, _is_stored)


def fold_misread_weights(layer: Node) -> Node | None:
    """The same of what the plugin's kernels for compressed weights read wrongly, in networks of floats, too.

    Of a 1x1 convolution OpenVINO makes a MatMul beside a Transpose or Reshape, of whatever order, without strides and pads,
    and of a Split's first output: wrong numbers, an error, or the end of the process. Right is what lies between a Transpose from
    channels last and one to them.

    Of a MatMul the kernels take rows, or blocks with a scale each, for whole bytes, and blocks for multiples of four bytes, or
    of 32 numbers of fewer than 8 bits: wrong numbers for few rows of data, or for more. Integers that they read rightly in
    bytes are stored so.
    """
    stored = _stored_by(layer)
    if stored is None:
        return None
    if layer.get_type_name() == "Convolution":
        is_misread = is_pointwise(layer) and (
            stored.is_misread or (_is_beside_move(layer) and not _is_between_moves(layer))
        )
    else:
        is_misread = stored.is_misread
        if is_misread and stored.kind in _IN_BYTES and not replace(stored, kind=_IN_BYTES[stored.kind]).is_misread:
            _store_in_bytes(layer.input(1))
            return layer
    return _fold(layer, _is_compressed, (1,)) if is_misread else None


def fold_restored_weights(layer: Node) -> None:
    """The same of what is stored in 8 bits or fewer in a network of floats, where the plugin would restore it in layers of its own:
    that of MatMuls (`fold_float_weights`), and of 1x1 convolutions that OpenVINO 2026 makes no MatMul of.
    """
    if layer.get_type_name() == "MatMul" or (is_pointwise(layer) and not _is_between_moves(layer)):
        _fold(layer, _is_compressed)


def _is_beside_move(layer: Node) -> bool:
    """A Transpose or Reshape before a convolution or after it and its bias."""
    after = _after_bias(layer)
    return any(node.get_type_name() in ("Transpose", "Reshape") for node in (layer.input_value(0).get_node(), *after))


def _is_between_moves(layer: Node) -> bool:
    """A Transpose from channels last before a convolution that keeps all pixels, and one to them after it and its bias."""
    attributes, before, after = layer.get_attributes(), layer.input_value(0).get_node(), _after_bias(layer)
    if {*attributes["strides"]} != {1} or any((*attributes["pads_begin"], *attributes["pads_end"])):
        return False
    if order_of(before) != _CHANNELS_FIRST or [order_of(node) for node in after] != [_CHANNELS_LAST]:
        return False
    return before.input_value(0).get_node().get_output_size() == 1


def _after_bias(layer: Node) -> list[Node]:
    """What reads a layer, or its bias where that alone does."""
    readers = readers_of(layer)
    return readers_of(readers[0]) if [node.get_type_name() for node in readers] == ["Add"] else readers


def fold_weights_beside_blocks(layer: Node) -> Node | None:
    """The same of weights whose inputs fill no whole blocks of 32, in networks of floats, too: with AMX, in bf16, with several
    streams, the kernel for compressed weights reads what lies in memory for the rest, in one compilation of three to thirty. Of
    a single block it does so, too, where there are few outputs. Before OpenVINO 2026.1 what quantizes data dynamically scales
    the rest wrongly, or throws.
    """
    stored = _stored_by(layer)
    fills_blocks = stored is None or (stored.inputs > _AT_ONCE and not stored.inputs % _AT_ONCE)
    return None if fills_blocks else _fold(layer, _is_compressed, (1,))


@dataclass(frozen=True)
class _Stored:
    """Weights: the type that they are stored in, how many inputs they have, and of how many each has one scale."""

    kind: str
    inputs: int
    block: int | None

    @property
    def is_misread(self) -> bool:
        if self.kind in INT8:
            return bool(self.block and self.block > _ROWS and self.block % _ROWS)
        has_whole_bytes = (self.block or self.inputs) * getattr(Type, self.kind).bitwidth % 8 == 0
        return not has_whole_bytes or bool(self.block and self.block > _AT_ONCE and self.block % _AT_ONCE)


def _stored_by(layer: Node) -> _Stored | None:
    """The weights of a MatMul or a convolution. None for what is not stored in 8 bits or fewer."""
    shape, node, block = shape_of(layer.input_value(1)) or (), layer.input_value(1).get_node(), None
    if len(shape) < 2 or (kind := _compressed_in(node)) is None:
        return None
    axis = 1 - len(shape)
    if layer.get_type_name() == "MatMul":
        axis = -1 if layer.get_attributes()["transpose_b"] else -2
    while node.get_type_name() in _DEQUANTIZES:
        source = shape_of(node.input_value(0)) or ()
        if len(source) > len(shape):
            block = source[axis]
        node = node.input_value(0).get_node()
    return _Stored(kind, shape[axis], block)


def _store_in_bytes(target: Any) -> None:
    """Integers of fewer bits, from which what an input reads is computed."""
    path = [target]
    for each in path:
        source = each.get_source_output()
        kind = _IN_BYTES.get(precision_of(source))
        if isinstance(source.get_node(), Constant) and kind:
            each.replace_source_output(constant(values_of(source.get_node()), kind).output(0))
        ports = _DEQUANTIZES.get(source.get_node().get_type_name(), ())
        path += [source.get_node().input(port) for port in ports]
    for each in reversed(path):
        each.get_node().validate_and_infer_types()


def fold_weights_of_f16(layer: Node) -> Node | None:
    """The same of every MatMul: where floats are f16 and sizes dynamic, the plugin restores one matrix, too."""
    return _fold(layer, _is_stored, (0, 1))


def fold_fake_quantized_weights(layer: Node) -> Node | None:
    """The same of weights after a FakeQuantize, where the plugin's own LPT would read them."""
    return _fold(layer, _is_fake_quantized)


def fold_quantized_constant(quantize: Node) -> Node | None:
    """What a FakeQuantize makes of constants.

    A GPU's kernel computes it in the type that floats have there, and for constants of five axes and more, as the weights of
    groups are, whose intervals differ along a spatial axis, it reads intervals that are not there: wrong numbers or none.
    NNCF quantizes the weights of depthwise layers so where they are made by a Reshape.
    """
    value = quantize.output(0)
    if not is_real(precision_of(value)) or (values := folded_constant(value)) is None:
        return None
    folded = constant(values, precision_of(value))
    folded.set_friendly_name(quantize.get_friendly_name())
    replace_output(value, folded.output(0))
    return folded


def _fold(layer: Node, is_meant: Callable[[Output], bool], ports: tuple[int, ...] | None = None) -> Node | None:
    inputs = layer.input_values()[:2]
    if not all(is_real(precision_of(value)) for value in inputs):
        return None
    is_folded = False
    for port in ports or _folded_ports(layer):
        if isinstance(inputs[port].get_node(), Constant) or not is_meant(inputs[port]):
            continue
        if (values := folded_constant(inputs[port])) is not None:
            folded = constant(values, precision_of(inputs[port]))
            folded.set_friendly_name(inputs[port].get_node().get_friendly_name())
            layer.input(port).replace_source_output(folded.output(0))
            is_folded = True
    return layer if is_folded else None


def _is_stored(value: Output) -> bool:
    return not _is_fake_quantized(value)


def _is_compressed(value: Output) -> bool:
    return _compressed_in(value.get_node()) is not None


def _compressed_in(node: Node) -> str | None:
    """The type of the 8 bits or fewer that weights are stored in."""
    while node.get_type_name() in _DEQUANTIZES:
        node = node.input_value(0).get_node()
    kind = precision_of(node.output(0))
    return kind if isinstance(node, Constant) and kind in (*INT8, *COMPRESSED) else None


def _is_fake_quantized(value: Output) -> bool:
    """Whether real numbers come from a FakeQuantize, directly or in another shape."""
    node = value.get_node()
    while node.get_type_name() == "Reshape":
        node = node.input_value(0).get_node()
    return node.get_type_name() == "FakeQuantize" and is_real(precision_of(node.input_value(0)))


def _folded_ports(layer: Node) -> tuple[int, ...]:
    data = layer.get_input_partial_shape(0)
    if layer.get_type_name() != "MatMul" or data.rank.is_dynamic or len(data) == 1:
        return (1,)
    if layer.get_attributes()["transpose_a"] or is_constant_path(layer.input_value(0).get_node()):
        return (0, 1)
    weights = shape_of(layer.input_value(1))
    is_one_matrix = weights is None or (len(weights) in (2, 3) and set(weights[:-2]) <= {1})
    if is_one_matrix and weights is not None:
        transposed = layer.get_attributes()["transpose_b"]
        rows, columns = weights[:-3:-1] if transposed else weights[-2:]
        rows = _rows_of_block(layer.input_value(1), -1 if transposed else -2) or rows
        is_one_matrix = columns != 1 and (rows is None or rows >= _ROWS)
        is_one_matrix = is_one_matrix and not _differs_between_rows(layer.input_value(1), -1 if transposed else -2)
        is_one_matrix = is_one_matrix and _compressed_in(layer.input_value(1).get_node()) not in FLOAT8
        is_one_matrix = is_one_matrix and (RELEASE >= (2025, 0) or not _has_one_scale(layer.input_value(1)))
    return (0,) if is_one_matrix else (0, 1)


def _rows_of_block(weights: Output, axis: int) -> int | None:
    """How many rows have one scale, where a Reshape joins the blocks that have one each."""
    node = weights.get_node()
    scaled = shape_of(node.input_value(0)) if node.get_type_name() == "Reshape" else None
    return scaled[axis] if scaled is not None and len(scaled) > len(shape_of(weights) or ()) else None


def _has_one_scale(weights: Output) -> bool:
    node = weights.get_node()
    return node.get_type_name() == "Multiply" and set(shape_of(node.input_value(1)) or ()) <= {1}


def _differs_between_rows(weights: Output, axis: int) -> bool:
    """Whether scale or zero point of stored integers differ along ``axis``, counted from the last."""
    node = weights.get_node()
    while node.get_type_name() in ("Multiply", "Subtract"):
        size = (1, 1, *(shape_of(node.input_value(1)) or ()))[axis]
        if size != 1:
            return True
        node = node.input_value(0).get_node()
    return False
