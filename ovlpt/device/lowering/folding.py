"""Constants that the plugin is to fold."""

from __future__ import annotations

from ovlpt.openvino_api import Node

_MARK = "DisableConstantFolding_0"


def fold_float_weights(convert: Node) -> Node:
    """Integer weights of a layer that stays in float are folded, which the common optimizations have marked them against.

    The plugin takes the mark off behind its own LPT. Without that it restores the weights in layers of their own, which
    give wrong ones with open sizes and several streams.
    """
    notes = convert.get_rt_info()
    if _MARK in list(notes.keys()):
        del notes[_MARK]
    return convert
