"""Layers for which the plugin is asked to take another kernel than it would."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovlpt.device.int8_layers import is_depthwise, is_int8_layer
from ovlpt.device.lowering.links import (
    POST_OPERATIONS,
    block_fusion,
    first_after_affine,
    is_in_f64,
    merged_target,
)
from ovlpt.device.this_cpu import reads_few_channels_slowly
from ovlpt.graph.constants import constant, constant_above, precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.relaxed import BRGEMM, OLDER, WITHOUT_AMX, is_relaxed, kernels_of, relaxed, relaxed_like
from ovlpt.graph.shapes import may_be_open, reshaped, shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import RELEASE, Node, Output, opset1, opset8
from ovlpt.precisions import is_low

BLOCK = 4  # channels
_IMAGE = 4  # axes
_VOLUME = 3  # axes of space
_FEW_ROWS = 4  # right with as many, by kernels of AMX
_BLOCKS = (32, 64)  # outputs and inputs, of weights
_FEW_ELEMENTS = 4  # of one sample: with as many convolutions of signed data run without AMX
_ROW = 64  # integers of a tile of AMX
_TILE = 16  # channels of a group, inputs and outputs, which no kernel of AMX before brgemm has
_WINDOWS = (3, 7)  # sizes for which they were measured to be faster


def with_kernels(layer: Node, kernels: str = OLDER, in_f32: bool = False) -> Node:
    """The ``layer``, in its place, by these kernels (`relaxed`), where they have a form of it."""
    attributes, output = layer.get_attributes(), layer.output(0)
    inputs, kind = layer.input_values(), precision_of(output)
    new = relaxed(layer.get_type_name(), inputs, kind, attributes, in_f32=in_f32, kernels=kernels)
    new.set_friendly_name(layer.get_friendly_name())
    replace_output(output, new.output(0))
    return new


def falls_back_to_gemm(layer: Node) -> bool:
    """Whether gemm runs a layer for which older kernels are asked: theirs are for groups of channels in fours, or of one.

    With AVX-512 it computes wrong numbers, mostly zeros, where an activation or a clip follows i8 data, or a factor u8
    data: no error.
    """
    weights = layer.get_input_partial_shape(1)
    if layer.get_type_name() != "GroupConvolution" or weights.is_dynamic:
        return False
    channels = layer.get_input_shape(1)[1:3]
    return list(channels) != [1, 1] and any(count % BLOCK for count in channels)


def read_few_channels(convolution: Node) -> Node | None:
    """An image of two to four channels, as a network's first layer reads it, by older kernels: with VNNI they take 0.75 to
    1 of the time that those of brgemm take, and give the same numbers. Windows of 4x4 take twice as long.

    Not a layer in float, as one with u8 weights is: older kernels clip to the interval of a FakeQuantize that is fused into
    it, and do not round.
    """
    if precision_of(convolution.input_value(1)) != "i8":
        return None
    weights = convolution.get_input_partial_shape(1)
    if weights.is_dynamic or len(weights) != _IMAGE or not 1 < convolution.get_input_shape(1)[1] <= BLOCK:
        return None
    if any(size not in _WINDOWS for size in convolution.get_input_shape(1)[2:]):
        return None
    if kernels_of(convolution) or not reads_few_channels_slowly():
        return None
    return with_kernels(convolution)


def read_one_channel(convolution: Node) -> Node | None:
    """An image of one channel in i8, padded beside its rows and not before the first of them, by older kernels.

    Before OpenVINO 2026.4 one of brgemm computes it where there is AMX and the result is of bf16, and counts the padding
    wrongly, with the plugin's own LPT, too. The older ones take 0.8 to 1.3 of the time.
    """
    weights, attributes = shape_of(convolution.input_value(1)), convolution.get_attributes()
    if RELEASE >= (2026, 4) or precision_of(convolution.input_value(0)) != "i8" or kernels_of(convolution):
        return None
    if weights is None or len(weights) != _IMAGE or weights[1] != 1 or weights[2] == 1:
        return None
    is_beside = attributes["pads_begin"][1] or attributes["pads_end"][1]
    return with_kernels(convolution) if is_beside and not attributes["pads_begin"][0] else None


def leave_amx(convolution: Node) -> Node | None:
    """What kernels of AMX compute wrongly, by kernels without; with the plugin's own LPT, too.

    They read other rows where one column is left of several by a stride, lose a zero point of groups, and over three axes
    they read beside data that is shorter than its window. Of one group over one axis some throw (`lacks_reorder`). What is of
    real numbers `keep_from_amx` keeps in f32, too: in bf16 some of three axes have no kernel without AMX.
    """
    weights, attributes = shape_of(convolution.input_value(1)), convolution.get_attributes()
    if weights is None or is_depthwise(convolution) or kernels_of(convolution):
        return None
    axes = len(attributes["strides"])
    in_groups = len(weights) > axes + 2
    is_wrong = _reads_integers(convolution) and (
        (in_groups and (lacks_reorder(convolution) if weights[0] == 1 else has_zero_point(convolution)))
        or is_shorter_than_window(convolution)
    )
    return with_kernels(convolution, WITHOUT_AMX) if is_wrong or leaves_one_column(convolution) else None


def is_shorter_than_window(convolution: Node) -> bool:
    """Whether the data of a padded convolution over three axes is shorter than its window along one of them, or may be."""
    data, weights = (_sizes(value, _VOLUME) for value in convolution.input_values()[:2])
    dilations = convolution.get_attributes()["dilations"]
    if len(dilations) < _VOLUME or not is_padded(convolution):
        return False
    return any(
        size is None or taps is None or size < (taps - 1) * dilation + 1
        for size, taps, dilation in zip(data, weights, dilations, strict=True)
    )


def has_zero_point(convolution: Node) -> bool:
    """Whether its data has."""
    return convolution.input_value(0).get_node().get_type_name() == "Subtract"


def _reads_integers(convolution: Node) -> bool:
    """Whether its data, less a zero point, is of integers, and no Convert stands before."""
    data = convolution.input_value(0)
    return is_low(precision_of(data.get_node().input_value(0) if has_zero_point(convolution) else data))


def lacks_reorder(layer: Node) -> bool:
    """Whether no Reorder gives a kernel of AMX the weights of one group over one axis, of data with a zero point, in blocks."""
    weights = shape_of(layer.input_value(1))
    if weights is None or len(layer.get_attributes()["strides"]) > 1 or not has_zero_point(layer):
        return False
    sizes = zip(weights[-3:-1], _BLOCKS, strict=True)
    return all(size is not None and size > block and size % block for size, block in sizes)


def leave_amx_before_channels(convolution: Node) -> Node | None:
    """A 1x1 convolution of open sizes, of data with a zero point or of groups of few channels, before what is by channel, by
    kernels without AMX.

    The plugin takes one of AMX for it that is older than brgemm and reads beside what is by channel, with the plugin's own
    LPT, too: with few channels the process ends. With groups it throws in inference.
    """
    if kernels_of(convolution) or not may_be_open(convolution.output(0)) or is_depthwise(convolution):
        return None
    if not _reads_integers(convolution):
        return None
    weights = shape_of(convolution.input_value(1)) if convolution.get_type_name() == "GroupConvolution" else None
    has_few = weights is not None and any(size is not None and size < _TILE for size in weights[1:3])
    if not (has_few or has_zero_point(convolution)) or not is_pointwise(convolution) or is_padded(convolution):
        return None
    return None if first_after_affine(convolution) is None else with_kernels(convolution, WITHOUT_AMX)


def leave_amx_for_signed_data(convolution: Node) -> Node | None:
    """A convolution of signed integers of open sizes, of few inputs, whose result may be of few elements, by kernels without AMX.

    At such sizes the plugin takes those anyway. They need weights with a compensation for signed data, which the kernel of AMX,
    whose weights were kept from an earlier size, does not: wrong numbers, with the plugin's own LPT, too.
    """
    if kernels_of(convolution) or not may_be_open(convolution.output(0)) or is_depthwise(convolution):
        return None
    data, weights = convolution.input_value(0), shape_of(convolution.input_value(1))
    data = data.get_node().input_value(0) if has_zero_point(convolution) else data
    if precision_of(data) != "i8" or weights is None:
        return None
    axes, shape = len(convolution.get_attributes()["strides"]), convolution.get_output_partial_shape(0)
    least = [max(shape[axis].get_min_length(), 1) for axis in range(2, axes + 2)] if shape.rank.is_static else []
    if prod(least) > _FEW_ELEMENTS:
        return None
    outputs, inputs = (size or 1 for size in weights[-axes - 2 : -axes])
    is_right = inputs > _ROW or (is_pointwise(convolution) and min(inputs, outputs) == _ROW)
    return None if is_right else with_kernels(convolution, WITHOUT_AMX)


def is_pointwise(convolution: Node) -> bool:
    """Whether its window is one element."""
    return set(_sizes(convolution.input_value(1), len(convolution.get_attributes()["strides"]))) == {1}


def leaves_one_column(convolution: Node, open_too: bool = True, few_rows: int = _FEW_ROWS) -> bool:
    """Whether a stride along the last axis leaves one column of several, in more than a few rows; ``open_too``: or may do so
    once sizes are known.
    """
    axes = len(strides := convolution.get_attributes()["strides"])
    *rows, columns = _sizes(convolution.output(0), axes)
    if strides[-1] == 1 or columns not in ((1, None) if open_too else (1,)):
        return False
    shape = convolution.get_output_partial_shape(0)
    if shape.rank.is_static and shape[-1].get_min_length() > 1:  # of an open width, too, that has bounds
        return False
    is_one = is_pointwise(convolution) and not is_padded(convolution)
    return not is_one and (None in rows or prod(rows) > few_rows)


def _sizes(value: Output, axes: int) -> Sequence[int | None]:
    return (shape_of(value) or (None,) * axes)[-axes:]


def is_padded(convolution: Node) -> bool:
    """Whether it is, or may be by a mode whose padding depends on the sizes."""
    attributes = convolution.get_attributes()
    return any((*attributes["pads_begin"], *attributes["pads_end"])) or attributes["auto_pad"].startswith("same")


def leave_avx512(convolution: Node) -> Node | None:
    """A convolution in groups of one channel over three axes by kernels of brgemm, or without VNNI of AVX2. Those of brgemm have no
    dilations, so zeros stand between the weights instead.

    From 2026.1 to 2026.3 the older kernel of AVX-512 ends the process, with the plugin's own LPT, too. One with a zero point, or
    with u8 weights, runs in float.
    """
    attributes, weights = convolution.get_attributes(), convolution.input_value(1)
    if not (2026, 1) <= RELEASE < (2026, 4) or len(attributes["strides"]) < _VOLUME or kernels_of(convolution):
        return None
    if not is_depthwise(convolution) or not is_int8_layer(convolution) or has_zero_point(convolution):
        return None
    taps, steps = constant_above(weights), attributes["dilations"]
    if precision_of(weights) != "i8" or taps is None:
        return None
    sizes = [(size - 1) * step + 1 for size, step in zip(taps.shape[3:], steps, strict=True)]
    spread = np.zeros((*taps.shape[:3], *sizes), taps.dtype)
    spread[:, :, :, *(slice(None, None, step) for step in steps)] = taps
    convolution.input(1).replace_source_output(constant(spread, "i8").output(0))
    convolution.set_attribute("dilations", [1] * _VOLUME)
    return with_kernels(convolution, BRGEMM)


def leave_amx_for_activations(deconvolution: Node) -> Node | None:
    """A transposed convolution with several post-operations after its scale and bias, by kernels without AMX: one of AMX, which
    runs those over one axis, applies the first of them alone, with the plugin's own LPT, too.
    """
    if not is_int8_layer(deconvolution) or is_depthwise(deconvolution) or kernels_of(deconvolution):
        return None
    count, own, last = int(_is_of_one_channel(deconvolution)), deconvolution, deconvolution
    while (target := merged_target(last)) is not None and target.get_node().get_type_name() in POST_OPERATIONS:
        last = target.get_node()
        if last.get_type_name() == "FakeQuantize":
            count += _eltwise_of(last)
        elif is_in_f64(last):
            own = last
        else:
            count += 1
    if count < 2:
        return None
    attributes = deconvolution.get_attributes()
    if max(attributes["strides"]) > 1 and max(attributes["dilations"]) > 1:  # there is no other kernel
        block_fusion(own)
        return deconvolution
    return with_kernels(deconvolution, WITHOUT_AMX)


def _is_of_one_channel(layer: Node) -> bool:
    """Whether its result is, whose bias is a post-operation."""
    shape = shape_of(layer.output(0))
    return shape is not None and shape[1] == 1


def _eltwise_of(quantize: Node) -> int:
    """How many post-operations a FakeQuantize is, besides the conversion to what is stored."""
    low = constant_above(quantize.input_value(1))
    return 2 if precision_of(quantize.output(0)) == "f32" else int(low is None or low.any())


def repeat_channels(convolution: Node) -> Node | None:
    """Groups of one channel with several outputs each as a depthwise convolution of data whose channels are repeated.

    Gemm runs the former where each channel has a zero point of its own, and without VNNI mostly: it is wrong, with the
    plugin's own LPT, too, without an error: zeros, sums that are cut to 16 bits, and infinite numbers where floats are bf16.
    brgemm reads the wrong rows where a stride leaves one column. Depthwise kernels take 0.3 to 0.9 of the time.
    """
    data, weights = convolution.input_values()
    shape = shape_of(weights)
    if shape is None or None in shape or not is_int8_layer(convolution):
        return None
    groups, outputs, inputs, *kernel = shape
    if not inputs == 1 < outputs or groups == 1:
        return None
    shift, places, alone = data.get_node(), np.repeat(np.arange(groups), outputs), (groups * outputs, 1, 1, *kernel)
    if is_relaxed(shift) and shift.get_type_name() == "Subtract":
        repeated = [_repeated(value, places, len(kernel)) for value in shift.input_values()]
        data = relaxed_like(shift, repeated, precision_of(data)).output(0)
    else:
        data = _repeated(data, places, len(kernel))
    taps = reshaped(weights, alone).output(0)
    new = relaxed_like(convolution, [data, taps], precision_of(convolution.output(0)))
    replace_output(convolution.output(0), new.output(0))
    return new


def _repeated(value: Output, places: np.ndarray, axes: int) -> Output:
    """The channels at ``places``, which stand before ``axes`` others, of data or of its zero point."""
    values = constant_above(value)
    if values is None:
        return opset8.gather(value, constant(places, "i64"), constant(1, "i64")).output(0)
    if values.ndim <= axes or values.shape[-axes - 1] == 1:
        return value
    return constant(values.take(places, -axes - 1), precision_of(value)).output(0)


def clip_a_line(sigmoid: Node) -> Node | None:
    """``HardSigmoid(x; a, b) == Clamp(x * a + b; 0, 1)``, which the plugin computes in one layer with what stands around it.

    A HardSigmoid is a layer of its own in a reference kernel, with a Reorder on each side where floats are bf16, and the
    layer before it stores what it reads in floats.
    """
    slope, offset = (constant_above(value) for value in sigmoid.input_values()[1:])
    types = {precision_of(value) for value in (*sigmoid.input_values(), *sigmoid.outputs())}
    if slope is None or offset is None or types != {"f32"}:
        return None
    name = sigmoid.get_friendly_name()
    scaled = opset1.multiply(sigmoid.input_value(0), constant(slope))
    scaled.set_friendly_name(made_for(name, Made.SCALE))
    line = opset1.add(scaled, constant(offset))
    line.set_friendly_name(made_for(name, Made.SHIFT))
    clipped = opset1.clamp(line, 0.0, 1.0)
    clipped.set_friendly_name(name)
    replace_output(sigmoid.output(0), clipped.output(0))
    return clipped
