"""Layers for which the plugin is asked to take another kernel than it would."""

from __future__ import annotations

from ovlpt.device.this_cpu import reads_few_channels_slowly
from ovlpt.graph.constants import constant, constant_above, precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.relaxed import has_older_kernels, relaxed
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Node, opset1

BLOCK = 4  # channels
_IMAGE = 4  # axes
_WINDOWS = (3, 7)  # sizes for which they were measured to be faster


def with_older_kernels(layer: Node) -> Node:
    """The relaxed ``layer``, in its place, by oneDNN's kernels before brgemm, where they have a form of it."""
    attributes, output = layer.get_attributes(), layer.output(0)
    new = relaxed(layer.get_type_name(), layer.input_values(), precision_of(output), attributes, older_kernels=True)
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
    if has_older_kernels(convolution) or not reads_few_channels_slowly():
        return None
    return with_older_kernels(convolution)


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
