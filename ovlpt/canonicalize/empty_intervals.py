from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above, is_constant_path, precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.recurrent import is_for_recurrent_layer
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node, opset1
from ovlpt.trace import Reason


class EmptyIntervals(LayerTransformation):
    """A FakeQuantize of an interval without width, as of data that were 0 on every sample, gives one number whatever it reads:
    it quantizes that number, a constant where the sizes are known. Of some channels, which have to give 0, the data become 0,
    and the interval that of another channel.

    Kernels divide by the width: the plugin throws where a layer takes the FakeQuantize in, and else gives no number, or in
    such a channel any number. Its own LPT has a constant in place of the whole, and is wrong in a channel, too.
    """

    quiet = True
    why = Reason("empty_interval", "its interval has no width, and the plugin would divide by that")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.FakeQuantize"]

    def concerns(self, node: Node) -> bool:
        ends = [constant_above(value) for value in node.input_values()[1:]]
        if any(end is None for end in ends) or not (empty := _empty(*ends)).any() or is_constant_path(node):
            return False
        if is_for_recurrent_layer(node):
            return False  # its other states need a grid, of which this one tells nothing
        return empty.size == 1 or not np.where(empty, ends[2], 0).any()

    def transform(self, node: Node) -> None:
        data, ends = node.input_value(0), [constant_above(value) for value in node.input_values()[1:]]
        real, empty = precision_of(data), _empty(*ends)
        if empty.all():
            number = float(ends[2].reshape(-1)[0])
            source = opset1.clamp(data, number, number)
            if not data.get_partial_shape().is_dynamic:
                source = constant(np.full(data.get_shape(), number, np.float32), real)
            ends = [np.float32(min(number, 0)), np.float32(max(number, 0) if number else 1)] * 2  # 0 needs a width
        else:
            source = opset1.multiply(data, constant(np.where(empty, 0, 1).astype(np.float32), real))
            live = np.unravel_index(np.argmin(empty), empty.shape)
            ends = [np.broadcast_to(end, empty.shape) for end in ends]
            ends = [np.where(empty, end[live], end) for end in ends]
        source.set_friendly_name(made_for(node.get_friendly_name(), Made.CLIP))
        node.input(0).replace_source_output(source.output(0))
        for port, end in enumerate(ends, 1):
            node.input(port).replace_source_output(constant(np.asarray(end, np.float32), real).output(0))


def _empty(low: np.ndarray, high: np.ndarray, given_low: np.ndarray, given_high: np.ndarray) -> np.ndarray:
    """Where the intervals of data and of what is given have no width."""
    return np.asarray((low == high) & (given_low == given_high))
