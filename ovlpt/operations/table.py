"""The rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ovlpt.layered import LayeredTable
from ovlpt.operations.absent import ABSENT
from ovlpt.operations.checks import (
    all_of,
    along_channels,
    broadcastable,
    constant_in_space,
    constant_input,
    gatherable,
    gathered_elsewhere,
    interpolable,
    known_count,
    no_zero_point,
    normalized_axes,
    normalized_together,
    paddable,
    padding_not_averaged,
    per_tensor,
    positive_scale,
    reshapable,
    rollable,
    scalar_like,
    scales_not_reduced,
    sliceable,
    sliced,
    squeezable,
    static_rank,
    tileable,
    transposable,
    unpadded_or_zero,
)
from ovlpt.operations.facts import Check, Move
from ovlpt.operations.moves import (
    as_one,
    broadcast,
    gather,
    keep,
    pad_with,
    reduce,
    reshape,
    roll,
    shuffle,
    slice_,
    squeeze,
    strided_slice,
    sum_of_zero_points,
    tile,
    transpose,
    unsqueeze,
)
from ovlpt.operations.row import Operation
from ovlpt.operations.values import copies_values


def _passes(name: str, *checks: Check, move: Move = keep, opsets: Sequence[str] = ("opset1",), **more) -> Operation:
    check = all_of(*checks) if checks else along_channels
    return Operation(
        name, "passes", tuple(opsets), check, move, **{"precision_preserved": True, "copies": True, **more}
    )


def _weighted(
    name: str,
    *,
    data: tuple[int, ...] = (0,),
    weights: tuple[int, ...] = (1,),
    opsets: Sequence[str] = ("opset1",),
    **more,
) -> Operation:
    return Operation(name, "weighted", tuple(opsets), data_inputs=(*data, *weights), weights=weights, **more)


def _reduces(name: str, *checks: Check, **more) -> Operation:
    check = all_of(static_rank, constant_input(1, "list of axes"), scales_not_reduced, *checks)
    return Operation(name, "reduces", check=check, move=reduce, homogeneous=True, **more)


_ADDED: dict[str, Any] = {"precision_preserved": True, "added": ("opset1",)}


ROWS = (
    # weighted
    _weighted("Convolution", weights_axes=(0,), input_axis=1),
    _weighted("GroupConvolution", weights_axes=(0, 1), input_axis=2),
    _weighted("ConvolutionBackpropData", weights_axes=(1,), input_axis=0),
    _weighted("GroupConvolutionBackpropData", weights_axes=(0, 2), input_axis=1, opsets=(), added=("opset1",)),
    _weighted("MatMul", check=static_rank),
    _weighted("LSTMSequence", opsets=("opset5",), data=(0, 1), weights=(4, 5)),
    _weighted("GRUSequence", opsets=("opset5",), data=(0, 1), weights=(3, 4)),
    # elementwise
    Operation("Add", "elementwise", data_inputs=(0, 1)),
    Operation("Multiply", "elementwise", data_inputs=(0, 1)),
    Operation("Clamp", "elementwise", check=all_of(along_channels, scalar_like)),
    Operation("FakeQuantize", "elementwise", check=static_rank),
    Operation("Maximum", "elementwise", (), positive_scale, data_inputs=(0, 1), **_ADDED),
    Operation("Minimum", "elementwise", (), positive_scale, data_inputs=(0, 1), **_ADDED),
    Operation(
        "PRelu",
        "elementwise",
        check=all_of(along_channels, constant_input(1, "slope"), positive_scale),
        homogeneous=True,
    ),
    Operation(
        "Relu",
        "elementwise",
        check=all_of(along_channels, positive_scale),
        precision_preserved=True,
        homogeneous=True,
    ),
    # reduces
    Operation(
        "AvgPool",
        "reduces",
        check=all_of(along_channels, constant_in_space, padding_not_averaged),
        homogeneous=True,
        added=("opset14",),
    ),
    Operation(
        "MaxPool",
        "reduces",
        check=all_of(along_channels, constant_in_space, positive_scale),
        precision_preserved=True,
        copies=True,
        added=("opset8", "opset14"),
    ),
    Operation("MVN", "reduces", ("opset2", "opset6"), check=all_of(along_channels, no_zero_point, normalized_axes)),
    Operation(
        "NormalizeL2",
        "reduces",
        check=all_of(along_channels, constant_input(1, "list of axes"), no_zero_point, normalized_together),
    ),
    _reduces("ReduceMax", positive_scale, precision_preserved=True, copies=True),
    _reduces("ReduceMean"),
    _reduces("ReduceMin", positive_scale, precision_preserved=True, copies=True),
    # sum((x - z) * s) == (sum(x) - n * z) * s, over n elements
    _reduces("ReduceSum", known_count, move_zero_point=sum_of_zero_points),
    # passes
    Operation("Assign", "passes", ("opset3", "opset6"), check=all_of(along_channels, no_zero_point)),
    _passes("BatchToSpace", along_channels, per_tensor, opsets=("opset2",)),
    _passes("Broadcast", along_channels, broadcastable, move=broadcast, opsets=("opset1", "opset3")),
    _passes("Concat", static_rank, data_inputs=None),
    _passes("DepthToSpace", along_channels, scalar_like, move=as_one),
    _passes("Gather", along_channels, gatherable, move=gather, opsets=("opset1", "opset7", "opset8")),
    _passes("GatherElements", static_rank, gathered_elsewhere, opsets=(), added=("opset6",)),
    _passes(
        "Interpolate",
        along_channels,
        constant_in_space,
        constant_input(1, "target size"),
        interpolable,
        opsets=("opset1", "opset4"),
        added=("opset11",),
        preserves_where=copies_values,
        copies=False,
        homogeneous=True,
    ),
    _passes(
        "Pad",
        static_rank,
        constant_input(1, "padding before"),
        constant_input(2, "padding after"),
        paddable,
        opsets=("opset1", "opset12"),
        move=pad_with(1.0),
        move_zero_point=pad_with(0.0),
        copies=False,
    ),
    _passes("Reshape", reshapable, move=reshape),
    _passes("Roll", static_rank, rollable, move=roll, opsets=(), added=("opset7",)),
    Operation("Select", "passes", (), static_rank, data_inputs=(1, 2), copies=True, **_ADDED),
    _passes("ShuffleChannels", static_rank, move=shuffle),
    _passes("Slice", sliced, move=slice_, opsets=("opset8",)),
    _passes("SpaceToBatch", along_channels, per_tensor, unpadded_or_zero(2, 3), opsets=("opset2",), copies=False),
    _passes("Split", static_rank, constant_input(1, "axis")),
    _passes("Tile", static_rank, tileable, move=tile, opsets=(), added=("opset1",)),
    _passes("Unsqueeze", along_channels, constant_input(1, "list of axes"), move=unsqueeze),
    _passes("VariadicSplit", static_rank, constant_input(1, "axis"), constant_input(2, "list of lengths")),
    _passes("Squeeze", squeezable, move=squeeze),
    _passes("StridedSlice", sliceable, move=strided_slice),
    _passes("Transpose", transposable, move=transpose),
    *ABSENT,
)


OPERATIONS = LayeredTable({row.name: row for row in ROWS})

# Layers that multiply data with weights, step by step of no sequence
WEIGHTED = frozenset(row.name for row in ROWS if row.kind == "weighted" and not row.is_recurrent)
# Ports of the weights of recurrent layers: for the input, and recurrent
RECURRENT = {row.name: row.weights for row in ROWS if row.is_recurrent}
