"""A MatMul with weights as a 1x1 convolution, for plugins whose kernels for that are faster."""

from __future__ import annotations

import numpy as np

from ovlpt.attributes import ZeroPointAfter
from ovlpt.graph.constants import constant, is_constant_path, precision_of, same_operation, values_of
from ovlpt.graph.consumers import is_output, readers_of, targets_of
from ovlpt.graph.mat_mul import sizes_by_weights
from ovlpt.graph.names import original
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.shapes import may_be_open, order_of, reshaped, shape_of
from ovlpt.graph.weights import folded_constant, has_quantized_weights, read_weights
from ovlpt.layer_transformation import LayerTransformation, read_once, replace_output
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations import RECURRENT
from ovlpt.operations.families import ACTIVATIONS, ARITHMETIC, REARRANGES, SPLITS
from ovlpt.precisions import INT8
from ovlpt.trace import Reason, reject_unless

_ALONE = (ACTIVATIONS - {"SoftPlus"}) | {"Clamp", "Relu"}
_MOVES = REARRANGES | SPLITS
_MAY_VANISH = frozenset(("Clamp", "FakeQuantize", "PRelu", "Relu"))  # of quantized data


class MatMulToConvolution(LayerTransformation):
    """``x @ w == transpose(conv(transpose(x), w'))``, between channels last and channels first.

    Kernels of int8 convolutions read and write channels last, so the Transposes cost nothing. Elementwise operations
    after it are moved as well, up to the next FakeQuantize, and stay part of the layer.
    """

    why = Reason("as_convolution", "a 1x1 convolution gives the same numbers, and its kernels are faster here")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.MatMul"]

    def concerns(self, node: Node) -> bool:
        chosen = self.params.mat_mul_as_convolution
        return (
            (chosen if isinstance(chosen, bool) else sizes_by_weights(node) in chosen)
            and is_constant_path(node.input_value(1).get_node())
            and has_quantized_weights(node, (_outputs(node),))
            and _is_quantized_per_tensor(node.input_value(0))
        )

    def can_be_transformed(self, node: Node) -> None:
        rank, weights_shape = self._rank(node), shape_of(node.input_value(1))
        reject_unless(rank in (2, 3, 4), "rank", "only data of rank 2, 3 or 4 can become the input of a convolution")
        is_matrix = len(weights_shape or ()) == 2 and np.prod(weights_shape) > 1  # of one value no shape is kept
        reject_unless(is_matrix, "weights_rank", f"the weights have the shape {weights_shape}")
        first = node.get_attributes()["transpose_a"]
        reject_unless(
            not first or rank < 4, "transposed", "its data is transposed and has only one axis before the channels"
        )
        weights = read_weights(node, (_outputs(node),), ("i8",))
        reject_unless(weights.zero_point is None, "weights_zero_point", "the weights have a zero point")
        reject_unless(
            _is_rebuildable(node.input_value(1)), "dynamic_weights", "the weights are computed in another way"
        )
        # the data then lies in the Concat's memory, and the convolution, whose Transpose is not a copy, reads the old
        # place
        concatenated = _is_concatenated(quantizer(node.input_value(0)))
        reject_unless(not concatenated, "concatenated", "a Concat also reads its data")
        apart = may_be_open(node.input_value(0)) and _is_moved_apart(node)
        reject_unless(
            not apart, "open_sizes", "its data has a dynamic size, and other operations read it in another shape"
        )
        # plugins would move it before the Transpose and fuse it into the convolution
        last = [node, *self._followers(node)][-1]
        kinds = {target.get_node().get_type_name() for target in targets_of(last.output(0))}
        quantized = last.get_type_name() == "FakeQuantize" or "FakeQuantize" not in kinds
        reject_unless(quantized, "per_position", "the FakeQuantize after it has an interval per position")
        # the dequantization would end up after the Transpose, and no longer be part of the layer
        ends = last.get_type_name() == "FakeQuantize" and kinds == {"Result"}
        reject_unless(not ends, "quantized_output", "the FakeQuantize after it is an output of the model")
        reject_unless(not RECURRENT.keys() & kinds, "recurrent", "a recurrent layer reads it from its FakeQuantize")

    def transform(self, node: Node) -> None:
        rank, name = max(self._rank(node), 3), node.get_friendly_name()
        data = node.input_value(0)
        if self._rank(node) == 2:
            data = _named(opset1.unsqueeze(data, constant(np.array(0), "i64")), f"{name}/Unsqueeze")
        weights = _kernel(node.input_value(1), node.get_attributes()["transpose_b"], rank)
        ones, zeros = [1] * (rank - 2), [0] * (rank - 2)
        if not node.get_attributes()["transpose_a"]:
            data = _channels_first(data, rank)
        layer = opset1.convolution(data, weights, ones, zeros, zeros, ones)
        layer.set_friendly_name(name)
        self.attributes.set(layer, ZeroPointAfter(True))
        end, value = node.output(0), layer.output(0)
        for follower in self._followers(node):
            inputs = [
                value
                if each.get_node().get_instance_id() == end.get_node().get_instance_id()
                else _by_channel(each, rank)
                for each in follower.input_values()
            ]
            new = same_operation(follower, inputs)
            new.set_friendly_name(follower.get_friendly_name())
            end, value = follower.output(0), new.output(0)
        if self._rank(node) > 2:
            _reshape_channels_last(end, rank)
            _skip_transposes(end, value, rank)
        ended = end.get_node().get_friendly_name()
        result = _named(opset1.transpose(value, constant(np.array(_last(rank)), "i64")), f"{ended}/ChannelsLast")
        if self._rank(node) == 2:
            result = _named(opset1.squeeze(result, constant(np.array(0), "i64")), f"{ended}/Squeeze")
        if is_output(end):
            result.get_node().set_friendly_name(ended)
            value.get_node().set_friendly_name(original(ended))
        replace_output(end, result)

    @read_once
    def _followers(self, node: Node) -> list[Node]:
        return followers(node, self._rank(node))

    @read_once
    def _rank(self, node: Node) -> int | None:
        shape = shape_of(node.input_value(0))
        return None if shape is None else len(shape)


def followers(node: Node, rank: int) -> list[Node]:
    """The elementwise operations after a MatMul of ``rank`` that are moved with it: up to a FakeQuantize, or what stores
    its integers, and further where a separately quantized bias follows.
    """
    chain = _up_to_quantization(node, rank)
    while chain and chain[-1].get_type_name() == "FakeQuantize":
        more = _up_to_quantization(chain[-1], rank)
        kinds = [each.get_type_name() for each in more]
        if kinds not in (["Add", "FakeQuantize"], ["Subtract", "FakeQuantize"]):
            break
        chain += more
    return chain + _storing(chain[-1]) if chain else chain


def _storing(quantize: Node) -> list[Node]:
    """The Convert to integers that alone reads a FakeQuantize: after a Transpose it would be another quantization."""
    readers = readers_of(quantize) if quantize.get_type_name() == "FakeQuantize" else []
    stores = [reader.get_type_name() for reader in readers] == ["Convert"]
    return readers if stores and precision_of(readers[0].output(0)) in INT8 else []


def _up_to_quantization(node: Node, rank: int) -> list[Node]:
    chain: list[Node] = [node]
    while (follower := _follower(chain[-1].output(0), rank)) is not None:
        chain.append(follower)
        if follower.get_type_name() == "FakeQuantize":
            break
    return chain[1:]


def _outputs(node: Node) -> int:
    """The axis of the weights with the output channels."""
    return 0 if node.get_attributes()["transpose_b"] else 1


def quantizer(value: Output) -> Node:
    """The node above the operations that only move data."""
    node = value.get_node()
    while node.get_type_name() in _MOVES:
        node = node.input_value(0).get_node()
    return node


def _is_quantized_per_tensor(value: Output) -> bool:
    """Whether a per-tensor FakeQuantize stands above, with only operations that move data in between."""
    node = quantizer(value)
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    return details is not None and all(end.size == 1 for end in details.intervals)


def _is_concatenated(node: Node) -> bool:
    """Whether a Concat reads its values, moved or not."""
    readers = [target.get_node() for output in node.outputs() for target in targets_of(output)]
    passes = [reader for reader in readers if reader.get_type_name() in _MOVES | _MAY_VANISH]
    return any(reader.get_type_name() == "Concat" for reader in readers) or any(map(_is_concatenated, passes))


def _is_moved_apart(node: Node) -> bool:
    """Whether other nodes read its data in another shape: with dynamic sizes the plugin gives the second of two such
    readers wrong memory.
    """
    value = node.input_value(0)
    shared = len(shape_of(value) or ()) == 2 and len(value.get_target_inputs()) > 1  # becomes rank 3 for each
    while value.get_node().get_type_name() in _MOVES:
        value = value.get_node().input_value(0)
        shared = shared or len(value.get_target_inputs()) > 1
    return shared


def _is_rebuildable(value: Output) -> bool:
    node = value.get_node()
    if isinstance(node, Constant):
        return len(shape_of(value)) <= 2
    known = node.get_type_name() in ("Convert", "FakeQuantize", *ARITHMETIC)
    return known and all(map(_is_rebuildable, node.input_values()))


def _kernel(value: Output, transposed: bool, rank: int) -> Output:
    """The weights as [output channels, input channels, 1 …]."""
    node = value.get_node()
    if not isinstance(node, Constant):
        new = same_operation(node, [_kernel(each, transposed, rank) for each in node.input_values()])
        new.set_friendly_name(node.get_friendly_name())
        return new.output(0)
    values = values_of(node)
    if values.size > 1:
        values = np.atleast_2d(values)
        values = values if transposed else values.T
        values = np.ascontiguousarray(values).reshape(*values.shape, *[1] * (rank - 2))
    return constant(values.reshape(()) if values.size == 1 else values, precision_of(value)).output(0)


def _named(node: Node, name: str) -> Output:
    node.set_friendly_name(name)
    return node.output(0)


def _first(rank: int) -> list[int]:
    """The order of a Transpose that brings the channels from the last axis to axis 1."""
    return [0, rank - 1, *range(1, rank - 1)]


def _last(rank: int) -> list[int]:
    """And back."""
    return [0, *range(2, rank), 1]


def _channels_first(value: Output, rank: int) -> Output:
    """The transposed value; an inverse Transpose above it, or an equal one for another reader, is reused."""
    if order_of(value.get_node()) == _last(rank):
        return value.get_node().input_value(0)
    for target in targets_of(value):
        if order_of(target.get_node()) == _first(rank):
            return target.get_node().output(0)
    order = constant(np.array(_first(rank)), "i64")
    return _named(opset1.transpose(value, order), f"{value.get_node().get_friendly_name()}/ChannelsFirst")


def _skip_transposes(old: Output, value: Output, rank: int) -> None:
    """Let what reads ``old`` with the channels first read ``value``, which has them there."""
    for target in targets_of(old):
        node = target.get_node()
        if order_of(node) == _first(rank) and not is_output(node.output(0)):
            replace_output(node.output(0), value)


def _reshape_channels_last(old: Output, rank: int) -> None:
    """Let an axis that is split after a Transpose to channels first be split before it: with the channels last the
    data lies as the Reshape reads it, and need not be copied.
    """
    shape = shape_of(old)
    if None in shape[1:]:
        return
    for target in targets_of(old):
        if order_of(target.get_node()) != _first(rank):
            continue
        for reader in targets_of(target.get_node().output(0)):
            node, split = reader.get_node(), shape_of(reader.get_node().output(0)) or ()
            kept = len(split) > rank and split[:2] == (shape[0], shape[-1]) and None not in split[2:]
            if node.get_type_name() != "Reshape" or not kept or np.prod(split[2:]) != np.prod(shape[1:-1]):
                continue
            apart = _named(reshaped(old, (split[0], *split[2:], split[1])), f"{node.get_friendly_name()}/Split")
            moved = opset1.transpose(apart, constant(np.array(_first(len(split))), "i64"))
            moved.set_friendly_name(node.get_friendly_name())
            replace_output(node.output(0), moved.output(0))


def _follower(value: Output, rank: int) -> Node | None:
    """The only reader of the value, where it works element by element with constants for all or for each channel."""
    targets = value.get_target_inputs()
    if len(targets) != 1:
        return None
    (target,) = targets
    node, kind = target.get_node(), target.get_node().get_type_name()
    if kind not in (*_ALONE, *ARITHMETIC, "FakeQuantize") or (kind == "FakeQuantize" and target.get_index() > 0):
        return None
    others = [each for port, each in enumerate(node.input_values()) if port != target.get_index()]
    return node if all(_is_by_channel(each, rank) for each in others) else None


def _is_by_channel(value: Output, rank: int) -> bool:
    shape = shape_of(value)
    placed = shape is not None and len(shape) <= rank and all(size == 1 for size in shape[:-1])
    return placed and folded_constant(value) is not None


def _by_channel(value: Output, rank: int) -> Output:
    """A constant along the last axis, on axis 1 of ``rank``."""
    values = folded_constant(value)
    shape = () if values.size == 1 else (1, -1, *[1] * (rank - 2))
    return constant(values.reshape(shape), precision_of(value)).output(0)
