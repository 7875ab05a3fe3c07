"""Windows of convolutions that kernels go wrong with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovlpt.device.lowering.kernels import with_older_kernels
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.relaxed import has_older_kernels, relaxed
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node


def see_every_column(convolution: Node) -> Node | None:
    """A window that stands on one place only, as wide as its data, with zeros as the weights added, and the stride 1.

    Where each channel has several outputs, and these are one column wide, a stride along it makes the kernel read all
    rows after the first from elsewhere: wrong numbers, no error, with the plugin's own LPT, too. Where the width is dynamic,
    and may be so, another kernel is asked for.
    """
    weights, attributes = convolution.input_value(1).get_node(), convolution.get_attributes()
    data, result = (shape_of(value) for value in (convolution.input_value(0), convolution.output(0)))
    if not isinstance(weights, Constant) or data is None or result is None:
        return None
    _, outputs, inputs, *kernel = convolution.get_input_shape(1)
    strides, dilations = (attributes[each] for each in ("strides", "dilations"))
    may_be_one = convolution.get_output_partial_shape(0)[len(result) - 1].get_min_length() <= 1
    is_wrong = len(kernel) == 2 and inputs == 1 < outputs and may_be_one and kernel[-1] > 1 and strides[-1] > 1
    if not is_wrong:
        return None
    if None in (data[-1], result[-1]):
        return with_older_kernels(convolution)
    if dilations[-1] > 1 or attributes["auto_pad"].startswith("same"):
        return None
    columns = data[-1] + attributes["pads_begin"][-1] + attributes["pads_end"][-1]
    spread = np.zeros((*weights.shape[:-1], columns), weights.data.dtype)
    spread[..., : kernel[-1]] = values_of(weights)
    inputs = [convolution.input_value(0), constant(spread, precision_of(weights.output(0))).output(0)]
    wide = relaxed(
        "GroupConvolution", inputs, precision_of(convolution.output(0)), attributes | {"strides": [strides[0], 1]}
    )
    wide.set_friendly_name(convolution.get_friendly_name())
    replace_output(convolution.output(0), wide.output(0))
    return wide


def see_padding_alone(convolution: Node) -> Node | None:
    """A window that stands on a column of padding and on no data, at some place along the last axis, with older kernels.

    Those of brgemm give what they find in memory there, or write beyond it, which ends the process; with the plugin's own
    LPT, too. Along other axes they are right.
    """
    data, weights = (convolution.get_input_partial_shape(port)[-1] for port in (0, 1))
    if weights.is_dynamic or has_older_kernels(convolution):
        return None
    window = _Window.of(convolution.get_attributes(), weights.get_length())
    least = max(data.get_min_length(), 1)
    most = max(least, data.get_max_length()) if data.get_max_length() >= 0 else np.inf
    widths = range(least, int(min(most, least + window.reach + window.stride)) + 1)  # wider data repeats these
    return with_older_kernels(convolution) if any(map(window.misses, widths)) else None


@dataclass(frozen=True)
class _Window:
    """A window along one axis. ``begin``, ``end``: its padding; ``same``: "" or the end that "same" padding prefers."""

    taps: int
    stride: int
    dilation: int
    begin: int
    end: int
    same: str

    @classmethod
    def of(cls, attributes: Mapping[str, Any], taps: int) -> _Window:
        stride, dilation, begin, end = (
            attributes[name][-1] for name in ("strides", "dilations", "pads_begin", "pads_end")
        )
        mode = attributes["auto_pad"]
        begin, end = (0, 0) if mode == "valid" else (begin, end)
        return cls(taps, stride, dilation, begin, end, mode.removeprefix("same_") if mode.startswith("same_") else "")

    @property
    def reach(self) -> int:
        return (self.taps - 1) * self.dilation + 1

    def misses(self, width: int) -> bool:
        """Whether the window stands beside data of this width at some place."""
        begin, end = self.begin, self.end
        if self.same:
            both = max((-(-width // self.stride) - 1) * self.stride + self.reach - width, 0)
            begin = both // 2 if self.same == "upper" else both - both // 2
            end = both - begin
        if begin <= 0 and end <= 0:
            return False
        places = np.arange(0, width + begin + end - self.reach + 1, self.stride) - begin
        read = places[:, None] + self.dilation * np.arange(self.taps)
        return bool((((read < 0) | (read >= width)).all(axis=1)).any())
