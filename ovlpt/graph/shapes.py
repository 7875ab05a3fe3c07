"""Shapes as plain tuples."""

from __future__ import annotations

import functools

from ovlpt.openvino_api import Output

Shape = tuple[int | None, ...]  # None: a dynamic dimension


def shape_of(output: Output) -> Shape | None:
    """The shape of a value, None for dynamic dimensions; None for a dynamic rank."""
    return _parsed(str(output.get_partial_shape()))


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Shape | None:
    """From "[1,?,8..16]": OpenVINO prints a shape twenty times as fast as Python walks over its dimensions."""
    if text == "[...]":
        return None
    sizes = (size.strip() for size in text[1:-1].split(",") if size)
    return tuple(int(size) if size.isdigit() else None for size in sizes)
