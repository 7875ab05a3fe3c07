"""Windows of convolutions that kernels go wrong with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovlpt.device.int8_layers import is_depthwise, is_int8_layer
from ovlpt.device.lowering.kernels import falls_back_to_gemm, leaves_one_column, with_kernels
from ovlpt.device.lowering.links import block_fusion
from ovlpt.device.lowering.reshaping import ELEMENTWISE, chain_after, end_in, is_constant
from ovlpt.graph.constants import constant, constant_above, is_real, precision_of, same_operation, values_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.relaxed import has_older_kernels, is_relaxed, kernels_of, relaxed, same_on
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node, Output, PartialShape, opset1, opset8


def pool_strides(convolution: Node) -> Node | None:
    """A strided 1x1 convolution as one without strides, of what a MaxPool of one element leaves of its data.

    Its kernel for AVX2 gathers that data for each thread, and writes 16 channels at a time: of 6 to 8, 22 to 24 and so on it
    writes over what the next thread has gathered. Some inferences give wrong numbers, with the plugin's own LPT, too. The
    pool takes as long.
    """
    if not is_int8_layer(convolution) or not _gathers_half(convolution):
        return None
    data, attributes = convolution.input_value(0), convolution.get_attributes()
    shift = data.get_node() if is_real(precision_of(data)) else None
    strides = attributes["strides"]
    zeros, ones = [0] * len(strides), [1] * len(strides)
    pool = opset1.max_pool(data if shift is None else shift.input_value(0), strides, zeros, zeros, ones)
    pool.set_friendly_name(made_for(convolution.get_friendly_name(), Made.STRIDES))
    data = pool.output(0) if shift is None else same_on(shift, [pool.output(0), shift.input_value(1)]).output(0)
    inputs, kind = [data, convolution.input_value(1)], precision_of(convolution.output(0))
    new = relaxed(convolution.get_type_name(), inputs, kind, attributes | {"strides": ones})
    new.set_friendly_name(convolution.get_friendly_name())
    replace_output(convolution.output(0), new.output(0))
    return new


def _gathers_half(convolution: Node) -> bool:
    """Whether the last 16 channels of data that is gathered, without padding and by strides that divide its sizes, are 6 to 8."""
    attributes, weights = convolution.get_attributes(), shape_of(convolution.input_value(1))
    data, strides = shape_of(convolution.input_value(0)), attributes["strides"]
    is_padded = attributes["auto_pad"] == "explicit" and any((*attributes["pads_begin"], *attributes["pads_end"]))
    if weights is None or data is None or len(strides) > 2 or set(strides) == {1} or is_padded:
        return False
    *groups, _, channels = weights[: -len(strides)]
    is_divided = all(size is None or size % stride == 0 for size, stride in zip(data[2:], strides, strict=True))
    return (
        {*groups, *weights[-len(strides) :]} == {1}
        and is_divided
        and channels is not None
        and channels % 16 in (6, 7, 8)
    )


def as_first_version(pool: Node) -> Node | None:
    """An AvgPool-14 as an AvgPool-1, which rounds sizes as it does, or of floats where that cannot."""
    attributes = pool.get_attributes()
    if pool.get_type_info().version_id == "opset1":
        return None
    data, kind = pool.input_value(0), precision_of(pool.output(0))
    if attributes["rounding_type"] == "ceil_torch" or "dilations" in attributes:
        new = same_operation(pool, [opset1.convert(data, kind).output(0)])
    else:
        new = relaxed("AvgPool", [data], kind, attributes)
    new.set_friendly_name(pool.get_friendly_name())
    replace_output(pool.output(0), new.output(0))
    return new


def take_padding(layer: Node) -> Node | None:
    """A Pad of zeros along the space before a layer as the padding of the layer. The plugin would make a layer that is not
    relaxed of the two. A pool that rounds up keeps its Pad, after which a maximum with the least number stands.
    """
    pad, attributes = layer.input_value(0).get_node(), layer.get_attributes()
    ends = _zeros_around(pad)
    if ends is None:
        return None
    is_pool = layer.get_type_name() == "AvgPool"
    begin, end = (list(attributes[name]) for name in ("pads_begin", "pads_end"))
    is_plain = attributes["auto_pad"] in ("explicit", "valid")
    if is_pool and (not is_plain or attributes["rounding_type"] != "floor" or any((*begin, *end))):
        block_fusion(pad)
        return layer
    if not is_plain:
        return None
    if attributes["auto_pad"] == "valid":
        begin = end = [0] * len(begin)
    begin, end = (np.add(*each).tolist() for each in zip((begin, end), ends, strict=True))
    more: dict[str, Any] = {"pads_begin": begin, "pads_end": end, "auto_pad": "explicit"}
    if is_pool:
        more["exclude-pad"] = False
    inputs, version = [pad.input_value(0), *layer.input_values()[1:]], layer.get_type_info().version_id
    new = relaxed(layer.get_type_name(), inputs, precision_of(layer.output(0)), attributes | more, version)
    new.set_friendly_name(layer.get_friendly_name())
    replace_output(layer.output(0), new.output(0))
    return new


def _zeros_around(pad: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """How many a Pad that one operation reads puts before and after each axis of the space; None where it is another."""
    if pad.get_type_name() != "Pad" or pad.get_attributes()["pad_mode"] != "constant":
        return None
    begin, end, *value = map(constant_above, pad.input_values()[1:])
    if begin is None or end is None or any(each is None or each.any() for each in value):
        return None
    both = np.concatenate([begin, end])
    if (both < 0).any() or begin[:2].any() or end[:2].any() or len(pad.output(0).get_target_inputs()) != 1:
        return None
    return begin[2:], end[2:]


def span_whole_strides(layer: Node) -> Node | None:
    """A transposed convolution of integers whose width is no multiple of its stride, of some columns more, and sliced.

    Kernels of brgemm sum up the columns beyond the last whole stride wrongly where data is signed, at some widths, and at
    others read what lies in memory; with the plugin's own LPT, too. Along other axes they are right. What becomes part of
    the layer stays before the Slice.
    """
    attributes, weights = _padded(layer), layer.get_input_partial_shape(1)
    if attributes is None or weights.is_dynamic or precision_of(layer.input_value(0)) != "i8":
        return None
    stride, begin, end, padded = (
        attributes[name][-1] for name in ("strides", "pads_begin", "pads_end", "output_padding")
    )
    reach = (weights[-1].get_length() - 1) * attributes["dilations"][-1] + 1
    missing = (begin + end - padded - reach) % stride
    if not missing:
        return None
    attributes["output_padding"] = [*attributes["output_padding"][:-1], padded + missing]
    chain = chain_after(layer, ELEMENTWISE, _is_equal_in_columns)
    end, made = chain[-1].output(0), precision_of(layer.output(0))
    targets = end.get_target_inputs()
    wide = relaxed(layer.get_type_name(), layer.input_values()[:2], made, attributes)
    wide.set_friendly_name(layer.get_friendly_name())
    replace_output(layer.output(0), wide.output(0))
    for link in chain[1:]:
        link.validate_and_infer_types()
    end = wide.output(0) if len(chain) == 1 else end
    ends = ([0], [-missing], [1], [-1])
    end_in(opset8.slice(end, *(constant(np.array(each), "i64") for each in ends)), end, targets, Made.WIDE)
    return wide


def cover_every_place(layer: Node) -> Node | None:
    """A transposed convolution of integers with places that no tap reaches, as between strides that are longer than the
    window, of more taps, which are zero.

    Kernels do not quantize what they leave 0 there, or add a bias to; older ones than brgemm's are wrong beyond the last
    tap. With the plugin's own LPT, too.
    """
    attributes, weights = _padded(layer), layer.input_value(1).get_node()
    if attributes is None or not isinstance(weights, Constant):
        return None
    taps, axes = weights.shape[-len(attributes["strides"]) :], range(len(attributes["strides"]))
    dilations, strides, ends, padded = (
        attributes[name] for name in ("dilations", "strides", "pads_end", "output_padding")
    )
    reaches = [(taps[axis] - 1) * dilations[axis] + 1 for axis in axes]
    gaps = [max(strides[axis] - reaches[axis], padded[axis] - ends[axis], 0) for axis in axes]
    if not any(gaps):
        return None
    more = [-(-gap // dilation) for gap, dilation in zip(gaps, dilations, strict=True)]
    beyond = [ends[axis] - padded[axis] + more[axis] * dilations[axis] for axis in axes]
    attributes |= {"pads_end": [max(end, 0) for end in beyond], "output_padding": [max(-end, 0) for end in beyond]}
    spread = np.pad(values_of(weights), [(0, 0)] * (weights.data.ndim - len(more)) + [(0, count) for count in more])
    inputs = [layer.input_value(0), constant(spread, precision_of(weights.output(0))).output(0)]
    new = relaxed(layer.get_type_name(), inputs, precision_of(layer.output(0)), attributes)
    new.set_friendly_name(layer.get_friendly_name())
    replace_output(layer.output(0), new.output(0))
    return new


def _padded(layer: Node) -> dict[str, Any] | None:
    """The attributes of a transposed convolution with all its padding; None where that depends on dynamic sizes."""
    attributes = layer.get_attributes()
    if layer.get_input_size() == 2:
        return attributes | {"auto_pad": "explicit"}
    data, weights, result = (shape_of(value) for value in (*layer.input_values()[:2], layer.output(0)))
    if None in data[2:] or None in result[2:] or None in weights:
        return None
    names = ("strides", "dilations", "pads_begin")
    ends = [
        (size - 1) * stride + (taps - 1) * dilation + 1 - begin - wanted
        for size, taps, wanted, stride, dilation, begin in zip(
            data[2:], weights[-len(data[2:]) :], result[2:], *(attributes[name] for name in names), strict=True
        )
    ]
    more = {"pads_end": [max(end, 0) for end in ends], "output_padding": [max(-end, 0) for end in ends]}
    return attributes | {"auto_pad": "explicit"} | more


def _is_equal_in_columns(value: Output) -> bool:
    """Whether a value is a constant that has one element along the last axis."""
    return is_constant(value) and value.get_shape()[-1:] in ([], [1])


def see_padding_alone(convolution: Node) -> Node | None:
    """A window that stands on a column of padding and on no data, at some place along the last axis, with older kernels.

    Those of brgemm give what they find in memory there, or write beyond it, which ends the process; with the plugin's own
    LPT, too. Along other axes they are right, but for depthwise kernels and data of one channel.
    """
    return with_kernels(convolution) if _may_see_padding_alone(convolution) else None


def join_groups(convolution: Node) -> Node | None:
    """Groups of odd sizes with such a window as one group, with weights of 0 between what were groups: gemm, which older kernels
    have for them, is wrong in bf16, and before activations.
    """
    data, weights = convolution.input_values()
    taps = constant_above(weights) if is_relaxed(convolution) and falls_back_to_gemm(convolution) else None
    if taps is None or not _may_see_padding_alone(convolution):
        return None
    groups, outputs, inputs, *kernel = taps.shape
    spread = np.zeros((groups, outputs, groups, inputs, *kernel), taps.dtype)
    for group in range(groups):
        spread[group, :, group] = taps[group]
    whole = constant(spread.reshape(groups * outputs, groups * inputs, *kernel), precision_of(weights)).output(0)
    given = precision_of(convolution.output(0))
    new = relaxed("Convolution", [data, whole], given, convolution.get_attributes())
    new.set_friendly_name(convolution.get_friendly_name())
    replace_output(convolution.output(0), new.output(0))
    return new


def read_only_column(convolution: Node) -> Node | None:
    """A convolution of floats of one channel that leaves one column of several rows by its stride, or may do so once sizes are
    known, by older kernels and in f32.

    Kernels of brgemm for AVX-512 read other rows, with the plugin's own LPT and without any, too: wrong numbers, no error. The
    older ones of bf16 are wrong as well; those of f32 take 0.4 to 0.8 of the time.
    """
    weights, axes = shape_of(convolution.input_value(1)), len(convolution.get_attributes()["strides"])
    if weights is None or is_int8_layer(convolution) or kernels_of(convolution):
        return None
    *outer, channels = weights[:-axes]
    if channels != 1 or outer[:-1] not in ([], [1]) or not leaves_one_column(convolution, few_rows=1):
        return None
    return with_kernels(convolution, in_f32=True)


def _may_see_padding_alone(convolution: Node) -> bool:
    attributes, weights = convolution.get_attributes(), shape_of(convolution.input_value(1))
    if weights is None or has_older_kernels(convolution):
        return False
    data, space = convolution.get_input_partial_shape(0), len(attributes["strides"])
    in_rows = is_depthwise(convolution) or weights[-space - 1] == 1
    for axis in range(-space if in_rows else -1, 0):
        size = data[axis] if data.rank.is_static else PartialShape([-1])[0]
        if weights[axis] is not None and _may_miss(_Window.of(attributes, axis, weights[axis]), size):
            return True
    return False


def _may_miss(window: _Window, size: Any) -> bool:
    """Whether the window stands beside data of a ``size``, which may be dynamic, at some place."""
    least = max(size.get_min_length(), 1)
    most = max(least, size.get_max_length()) if size.get_max_length() >= 0 else np.inf
    sizes = range(least, int(min(most, least + window.reach + window.stride)) + 1)  # larger data repeats these
    return any(map(window.misses, sizes))


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
    def of(cls, attributes: Mapping[str, Any], axis: int, taps: int) -> _Window:
        stride, dilation, begin, end = (
            attributes[name][axis] for name in ("strides", "dilations", "pads_begin", "pads_end")
        )
        mode = attributes["auto_pad"]
        begin, end = (0, 0) if mode == "valid" else (begin, end)
        return cls(taps, stride, dilation, begin, end, mode.removeprefix("same_") if mode.startswith("same_") else "")

    @property
    def reach(self) -> int:
        return (self.taps - 1) * self.dilation + 1

    def misses(self, width: int) -> bool:
        """Whether the window stands beside data of this width, along its axis, at some place."""
        begin, end = self.begin, self.end
        if self.same:
            both = max((-(-width // self.stride) - 1) * self.stride + self.reach - width, 0)
            begin = both // 2 if self.same == "upper" else both - both // 2
            end = both - begin
        if begin <= 0 and end <= 0:
            return False
        if max(begin, end) < self.reach and self.dilation <= width:
            return False  # it reaches the data from either side, and has no taps so far apart that the data is between
        places = np.arange(0, width + begin + end - self.reach + 1, self.stride) - begin
        read = places[:, None] + self.dilation * np.arange(self.taps)
        return bool((((read < 0) | (read >= width)).all(axis=1)).any())
