"""Split + Convolutions + biases + Concat: one GroupConvolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ovlpt.fusions.channelwise import (
    IDENTITY,
    Affine,
    affine_of,
    along,
    constant_port,
    data_of,
    on_axis,
    rank_of,
)
from ovlpt.fusions.evaluation import evaluate, is_constant
from ovlpt.fusions.fusion import Fusion, is_shared, take_over
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.shapes import order_of
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations.families import CONVOLUTIONS, SLICES, SPLITS
from ovlpt.trace import reject, reject_unless

_ATTRIBUTES = ("strides", "pads_begin", "pads_end", "dilations", "auto_pad")


@dataclass(frozen=True)
class Piece:
    """``source[..., start:stop, ...]`` along one axis."""

    source: Output
    axis: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Branch:
    """Piece → Transposes, FakeQuantize → convolution → biases, Transposes → Concat; nodes in that order."""

    data: Output  # the piece as a value
    head: tuple[Node, ...]
    convolution: Node
    tail: tuple[Node, ...]


@dataclass
class Group:
    """All branches of one Concat, known to be alike."""

    branches: list[Branch]
    pieces: list[Piece]
    axis: int  # of the channels in the source
    output_axis: int  # of the channels in the result
    concat_axis: int
    biases: list[np.ndarray] = field(default_factory=list)  # one value per output channel each; empty: no bias at all

    @property
    def channels(self) -> np.ndarray:
        """The channels of the source in the order in which the branches read them."""
        return np.concatenate([np.arange(piece.start, piece.stop) for piece in self.pieces])

    @property
    def in_order(self) -> bool:
        return _in_order(self.pieces)


def _in_order(pieces: Sequence[Piece]) -> bool:
    """The pieces are the whole source, one after the other."""
    length = pieces[0].source.get_partial_shape()[pieces[0].axis]
    ends = [0, *(piece.stop for piece in pieces)]
    return length.is_static and ends[-1] == length.get_length() and ends[:-1] == [piece.start for piece in pieces]


class SplitConvolutionConcatFusion(Fusion):
    """``concat(conv_i(split(x)_i) + b_i) == group_conv(x) + b``, the weights and biases stacked.

    Split, VariadicSplit into equal parts, StridedSlice and Slice count as split. Where the branches read the
    pieces in another order, twice, or not all, a Gather puts the channels in place first; where the Concat
    joins another axis than the channels, a Split and the Concat follow the one convolution. OpenVINO's own
    optimizations make a GroupConvolution of these two as well, and a wrong one: if such a structure is
    refused here, its pieces become Gathers, which those optimizations leave alone.

    Source of the identity: a convolution with ``groups`` is defined as that concatenation.
    """

    operations = ("opset1.Concat",)

    def concerns(self, node: Node) -> bool:
        branches = [_branch(value) for value in node.input_values()]
        return len(branches) > 1 and all(branch is not None and _piece(branch.data) is not None for branch in branches)

    def can_be_transformed(self, node: Node) -> None:
        self.find(node)

    def find(self, node: Node) -> Group:
        """The branches, if they are alike; raises `Rejected`."""
        branches = [_branch(value) for value in node.input_values()]
        pieces = [_piece(branch.data) for branch in branches]
        first = branches[0]
        _check_structure(branches, pieces)
        axis, output_axis = _axes(first)
        reject_unless(
            pieces[0].axis == axis,
            "split_axis",
            f"the split is along axis {pieces[0].axis}, the channels lie on {axis}",
        )
        _check_convolutions([branch.convolution for branch in branches])
        _check_quantization(branches)
        rank = rank_of(node.output(0))
        concat_axis = int(node.get_attributes()["axis"]) % rank
        return Group(branches, pieces, axis, output_axis, concat_axis, _biases(branches))

    def transform(self, node: Node) -> None:
        group = self.find(node)
        first = group.branches[0]
        weights = _joined([branch.convolution.input_value(1) for branch in group.branches], first.convolution)
        data = group.pieces[0].source
        if not group.in_order:
            data = _gather(data, group.channels, group.axis)
        data = _head(data, group)
        attributes = first.convolution.get_attributes()
        convolution = opset1.group_convolution(data, weights, **{name: attributes[name] for name in _ATTRIBUTES})
        convolution.set_friendly_name(first.convolution.get_friendly_name())
        value = convolution.output(0)
        if group.biases:
            bias = np.concatenate(group.biases)
            value = opset1.add(value, constant(on_axis(bias, rank_of(value), 1), precision_of(value))).output(0)
        for step in first.tail:
            if step.get_type_name() == "Transpose":
                value = opset1.transpose(value, step.input_value(1)).output(0)
        if group.concat_axis != group.output_axis:
            parts = opset1.split(value, np.int64(group.output_axis), len(group.branches))
            value = opset1.concat(parts.outputs(), group.concat_axis).output(0)
        value.get_node().set_friendly_name(node.get_friendly_name())
        take_over(node.output(0), value)

    def rejected(self, node: Node) -> bool:
        """Keep other optimizations from a wrong fusion: a Gather is not a split to them."""
        branches = [_branch(value) for value in node.input_values()]
        pieces = [_piece(branch.data) for branch in branches]
        axis, output_axis = _axes(branches[0])
        concat_axis = int(node.get_attributes()["axis"]) % rank_of(node.output(0))
        if any(piece.axis != axis for piece in pieces) or (concat_axis == output_axis and _in_order(pieces)):
            return False
        for branch, piece in zip(branches, pieces, strict=True):
            gathered = _gather(piece.source, np.arange(piece.start, piece.stop), piece.axis)
            (*branch.head, branch.convolution)[0].input(0).replace_source_output(gathered)
        return True


def _gather(data: Output, channels: np.ndarray, axis: int) -> Output:
    return opset1.gather(data, constant(channels, "i64"), constant(np.int64(axis), "i64")).output(0)


# Reading


def _branch(value: Output) -> Branch | None:
    tail: list[Node] = []
    while (node := value.get_node()).get_type_name() not in CONVOLUTIONS:
        is_bias = node.get_type_name() == "Add" and constant_port(node) is not None
        if not (is_bias or _is_transpose(node)):
            return None
        tail.append(node)
        value = data_of(node)
    head: list[Node] = []
    data = node.input_value(0)
    while _is_transpose(data.get_node()) or data.get_node().get_type_name() == "FakeQuantize":
        head.append(data.get_node())
        data = data.get_node().input_value(0)
    return Branch(data, tuple(reversed(head)), node, tuple(reversed(tail)))


def _is_transpose(node: Node) -> bool:
    return order_of(node) is not None


def _piece(value: Output) -> Piece | None:
    """The value as a piece of another, None where it is none or its place is not constant."""
    node, kind = value.get_node(), value.get_node().get_type_name()
    if kind not in SLICES | SPLITS:
        return None
    data, shape = node.input_value(0), node.get_input_partial_shape(0)
    if shape.rank.is_dynamic:
        return None
    arguments = [evaluate(value) for value in node.input_values()[1:]]
    if any(argument is None for argument in arguments):
        return None
    if kind in SLICES:
        return _slice(node, data, arguments)
    axis = int(arguments[0].reshape(())) % len(shape)
    if shape[axis].is_dynamic:
        return None
    length, index = shape[axis].get_length(), value.get_index()
    if kind == "Split":
        sizes = [length // len(node.outputs())] * len(node.outputs())
    else:
        sizes = [int(size) for size in arguments[1]]
        sizes = [length - sum(other for other in sizes if other >= 0) if size < 0 else size for size in sizes]
    start = sum(sizes[:index])
    return Piece(data, axis, start, start + sizes[index])


def _slice(node: Node, data: Output, arguments: list[np.ndarray]) -> Piece | None:
    shape = data.get_partial_shape()
    cuts: list[Piece] = []
    for axis, begin, end, step in _cuts(node, arguments):
        axis %= len(shape)
        if step != 1:
            return None
        if shape[axis].is_dynamic:
            if (begin in (None, 0)) and (end is None or end >= np.iinfo(np.int32).max):
                continue
            return None
        start, stop, _ = slice(begin, end).indices(shape[axis].get_length())
        if (start, stop) != (0, shape[axis].get_length()):
            cuts.append(Piece(data, axis, start, stop))
    return cuts[0] if len(cuts) == 1 and cuts[0].size > 0 else None


def _cuts(node: Node, arguments: list[np.ndarray]) -> list[tuple[int, int | None, int | None, int]]:
    """(axis, begin, end, step) of each dimension that the node names."""
    begins, ends = (argument.reshape(-1).tolist() for argument in arguments[:2])
    steps = arguments[2].reshape(-1).tolist() if len(arguments) > 2 else [1] * len(begins)
    if node.get_type_name() == "Slice":
        axes = arguments[3].reshape(-1).tolist() if len(arguments) > 3 else range(len(begins))
        return list(zip(axes, begins, ends, steps, strict=True))
    attributes = node.get_attributes()
    if any(any(attributes[name]) for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")):
        return [(0, None, None, 0)]  # no plain slice
    begin_mask, end_mask = ([*attributes[name], *[0] * len(begins)] for name in ("begin_mask", "end_mask"))
    return [
        (axis, None if begin_mask[axis] else begin, None if end_mask[axis] else end, step)
        for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True))
    ]


# Checking


def _check_structure(branches: list[Branch], pieces: list[Piece]) -> None:
    first, source = branches[0], pieces[0].source
    for branch, piece in zip(branches, pieces, strict=True):
        same = piece.source.get_node().get_instance_id() == source.get_node().get_instance_id()
        reject_unless(
            same and piece.source.get_index() == source.get_index() and piece.axis == pieces[0].axis,
            "sources",
            "the convolutions do not read pieces of one value",
        )
        reject_unless(
            piece.size == pieces[0].size,
            "unequal_pieces",
            f"the pieces have {pieces[0].size} and {piece.size} channels",
        )
        for node in (branch.convolution, *branch.tail):
            reject_unless(
                not is_shared(node.output(0)),
                "shared",
                f"the value of {node.get_friendly_name()} has another reader",
            )
        for mine, other in ((branch.head, first.head), (branch.tail, first.tail)):
            orders = [[order_of(node) for node in nodes if _is_transpose(node)] for nodes in (mine, other)]
            reject_unless(orders[0] == orders[1], "layouts", "the branches transpose their data differently")
        reject_unless(
            len(branch.head) == len(first.head),
            "quantization_differs",
            "some branches quantize their data and some do not",
        )


def _axes(branch: Branch) -> tuple[int, int]:
    """Where the channels of the convolution lie in the source and in the result."""
    axis = 1
    for node in reversed(branch.head):
        if _is_transpose(node):
            axis = order_of(node)[axis]
    output_axis = 1
    for node in branch.tail:
        if _is_transpose(node):
            output_axis = order_of(node).index(output_axis)
    return axis, output_axis


def _check_convolutions(convolutions: list[Node]) -> None:
    first = convolutions[0]
    reject_unless(
        len({node.get_type_name() for node in convolutions}) == 1,
        "kinds",
        "some convolutions have groups and some do not",
    )
    for node in convolutions:
        value = node.input_value(1)
        reject_unless(
            value.get_partial_shape().is_static and is_constant(value),
            "dynamic_weights",
            "the weights are not constant",
        )
        mine, other = list(value.get_shape()), list(first.input_value(1).get_shape())
        reject_unless(mine == other, "weights_shapes", f"the weights have the shapes {other} and {mine}")
        for name in _ATTRIBUTES:
            one, two = first.get_attributes()[name], node.get_attributes()[name]
            reject_unless(one == two, "attributes", f"the convolutions have {name} {one} and {two}")


def _check_quantization(branches: list[Branch]) -> None:
    for nodes in zip(*(branch.head for branch in branches), strict=True):
        if nodes[0].get_type_name() == "Transpose":
            continue
        details = [QuantizationDetails.of(node) for node in nodes]
        reject_unless(all(details), "dynamic_intervals", "an interval bound is not a constant")
        for other in details[1:]:
            equal = other.levels == details[0].levels and all(
                np.array_equal(one, two) for one, two in zip(other.intervals, details[0].intervals, strict=True)
            )
            reject_unless(equal, "quantization_differs", "the data of the convolutions is quantized differently")
    kinds = [_quantization_of(branch.convolution.input_value(1)) for branch in branches]
    reject_unless(
        all(kind == kinds[0] for kind in kinds),
        "quantization_differs",
        "the weights of the convolutions are quantized differently",
    )


def _quantization_of(value: Output) -> list[object]:
    """What weights consist of, the numbers left out."""
    node = value.get_node()
    if isinstance(node, Constant):
        return [precision_of(value)]
    levels = node.get_attributes().get("levels")
    parts = [part for source in node.input_values() for part in _quantization_of(source)]
    return [node.get_type_name(), levels, precision_of(value), *parts]


def _biases(branches: list[Branch]) -> list[np.ndarray]:
    """Offsets of the biases, one value a channel for each branch; empty where no branch has one."""
    biases = []
    for branch in branches:
        affine, axis = IDENTITY, 1
        for node in branch.tail:
            if node.get_type_name() == "Transpose":
                axis = order_of(node).index(axis)
            else:
                affine = affine.then(affine_of(node, axis))
        biases.append(affine)
    if not any(node.get_type_name() == "Add" for branch in branches for node in branch.tail):
        return []
    return [_per_channel(affine, branch.convolution) for affine, branch in zip(biases, branches, strict=True)]


def _per_channel(affine: Affine, convolution: Node) -> np.ndarray:
    shape = convolution.input_value(1).get_shape()
    channels = shape[0] if convolution.get_type_name() == "Convolution" else shape[0] * shape[1]
    return np.broadcast_to(affine.offset, channels)


# Building


def _joined(values: Sequence[Output], convolution: Node) -> Output:
    """The weights of all groups: stacked on a new axis, or end to end where they had groups before."""
    shape = values[0].get_shape()
    return _join(values, len(shape), shape[0] if convolution.get_type_name() == "GroupConvolution" else None)


def _join(values: Sequence[Output], rank: int, groups: int | None) -> Output:
    nodes = [value.get_node() for value in values]
    kind, precision = nodes[0].get_type_name(), precision_of(values[0])
    if isinstance(nodes[0], Constant):
        arrays = [values_of(node) for node in nodes]
        arrays = np.broadcast_arrays(*(array.reshape((1,) * (rank - array.ndim) + array.shape) for array in arrays))
        if groups is None:
            return constant(np.stack(arrays), precision).output(0)
        spread = [np.broadcast_to(array, (groups, *array.shape[1:])) for array in arrays]
        return constant(np.concatenate(spread), precision).output(0)
    inputs = [_join(column, rank, groups) for column in zip(*(node.input_values() for node in nodes), strict=True)]
    match kind:
        case "Convert":
            return opset1.convert(inputs[0], precision).output(0)
        case "Subtract":
            return opset1.subtract(*inputs).output(0)
        case "Multiply":
            return opset1.multiply(*inputs).output(0)
        case "FakeQuantize":
            return opset1.fake_quantize(*inputs, int(nodes[0].get_attributes()["levels"])).output(0)
    reject("dynamic_weights", f"the weights come from {kind}, which cannot be stacked")


def _head(data: Output, group: Group) -> Output:
    axis = group.axis
    for node in group.branches[0].head:
        if node.get_type_name() == "Transpose":
            data = opset1.transpose(data, node.input_value(1)).output(0)
            axis = order_of(node).index(axis)
            continue
        details, rank = QuantizationDetails.of(node), rank_of(data)
        ends = [
            constant(_repeated(end, rank, axis, len(group.branches)), precision_of(data)) for end in details.intervals
        ]
        data = opset1.fake_quantize(data, *ends, details.levels).output(0)
    return data


def _repeated(end: np.ndarray, rank: int, axis: int, count: int) -> np.ndarray:
    """An interval end of one piece for all pieces side by side."""
    values = along(end, rank, axis)
    reject_unless(
        values is not None,
        "not_per_channel",
        "an interval of the data varies along an axis other than that of the channels",
    )
    return values if values.size == 1 else on_axis(np.tile(values, count), rank, axis)
