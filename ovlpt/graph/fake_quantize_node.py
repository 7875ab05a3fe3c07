"""FakeQuantize nodes with any mix of element types."""

from __future__ import annotations

from collections.abc import Sequence

from ovlpt.graph.constants import precision_of
from ovlpt.graph.relaxed import relaxed
from ovlpt.openvino_api import Node, Output, opset1


def fake_quantize_node(data: Output, ends: Sequence[Output], levels: int, output_precision: str) -> Node:
    """A FakeQuantize over ``data``; type-relaxed where the element types differ."""
    inputs = [data, *ends]
    if {precision_of(value) for value in inputs} == {output_precision}:
        return opset1.fake_quantize(*inputs, levels)
    return relaxed("FakeQuantize", inputs, output_precision, {"levels": levels, "auto_broadcast": "numpy"})
