"""Layers of floats that a CPU computes wrongly with what follows them, in a network that nobody quantized, too."""

from __future__ import annotations

from ovlpt.device.lowering.guards import (
    normalize_apart,
    normalize_by_groups,
    part_open_floats_by_channel,
    part_open_from_sum,
    wait_for_branches,
)
from ovlpt.device.lowering.reductions import REDUCTIONS, reduce_alone, tile_channels_apart
from ovlpt.device.lowering.rows import part_by_head
from ovlpt.device.lowering.zero_points import keep_stride
from ovlpt.device.this_cpu import computes_in_bf16
from ovlpt.openvino_api import Node
from ovlpt.operations.families import CONVOLUTIONS


def _part_convolution(node: Node) -> None:
    node = (keep_stride(node) if node.get_type_name() == "Convolution" else None) or node
    part_open_from_sum(node)
    if computes_in_bf16():
        part_open_floats_by_channel(node)


_PARTS = {
    **dict.fromkeys(REDUCTIONS, reduce_alone),
    **dict.fromkeys(CONVOLUTIONS, _part_convolution),
    "BatchNormInference": normalize_apart,
    "GroupNormalization": normalize_by_groups,
    "If": wait_for_branches,
    "MatMul": part_by_head,
    "Tile": tile_channels_apart,
}


def part_floats(node: Node) -> None:
    """Keep what follows a layer of floats out of it where the CPU plugin would compute both wrongly."""
    if (part := _PARTS.get(node.get_type_name())) is not None:
        part(node)
