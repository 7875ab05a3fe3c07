"""Windows and groups of convolutions that kernels go wrong with: one test for each trap that the lowering avoids."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import ovlpt
from ovlpt.device import PluginLowering, instruction_sets, lowering, subprocess_call
from ovlpt.device.compile import float_types
from ovlpt.device.lowering import rules
from ovlpt.graph.relaxed import WITHOUT_AMX, kernels_of, relaxed
from ovlpt.openvino_api import Core, Manager, PartialShape, Type, opset1
from ovlpt.trace import InputError
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.graphs import opset14
from tests.lowered import FORMS, compiled_in, drop_in, weighted
from tests.networks import (
    const,
    convolution,
    int8_weights,
    model,
    parameter,
    quantized,
)


def even_weights(shape):
    """For signed data oneDNN halves them, and rounds, on CPUs with AVX-512 and without VNNI."""
    return 2 * np.random.default_rng(0).integers(-15, 16, shape)


AFTER_GEMM = {
    "a clip": lambda value: opset1.clamp(value, -0.2, 0.3),
    "a negative factor": lambda value: opset1.subtract(const(0.3), value),
    "a function": opset1.sigmoid,
    "a factor": lambda value: opset1.multiply(value, const(0.3)),
    "a quantization": lambda value: opset1.relu(quantized(value, -0.5, 0.4)),
}


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("after", AFTER_GEMM.values(), ids=AFTER_GEMM)
@pytest.mark.parametrize("low", [0, -1.28, -1], ids=["u8", "i8", "zero_point"])
@pytest.mark.parametrize("shape", [(2, 2, 4, 2, 2), (8, 2, 1, 2, 2)], ids=["by channel", "strided"])
def test_groups_that_older_kernels_do_not_have(core, infer, shape, low, after, how):
    """Gemm ran such layers of open sizes, and gave zeros to what follows; ``low``: of the data."""
    x, groups = parameter([-1, 8, -1, -1]), shape[0]
    weights = quantized(const(0.02 * np.random.default_rng(0).integers(-31, 32, shape)), -1.28, 1.27)
    strides = [1, 2 if groups == 8 else 1]  # of several outputs a channel, along a width that may be one
    layer = opset1.group_convolution(quantized(x, low, low + 2.55), weights, strides, [0, 1], [1, 1], [1, 1])
    net = model(after(opset1.prelu(layer, const(np.linspace(-0.1, 0.4, groups * shape[1])))), x)
    for sizes in ((1, 8, 1, 1), (1, 8, 4, 5)):
        values, fixed = [np.random.default_rng(0).uniform(low, low + 2.5, sizes).astype(np.float32)], net.clone()
        fixed.reshape(sizes)
        (expected,) = infer(fixed, values, "NO")
        assert_close(infer(how(net, core=core), values), [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
def test_several_outputs_of_each_channel_of_open_batch(by_form, form):
    """As above."""
    x = parameter([-1, 16, 3, 3])
    weights = int8_weights([16, 2, 1, 3, 3])
    net = model(opset1.group_convolution(quantized(x, -1, 1.55), weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 16, 3, 3)).astype(np.float32)]
    expected = by_form(net, inputs)
    assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
def test_several_outputs_of_each_channel_over_one_pixel(by_form, form):
    """Of known sizes and with a scale for each output, all came to nothing in the saved form."""
    x = parameter([1, 16, 3, 3])
    stored = np.random.default_rng(0).integers(-63, 64, (16, 2, 1, 3, 3))
    scale = const(np.linspace(0.004, 0.008, 32).reshape(16, 2, 1, 1, 1))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), scale)
    net = model(opset1.group_convolution(quantized(x, -2.54, 2.54, 255), weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)
    inputs = [np.random.default_rng(0).uniform(-2.5, 2.5, (1, 16, 3, 3)).astype(np.float32)]
    expected = by_form(net, inputs)
    assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("lowered", [drop_in, ovlpt.transform], ids=["saved later", "transformed"])
def test_a_scale_after_groups_of_odd_sizes(core, infer, lowered):
    """As a post-operation it would be that of each group's first outputs for all of them."""
    x = parameter([1, 6, 8, 8])
    stored = np.random.default_rng(0).integers(-63, 64, (2, 12, 3, 2, 2))
    scale = const(np.geomspace(1e-3, 1e-2, 24).reshape(2, 12, 1, 1, 1))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), scale)
    net = model(opset1.group_convolution(quantized(x, -2.54, 2.54, 255), weights, [1, 1], [0, 0], [0, 0], [1, 1]), x)
    inputs = inputs_of(net)
    found, expected = infer(lowered(net, core=core), inputs), infer(net, inputs, "NO")
    assert_close(found, expected, level=0.02 * float(np.abs(expected[0]).max()), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0.0, -1.0], ids=["symmetric", "zero_point"])
def test_a_stride_along_one_column_of_several_outputs_a_channel(by_form, form, low):
    """All rows but the first came from elsewhere, with the plugin's own LPT too."""
    x = parameter([1, 8, 3, 3])
    stored = np.random.default_rng(0).integers(-63, 64, (8, 2, 1, 2, 3))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(np.float32(0.01)))
    net = model(opset1.group_convolution(quantized(x, low, 2), weights, [1, 2], [1, 1], [0, 0], [1, 1]), x)
    inputs, hint = inputs_of(net), {"INFERENCE_NUM_THREADS": 1}
    expected = by_form(net, inputs, **hint)
    assert_close([by_form(net, inputs, form, **hint)], [expected], level=0.03 * np.abs(expected).max(), share=1)


def test_a_stride_along_an_open_width_of_several_outputs_a_channel(core):
    """As above, where the width becomes one column."""
    x = parameter([1, 8, -1, -1])
    stored = np.random.default_rng(0).integers(-63, 64, (8, 2, 1, 3, 3))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(np.float32(0.01)))
    net = model(opset1.group_convolution(quantized(x, -2, 2), weights, [1, 2], [1, 1], [0, 0], [1, 1]), x)
    values, fixed = [np.random.default_rng(0).uniform(-2, 2, (1, 8, 3, 3)).astype(np.float32)], net.clone()
    fixed.reshape([1, 8, 3, 3])
    expected = core.compile_model(fixed, "CPU", TRUTH)(values)[0]
    found = ovlpt.compile_model(net, "CPU", {**EXACT, "INFERENCE_NUM_THREADS": 1}, core=core)(values)[0]
    assert_close([found], [expected], level=0.03 * np.abs(expected).max(), share=1)


SEVERAL_OUTPUTS = {  # sizes of data, open ones; outputs of each channel; taps, stride and padding along each axis
    "line": ([12, 9], [-1, 12, -1], 2, (3, 1, 1)),
    "image": ([8, 9, 8], [1, 8, 9, 8], 3, (2, 2, 0)),
    "one pixel": ([8, 1, 1], [-1, 8, -1, -1], 2, (3, 2, 1)),
    "over three axes": ([16, 5, 6, 4], [1, 16, 5, 6, 4], 2, (2, 2, 0)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1.28, -1], ids=["u8", "i8", "zero_point"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(
    ("sizes", "dilation"), [([64, 40], 1), ([64, 9, 9], 2), ([64, 9, 9], 1), ([-1, 64, -1, -1], 1)], ids=str
)
def test_slopes_by_channel_after_a_depthwise_layer(by_form, form, sizes, dilation, outputs, low):
    """With AVX-512 and VNNI kernels before brgemm read others for u8 data, with the plugin's own LPT too: -1 to 5 dB."""
    x, shape = parameter(sizes if -1 in sizes else [1, *sizes]), [1, 64, 9, 9] if -1 in sizes else [1, *sizes]
    axes = len(shape) - 2
    window = [1] * axes, [dilation] * axes, [dilation] * axes, [dilation] * axes
    layer = opset1.group_convolution(
        quantized(x, low, low + 2.55), int8_weights([64, outputs, 1, *[3] * axes]), *window
    )
    net = model(opset1.prelu(layer, const(np.random.default_rng(1).uniform(-0.2, 0.5, 64 * outputs))), x)
    values = [np.random.default_rng(0).uniform(low, low + 2.5, shape).astype(np.float32)]
    assert_close([by_form(net, values, form)], [by_form(net, values)])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("sizes", "dilation"), [([32, 100], 1), ([-1, 16, -1], 1), ([16, 32, 32], 2)], ids=str)
def test_slopes_of_few_channels_after_a_depthwise_layer_of_many_columns(by_form, sizes, dilation, form):
    """As above: off by up to 150 % of the largest."""
    x, shape = parameter(sizes if -1 in sizes else [2, *sizes]), [2, 16, 100] if -1 in sizes else [2, *sizes]
    channels, axes = shape[1], len(shape) - 2
    weights = int8_weights([channels, 1, 1, *[3] * axes])
    window = [1] * axes, [dilation] * axes, [dilation] * axes, [dilation] * axes
    layer = opset1.group_convolution(quantized(x, 0, 2.55), weights, *window)
    net = model(opset1.prelu(layer, const(np.random.default_rng(1).uniform(-0.2, 0.5, channels))), x)
    values = [np.random.default_rng(0).uniform(0, 2.5, shape).astype(np.float32)]
    assert_close([by_form(net, values, form)], [by_form(net, values)])


ZERO_POINTS = {  # of eight bits for each channel
    "of each": lambda channels: np.random.default_rng(1).integers(60, 200, channels),
    "i8": lambda channels: np.full(channels, 128),
    "u8": np.zeros,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("case", "kind"), [*product(("line", "image", "one pixel"), ZERO_POINTS), ("over three axes", "of each")]
)
def test_several_outputs_of_each_channel_of_whole_weights(by_form, form, case, kind):
    """Gemm cut sums of two products to 16 bits without VNNI, and with it where each channel has a zero point of its own."""
    (channels, *space), opened, outputs, (taps, stride, pad) = SEVERAL_OUTPUTS[case]
    axes, ones, random = len(space), [1] * len(space), np.random.default_rng(0)
    step = np.linspace(0.005, 0.02, channels)
    begin = -step * ZERO_POINTS[kind](channels)
    ends = [const(end.reshape(1, channels, *ones)) for end in (begin, begin + 255 * step)]
    x, stored = parameter(opened), random.integers(-127, 128, (channels, outputs, 1, *[taps] * axes))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(np.float32(0.01)))
    window = [stride] * axes, [pad] * axes, [pad] * axes, ones
    layer = opset1.group_convolution(opset1.fake_quantize(x, *ends, *ends, 256), weights, *window)
    net, values = model(opset1.relu(layer), x), [random.uniform(-1, 2, (1, channels, *space)).astype(np.float32)]
    assert_close([by_form(net, values, form)], [by_form(net, values)])


FEW_GROUPS = {  # sizes of data, with open ones in the model; and of weights
    "an image of open batch": ((1, 2, 6, 2), (-1, 2, 6, 2), (2, 2, 1, 2, 2)),
    "a line of open batch": ((1, 3, 3), (-1, 3, 3), (3, 2, 1, 3)),
    "a line of open length": ((1, 2, 3), (1, 2, -1), (2, 3, 1, 3)),
    "four channels": ((1, 4, 3), (-1, 4, -1), (4, 2, 1, 2)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", FEW_GROUPS)
def test_few_groups_of_several_outputs_a_channel_and_a_zero_point(by_form, form, case):
    """Gemm ran them for so few products, and left the zero point out, with the plugin's own LPT too."""
    sizes, opened, shape = FEW_GROUPS[case]
    x, space = parameter(list(opened)), len(sizes) - 2
    layer = int8_weights(list(shape)), [1] * space, [0] * space, [0] * space, [1] * space
    net = model(opset1.group_convolution(quantized(x, -1, 1.94), *layer), x)
    inputs, hint = [np.random.default_rng(0).uniform(-1, 1.9, sizes).astype(np.float32)], {"INFERENCE_NUM_THREADS": 1}
    expected = by_form(net, inputs, **hint)
    assert_close([by_form(net, inputs, form, **hint)], [expected], level=0.03 * np.abs(expected).max(), share=1)


FEW_PRODUCTS = {  # sizes of data, with open ones in the model; weights; strides, begin of the padding
    "padded": ((1, 2, 6, 8), (1, 2, 6, 8), (2, 2, 1, 1, 2), (1, 2), (0, 1)),
    "image": ((1, 2, 7, 7), (1, 2, 7, 7), (2, 4, 1, 2, 2), (2, 2), (0, 0)),
    "three groups": ((1, 3, 3), (1, 3, 3), (3, 2, 1, 3), (1,), (1,)),
    "five groups": ((1, 5, 3), (1, 5, 3), (5, 3, 1, 2), (1,), (0,)),
    "eight groups": ((1, 8, 3), (1, 8, 3), (8, 2, 1, 2), (2,), (0,)),
    "open image": ((1, 2, 6, 8), (-1, 2, -1, -1), (2, 2, 1, 1, 2), (1, 2), (0, 1)),
    "nine groups of open length": ((1, 9, 3), (1, 9, -1), (9, 2, 1, 3), (1,), (1,)),
    "twelve groups of open length": ((1, 12, 3), (1, 12, -1), (12, 3, 1, 2), (1,), (0,)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1.28, -1], ids=["u8", "i8", "zero_point"])
@pytest.mark.parametrize("case", FEW_PRODUCTS)
def test_a_factor_after_an_activation_of_few_products(by_form, form, case, low):
    """Gemm ran them, and gave zeros, with the plugin's own LPT too."""
    sizes, opened, shape, strides, begin = FEW_PRODUCTS[case]
    x, ones = parameter(list(opened)), [1] * len(strides)
    weights = opset1.multiply(opset1.convert(opset1.constant(even_weights(shape).astype(np.int8)), "f32"), const(0.02))
    layer = opset1.group_convolution(quantized(x, low, low + 2.55), weights, strides, begin, [0] * len(ones), ones)
    net = model(opset1.relu(layer), x)
    inputs = [np.random.default_rng(0).uniform(low, low + 2.5, sizes).astype(np.float32)]
    expected = by_form(net, inputs, INFERENCE_NUM_THREADS=1)
    assert_close(
        [by_form(net, inputs, form, INFERENCE_NUM_THREADS=1)], [expected], level=0.03 * np.abs(expected).max(), share=1
    )


BESIDE_DATA = {  # sizes, kernel, strides, dilations, begin and end of the padding
    "over_one_column": ([4, 1], [2, 2], [1, 1], [1, 2], [1, 1], [1, 1]),
    "strided": ([1, 3], [1, 2], [1, 2], [2, 4], [1, 1], [0, 1]),
    "after_the_data": ([3], [1], [1], [1], [0], [2]),
    "after_strides": ([3, 3], [2, 2], [2, 2], [1, 1], [0, 1], [0, 2]),
}


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("low", [0, -1], ids=["symmetric", "zero_point"])
@pytest.mark.parametrize("case", BESIDE_DATA)
def test_a_window_on_a_column_of_padding_alone(core, infer, case, low, groups):
    """It was what lay in memory, or the process ended, with the plugin's own LPT too; of an open width as well."""
    size, kernel, strides, dilations, begin, end = BESIDE_DATA[case]
    stored = np.random.default_rng(0).integers(-31, 32, (groups, 8 // groups, 16 // groups, *kernel))
    weights = opset1.multiply(opset1.convert(const(stored[0] if groups == 1 else stored, "i8"), "f32"), const(0.01))
    layer = opset1.convolution if groups == 1 else opset1.group_convolution
    values, none = [np.random.default_rng(0).uniform(-2, 2, (1, 16, *size)).astype(np.float32)], [0] * len(size)
    x = parameter([1, 16, *size])
    wider = opset1.pad(
        quantized(x, low, 2), const([0, 0, *begin], "i64"), const([0, 0, *end], "i64"), "constant", const(0)
    )
    expected = infer(model(layer(wider, weights, strides, none, none, dilations), x), values)  # floats ended it, too
    for sizes in ([1, 16, *size], [1, 16, *size[:-1], -1]):
        net = model(layer(quantized(x := parameter(sizes), low, 2), weights, strides, begin, end, dilations), x)
        assert_close(infer(drop_in(net, core), values), expected, level=0.05)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1.28, -1], ids=["u8", "i8", "zero_point"])
@pytest.mark.parametrize("after", [opset1.relu, lambda value: value], ids=["relu", "nothing"])
@pytest.mark.parametrize(("size", "kernel"), [([4], [1]), ([5, 7], [1, 3]), ([4, 4, 1], [2, 3, 2])], ids=str)
def test_groups_of_odd_sizes_on_a_column_of_padding_alone(core, by_form, size, kernel, after, low, form):
    """Kernels for groups in fours have no form of them, and the one that is left was off by several times the range in bf16."""
    weights = int8_weights([3, 2, 2, *kernel])
    ones, begin = [1] * len(size), [*[0] * (len(size) - 1), kernel[-1]]
    for sizes in ([2, 6, *size], [-1, 6, *size]):
        x = parameter(sizes)
        layer = opset1.group_convolution(quantized(x, low, low + 2.55), weights, ones, begin, begin, ones)
        values = [np.random.default_rng(0).uniform(-1, 1.5, (2, 6, *size)).astype(np.float32)]
        net = model(after(layer), x)
        expected = by_form(net, values)
        for precision in float_types(core):
            found = by_form(net, values, form, INFERENCE_PRECISION_HINT=precision)
            assert_close([found], [expected], level=0.02 * float(np.abs(expected).max()), share=1)


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_depthwise_window_on_a_row_of_padding_alone(core, infer, how, stride, outputs):
    """The process ended where the batch is open and data have a zero point, with the plugin's own LPT too."""
    x, channels = parameter([-1, 16 // outputs, 5, 7]), 16 // outputs
    layer = quantized(x, -1, 1.55), int8_weights([channels, outputs, 1, 1, 1]), [1, stride], [0, 0], [1, 0], [1, 1]
    net = model(convolution(quantized(opset1.group_convolution(*layer), -1, 1.2), 8, kernel=1), x)
    values, fixed = [np.random.default_rng(0).uniform(-1, 1.5, (1, channels, 5, 7)).astype(np.float32)], net.clone()
    fixed.reshape([1, channels, 5, 7])
    expected = infer(fixed, values, "NO")
    assert_close(infer(how(net, core=core), values), expected, level=0.05 * np.abs(expected[0]).max(), share=0.1)


@pytest.mark.parametrize("hint", ["f32", "bf16"])
@pytest.mark.parametrize("low", [0, -1.28, -1], ids=["u8", "i8", "zero_point"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_groups_of_one_channel_over_three_axes(core, outputs, low, hint):
    """With a zero point compiling throws where floats are bf16; without, two outputs of each were no numbers there."""
    x, ones = parameter([-1, 12, 1, 7, 4]), [1, 1, 1]
    weights = int8_weights([12, outputs, 1, 1, 3, 1])
    net = model(opset1.group_convolution(quantized(x, low, low + 2.55), weights, ones, [0, 1, 0], [0, 0, 0], ones), x)
    values, fixed = np.random.default_rng(0).uniform(low, low + 2.5, (1, 12, 1, 7, 4)).astype(np.float32), net.clone()
    fixed.reshape(values.shape)
    (expected,) = core.compile_model(fixed, "CPU", TRUTH)(values).values()
    compiled = core.compile_model(drop_in(net, core), "CPU", {"INFERENCE_PRECISION_HINT": hint})
    (found,) = compiled(values).values()
    assert_close([found], [expected], level=0.02 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1], ids=["symmetric", "zero point"])
@pytest.mark.parametrize("after", ["slopes, quantized", "slopes", "interval"])
def test_what_is_by_channel_after_groups_of_few_channels(core, by_form, after, low, form):
    """Gemm runs them with AMX, and on CPUs without AVX-512, and read it from elsewhere, with the plugin's own LPT, too: off by a
    half, or infinite.
    """
    random, high = np.random.default_rng(0), const(np.linspace(0.3, 2, 20).reshape(1, 20, 1, 1))
    x, at = parameter([1, 8, 6, 7]), ([1, 1], [1, 1], [1, 1], [1, 1])
    layer = opset1.group_convolution(quantized(x, low, 1.5), int8_weights([2, 10, 4, 3, 3]), *at)
    if after == "interval":
        ends = opset1.negative(high), high
        layer = opset1.fake_quantize(layer, *ends, *ends, 256)
    else:
        layer = opset1.prelu(layer, const(np.linspace(-2, 2, 20)))
    quantizes = after == "slopes, quantized"
    weights = int8_weights((8, 20, 3, 3)) if quantizes else const(random.normal(0, 0.2, (8, 20, 3, 3)))
    net = model(opset1.convolution(quantized(layer, -2, 2) if quantizes else layer, weights, *at), x)
    inputs = [random.uniform(low, 1.4, (1, 8, 6, 7)).astype(np.float32)]
    expected = by_form(net, inputs)
    for precision in float_types(core):
        found = by_form(net, inputs, form, INFERENCE_PRECISION_HINT=precision)
        assert_close([found], [expected], level=0.06 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
def test_a_factor_after_an_activation_of_groups_of_few_channels(by_form, form):
    """As above: off by up to 80 % of the largest."""
    x, random = parameter([-1, 8, 9, 9]), np.random.default_rng(0)
    stored = opset1.convert(const(random.integers(-63, 64, (2, 10, 4, 3, 3)), "i8"), "f32")
    weights = opset1.multiply(stored, const(np.float32(1 / 127)))
    layer = opset1.group_convolution(quantized(x, -1, 1.55), weights, [1, 1], [1, 1], [1, 1], [1, 1])
    shift, factor = (const(np.linspace(*ends, 20).reshape(1, 20, 1, 1)) for ends in ((-1, 1), (0.5, 2)))
    net = model(opset1.multiply(opset1.clamp(opset1.add(layer, shift), 0, 6), factor), x)
    values = [random.uniform(-1, 1.5, (2, 8, 9, 9)).astype(np.float32)]
    expected = by_form(net, values)
    assert_close([by_form(net, values, form)], [expected], level=0.02 * np.abs(expected).max(), share=1)


def test_a_window_over_data_of_an_open_rank(core, infer):
    """The native library leaves such a layer in float, but relaxed: the lowering asked the width of data without a rank."""
    x, weights = (
        opset1.parameter(PartialShape.dynamic(), Type.f32),
        const(even_weights((8, 4, 1, 2)).astype(np.float32)),
    )
    attributes = opset1.convolution(x, weights, [1, 1], [0, 1], [0, 1], [1, 1]).get_attributes()
    net = model(relaxed("Convolution", [x.output(0), weights.output(0)], "f32", attributes), x)
    data = [np.random.default_rng(0).uniform(-1, 1, (1, 4, 3, 5)).astype(np.float32)]
    manager = Manager()
    manager.register_pass(PluginLowering("CPU"))
    manager.run_passes(net)
    net.reshape([-1] * 4)
    plain = model(opset1.convolution(y := parameter([1, 4, 3, 5]), weights, [1, 1], [0, 1], [0, 1], [1, 1]), y)
    assert_close(infer(net, data), infer(plain, data, "NO"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("after", ["interval", "slopes", "shift"])
@pytest.mark.parametrize("sizes", [(2, 1, 1), (2, 7, 7), (3, 1, 17)], ids=str)
def test_channels_after_a_pointwise_layer_with_a_zero_point(by_form, sizes, after, form):
    """With AMX an older kernel read beside them, where height or width is open, and the process ended."""
    batch, *space = sizes
    x, random = parameter([batch, 8, -1, -1]), np.random.default_rng(0)
    stored = opset1.convert(const(random.integers(-63, 64, (16, 8, 1, 1)), "i8"), "f32")
    weights = opset1.multiply(stored, const(np.linspace(0.01, 0.02, 16).reshape(16, 1, 1, 1)))
    layer = opset1.convolution(quantized(x, -2, 0.55), weights, [1, 1], [0, 0], [0, 0], [1, 1])
    if after == "slopes":
        layer = opset1.prelu(layer, const(np.linspace(-0.2, 0.5, 16)))
    elif after == "shift":
        layer = opset1.add(opset1.relu(layer), const(np.linspace(-1, 1, 16).reshape(1, 16, 1, 1)))
    net = model(quantized(layer, -1.28, 3.82), x)
    values = [random.uniform(-2, 0.5, (batch, 8, *space)).astype(np.float32)]
    assert_close([by_form(net, values, form)], [by_form(net, values)], level=0.02, share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1.28], ids=["u8", "i8"])
@pytest.mark.parametrize("shape", [(3, 8, 8), (3, 4, 16), (5, 8, 4)], ids=str)
def test_channels_after_pointwise_groups_of_few_channels(by_form, shape, low, form):
    """With AMX, where height or width is open, an older kernel was prepared that does not exist: inference threw."""
    groups, outputs, inputs = shape
    x = parameter([2, groups * inputs, -1, -1])
    layer = opset1.group_convolution(
        quantized(x, low, low + 2.55), int8_weights([*shape, 1, 1]), [1, 1], [0, 0], [0, 0], [1, 1]
    )
    net = model(opset1.prelu(layer, const(np.linspace(-0.2, 0.5, groups * outputs))), x)
    for space in ((1, 1), (3, 5)):
        values = [np.random.default_rng(0).uniform(low, low + 2.5, (2, groups * inputs, *space)).astype(np.float32)]
        expected = by_form(net, values)
        assert_close([by_form(net, values, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ["strided", "one group"])
def test_blocks_of_weights_over_one_axis_beside_a_zero_point(by_form, case, form):
    """With AMX there is no Reorder into blocks that the channels do not fill: inference threw, of one group with stock, too."""
    x = parameter([-1, 80, -1])
    if case == "strided":
        layer = opset1.convolution(quantized(x, -0.7, 1.85), int8_weights([48, 80, 1]), [2], [0], [0], [1])
    else:
        layer = opset1.group_convolution(quantized(x, -0.7, 1.85), int8_weights([1, 48, 80, 3]), [1], [1], [1], [1])
    net, values = model(layer, x), [np.random.default_rng(0).uniform(-0.7, 1.8, (2, 80, 17)).astype(np.float32)]
    expected = by_form(net, values)
    assert_close([by_form(net, values, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("after", ["interval", "factor"])
def test_several_outputs_of_each_channel_over_three_axes_beside_a_zero_point(core, by_form, after, kernel, form):
    """They run in float, and in bf16 there is no kernel without AMX, which they were asked to leave: inference threw."""
    x, random = parameter([-1, 16, 5, 6, 7]), np.random.default_rng(0)
    weights = int8_weights([16, 2, 1, kernel, kernel, kernel])
    window = [1] * 3, [kernel // 2] * 3, [kernel // 2] * 3, [1] * 3
    layer = opset1.group_convolution(quantized(x, -0.7, 1.85), weights, *window)
    by_channel = const(np.linspace(0.5, 2, 32).reshape(1, 32, 1, 1, 1))
    if after == "factor":
        layer = opset1.multiply(opset1.sigmoid(layer), by_channel)
    net = model(quantized(opset1.multiply(layer, by_channel), -2, 3.1), x)
    values = [random.uniform(-0.7, 1.8, (1, 16, 5, 6, 7)).astype(np.float32)]
    expected = by_form(net, values)
    for precision in float_types(core):
        found = by_form(net, values, form, INFERENCE_PRECISION_HINT=precision)
        assert_close([found], [expected], level=0.05, share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1.28], ids=["u8", "i8"])
@pytest.mark.parametrize(
    ("outputs", "size", "dilations"),
    [(1, 6, [1, 2, 1]), (1, -1, [2, 2, 2]), (1, 6, [1, 1, 1]), (2, 6, [2, 1, 1])],
    ids=["dilated", "open", "plain", "two outputs"],
)
@pytest.mark.parametrize("after", ["", "slopes", "interval"])
def test_depthwise_layers_over_three_axes(core, by_form, after, outputs, size, dilations, low, form):
    """From 2026.1 to 2026.3 with AVX-512 the process ended, with the plugin's own LPT, too: where they are dilated, or without
    VNNI.
    """
    x, channels = parameter([1, 12, size, size, size]), 12 * outputs
    stored = even_weights((12, outputs, 1, 3, 3, 3))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(0.01))
    layer = opset1.group_convolution(quantized(x, low, low + 2.55), weights, [1, 2, 1], [1] * 3, [0, 1, 2], dilations)
    if after == "slopes":
        layer = opset1.prelu(layer, const(np.linspace(-0.3, 0.6, channels)))
    if after == "interval":
        layer = quantized(opset1.sigmoid(layer), 0, 1.02)
    net = model(layer, x)
    values = [np.random.default_rng(0).uniform(low, low + 2.5, (1, 12, 6, 6, 6)).astype(np.float32)]
    expected = by_form(net, values)
    for precision in float_types(core):
        found = by_form(net, values, form, INFERENCE_PRECISION_HINT=precision)
        assert_close([found], [expected], level=0.03 * float(np.abs(expected).max()), share=1)


SHORT = {  # sizes, kernel with what it reads of a group, strides, dilations, padding, groups
    "one_column": ([16, 2], [16, 3, 3], [2, 2], [1, 1], [1, 1], 1),
    "one_column_of_groups": ([16, 2], [8, 3, 3], [2, 2], [1, 1], [1, 1], 2),
    "one_column_without_padding": ([31, 3], [16, 2, 2], [2, 3], [1, 1], [0, 0], 1),
    "groups": ([16, 5], [12, 2, 3], [1, 1], [1, 1], [1, 0], 2),
    "one_row": ([1, 8, 9], [16, 3, 3, 3], [1, 1, 1], [1, 1, 1], [2, 0, 1], 1),
    "dilated": ([9, 9, 6], [16, 4, 4, 7], [1, 1, 1], [3, 3, 1], [1, 3, 3], 1),
    "one_channel": ([7, 3, 6], [1, 3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1], 1),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -0.5], ids=["u8", "zero_point"])
@pytest.mark.parametrize("case", SHORT)
def test_what_kernels_of_amx_read_elsewhere(by_form, case, low, form):
    """Off by 10 to 170 %, with the plugin's own LPT, too; the zero point of one channel with other kernels as well."""
    size, (inputs, *kernel), strides, dilations, pads, groups = SHORT[case]
    stored = even_weights((groups, 96 // groups, inputs, *kernel))
    weights = opset1.multiply(opset1.convert(const(stored[0] if groups == 1 else stored, "i8"), "f32"), const(0.01))
    layer = opset1.convolution if groups == 1 else opset1.group_convolution
    for sizes in ([1, inputs * groups, *size], [-1, inputs * groups, *[-1] * len(size)]):
        x = parameter(sizes)
        net = model(layer(quantized(x, low, low + 2.55), weights, strides, pads, pads, dilations), x)
        values = [np.random.default_rng(0).uniform(-2, 2, (1, inputs * groups, *size)).astype(np.float32)]
        expected = by_form(net, values)
        close = 1e-3 * float(np.abs(expected).max())
        assert_close([by_form(net, values, form)], [expected], level=close, share=1)


ONE_CHANNEL = {  # outputs, kernel, data, begin and end of the padding, start of the interval
    "padded_columns": (8, [3, 3], [13, 8], [0, 0], [0, 1], -1.28),
    "wide": (64, [3, 10], [28, 20], [0, 4], [0, 5], -1.28),
    "rows_of_padding_alone": (64, [2, 4], [8, 20], [2, 1], [1, 0], -0.4),
    "more_rows_of_padding_alone": (64, [3, 4], [13, 20], [3, 2], [0, 0], -0.4),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ONE_CHANNEL)
def test_padding_of_an_image_of_one_channel(core, by_form, case, form):
    """The numbers of another padding in bf16 with AMX, or what lies in memory; with the plugin's own LPT, too."""
    outputs, kernel, size, begin, end, low = ONE_CHANNEL[case]
    stored = even_weights((outputs, 1, *kernel))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(np.full((outputs, 1, 1, 1), 0.01)))
    x = parameter([1, 1, *size])
    net = model(opset1.convolution(quantized(x, low, low + 2.55), weights, [1, 1], begin, end, [1, 1]), x)
    values = [np.random.default_rng(0).uniform(-2, 2, (1, 1, *size)).astype(np.float32)]
    expected = by_form(net, values)
    for precision in float_types(core):
        found = by_form(net, values, form, INFERENCE_PRECISION_HINT=precision)
        assert_close([found], [expected], level=0.02 * float(np.abs(expected).max()), share=1)


@pytest.mark.parametrize(("least", "leaves"), [(1, True), (2, True), (3, False)])
def test_bounds_of_an_open_width_that_leave_several_columns(core, least, leaves):
    """Kernels of AMX are right then, and faster."""
    x = opset1.parameter(PartialShape(f"[?,16,?,{least}..640]"), Type.f32)
    layer = opset1.convolution(quantized(x, 0, 2.55), int8_weights((8, 16, 3, 3)), [2, 2], [1, 1], [1, 1], [1, 1])
    lowered = ovlpt.transform(model(layer, x), core=core)
    (found,) = (node for node in lowered.get_ops() if node.get_type_name() == "Convolution")
    assert kernels_of(found) == (WITHOUT_AMX if leaves else "")


SHORT_OF_FLOATS = {
    **{case: SHORT[case] for case in ("one_column", "one_column_of_groups", "one_column_without_padding")},
    "one_frame": ([1, 9, 17], [3, 3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1], 1),
    "one_frame_of_groups": ([1, 9, 17], [1, 3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1], 8),
    "one_element_of_groups": ([1, 1, 1], [1, 3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], 8),
}


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    ("case", "is_open"), [*product(SHORT_OF_FLOATS, [False]), *product(["one_frame", "one_frame_of_groups"], [True])]
)
def test_short_data_of_floats(core, infer, case, is_open, how):
    """In bf16, with AMX: off by more than the largest value, without any LPT, too, or the process ended."""
    size, (inputs, *kernel), strides, dilations, pads, groups = SHORT_OF_FLOATS[case]
    x, values = parameter([1, inputs * groups, *([-1] * len(size) if is_open else size)]), np.random.default_rng(0)
    weights = values.uniform(-0.5, 0.5, (groups, 16 // groups, inputs, *kernel))
    layer = opset1.convolution if groups == 1 else opset1.group_convolution
    floats = layer(x, const(weights[0] if groups == 1 else weights), strides, pads, pads, dilations)
    read = quantized(opset1.reduce_mean(floats, const([2], "i64"), len(size) == 2), -1.28, 1.27)
    net = model([floats, convolution(read, 8, kernel=1)], x)
    data = [values.uniform(-2, 2, (1, inputs * groups, *size)).astype(np.float32)]
    expected = infer(net, data)[0]
    for precision in float_types(core):
        found = infer(how(net, core=core), data, INFERENCE_PRECISION_HINT=precision)[0]
        assert_close([found], [expected], level=0.02 * np.abs(expected).max(), share=1)


TRANSPOSED = {  # sizes, kernel, strides, begin and end of the padding, output padding
    "one_column": ([2, 1], [3, 3], [2, 2], [0, 0], [0, 0], [0, 0]),
    "stride_of_three": ([5, 8], [4, 4], [3, 3], [0, 0], [0, 0], [0, 0]),
    "first_column_cut": ([2, 5], [3, 3], [1, 3], [0, 1], [0, 0], [0, 0]),
    "one_axis": ([2], [5], [2], [1], [1], [0]),
    "three_axes": ([3, 2, 5], [3, 5, 3], [3, 3, 3], [0, 0, 1], [0, 0, 0], [0, 0, 2]),
    "stride_longer_than_the_window": ([5, 5], [1, 6], [2, 3], [0, 1], [0, 1], [0, 0]),
    "beyond_the_last_tap": ([5, 4], [2, 3], [3, 3], [1, 0], [1, 0], [0, 2]),
}


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("low", [0, -1.28], ids=["u8", "i8"])
@pytest.mark.parametrize("case", TRANSPOSED)
def test_a_transposed_convolution_of_part_of_a_stride(core, infer, case, low, groups, how):
    """Its last columns were wrong, or what lay in memory, and what no tap reaches was not quantized, in stock, too."""
    size, kernel, strides, begin, end, padded = TRANSPOSED[case]
    stored = even_weights((groups, 16 // groups, 8, *kernel))
    weights = opset1.multiply(opset1.convert(const(stored[0] if groups == 1 else stored, "i8"), "f32"), const(0.01))
    layer = opset1.convolution_backprop_data if groups == 1 else opset1.group_convolution_backprop_data
    bias = const(np.linspace(-0.3, 0.3, 8 * groups).reshape(1, -1, *[1] * len(size)))
    window = {"pads_begin": begin, "pads_end": end, "output_padding": padded}
    values = [np.random.default_rng(0).uniform(-2, 2, (1, 16, *size)).astype(np.float32)]
    for after in (opset1.relu, quantized_sum):
        expected = None
        for sizes in ([1, 16, *size], [1, 16, *size[:-1], -1]):
            x = parameter(sizes)
            data = quantized(x, low, 1.27 if low else 2)
            net = model(after(opset1.add(layer(data, weights, strides, dilations=[1] * len(size), **window), bias)), x)
            expected = infer(net, values, "NO") if expected is None else expected  # of the sizes that are known
            assert_close(infer(how(net, core=core), values), expected, level=0.0099, share=2e-3)


SEVERAL = {
    "slope_and_quantization": lambda value: quantized(opset1.prelu(value, const([0.1])), -0.5, 2.05),
    "quantization": lambda value: quantized(value, -1, 1.5),
    "two_functions": lambda value: opset1.tanh(opset1.sigmoid(value)),
    "shift_after_relu": lambda value: opset1.add(opset1.relu(value), const(1.5)),
    "relu": opset1.relu,
}


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("channels", [1, 8])
@pytest.mark.parametrize(
    "kernel, stride, dilation, groups",
    [(3, 2, 1, 1), (2, 2, 2, 1), (4, 4, 1, 1), (3, 2, 1, 2)],
    ids=["strided", "dilated", "long_stride", "groups"],
)
@pytest.mark.parametrize("after", SEVERAL)
def test_what_follows_a_transposed_convolution(core, infer, after, kernel, stride, dilation, groups, channels, how):
    """With AMX the first post-operation was all that was applied, and one without an int8 kernel shifted all channels as the
    first, before an interval; with the plugin's own LPT, too.
    """
    x, outputs = parameter([1, 16, 7]), channels * groups
    stored = even_weights((groups, 16 // groups, channels, kernel))
    weights = opset1.multiply(opset1.convert(const(stored[0] if groups == 1 else stored, "i8"), "f32"), const(0.01))
    layer = opset1.convolution_backprop_data if groups == 1 else opset1.group_convolution_backprop_data
    data = layer(quantized(x, 0, 2.55), weights, [stride], dilations=[dilation])
    data = SEVERAL[after](opset1.add(data, const(np.linspace(0.3, -0.3, outputs).reshape(1, -1, 1))))
    read = opset1.convolution(quantized(data, -0.5, 2.05), int8_weights([4, outputs, 1]), [1], [0], [0], [1])
    net = model([data, read], x)
    values = [np.random.default_rng(0).uniform(-2, 2, (1, 16, 7)).astype(np.float32)]
    expected = infer(net, values)
    assert_close(infer(how(net, core=core), values), expected, level=0.02, share=0.05)


def quantized_sum(value):
    return quantized(value, -1, 1.5)


def test_a_transposed_convolution_to_a_given_size(core, infer):
    """Where "same" padding or the output shape cut off part of a stride."""
    x = parameter([1, 16, 4, 2])
    stored = even_weights((16, 8, 5, 4))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(0.01))
    for mode in ("same_upper", "same_lower", "explicit"):
        for shape in ([8, 3], [9, 5]):
            data, wanted = quantized(x, -1.28, 1.27), const(shape, "i64")
            layer = opset1.convolution_backprop_data(
                data, weights, [2, 2], wanted, pads_begin=[0, 1], pads_end=[0, 0], dilations=[1, 1], auto_pad=mode
            )
            net = model(layer, x)
            inputs = inputs_of(net)
            expected = infer(net, inputs, "NO")
            assert expected[0].shape[2:] == tuple(shape)
            assert_close(infer(drop_in(net, core), inputs), expected, level=0.05)


def errors_of_groups() -> list[float]:
    """Of saved forms, forms in memory, and stock, as parts of the largest value; pairs of channels in groups."""
    core, found = Core(), []
    core.get_property("CPU", "FULL_DEVICE_NAME")
    for bias, ends in ((None, None), (1, None), (None, 2), (1, 2)):
        x = parameter([1, 4, 5, 5])
        integers = np.random.default_rng(0).integers(-31, 32, (2, 4, 2, 2, 2)).astype(np.int8)
        weights = opset1.multiply(opset1.convert(const(integers, "i8"), "f32"), const(np.float32(0.01)))
        layer = opset1.group_convolution(quantized(x, -1, 2), weights, [1, 1], [0, 0], [0, 0], [1, 1])
        if bias:
            layer = opset1.add(layer, const(np.linspace(-bias, bias, 8).reshape(1, 8, 1, 1)))
        net = model(quantized(layer, -ends, ends) if ends else layer, x)
        inputs = inputs_of(net)
        runs = [(net, TRUTH)]
        for each in (drop_in(net, core), ovlpt.transform(net, core=core, serializable=False)):
            runs.append((each, {**EXACT, "LP_TRANSFORMS_MODE": "NO"}))
        expected, *values = (
            core.compile_model(each, "CPU", properties)(inputs)[0] for each, properties in (*runs, (net, EXACT))
        )
        found.append([float(np.abs(each - expected).max() / np.abs(expected).max()) for each in values])
    return [max(each) for each in zip(*found, strict=True)]


def test_groups_of_channels_with_a_zero_point():
    """Gemm, which runs them with AVX-512 and no VNNI, computes them wrongly; with stock, too."""
    assert max(errors_of_groups()[:2]) < 0.02
    try:
        instruction_sets.limits("avx512")
    except InputError:
        pytest.skip("no CPU with AVX-512, whose kernels without VNNI go wrong; those of this one were right")
    saved, in_memory, stock = subprocess_call.call(
        errors_of_groups, environment=instruction_sets.environment("avx512")
    )[0]
    assert max(saved, in_memory) < 0.02 < 0.1 < stock


@pytest.mark.parametrize("weights_quantized", [True, False], ids=["int8", "float"])
@pytest.mark.parametrize("low", [0.0, -1.0], ids=["symmetric", "zero_point"])
@pytest.mark.parametrize("pads", [(0, 0), (0, 1), (2, 2)])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("serializable", [False, True])
def test_the_stride_of_a_layer_of_single_elements(core, infer, axes, pads, low, weights_quantized, serializable):
    """Moved up through a zero point, it would take the layer's int8, and with padding give another shape."""
    x = parameter([2, 8, *[7] * axes])
    data = quantized(x, low, low + 2.55)
    weights = int8_weights([8, 8, *[1] * axes])
    if not weights_quantized:
        weights = const(np.random.default_rng(0).uniform(-0.3, 0.3, (8, 8, *[1] * axes)))
    begin, end = ([pad] * axes for pad in pads)
    strided = opset1.convolution(data, weights, [2] * axes, begin, end, [1] * axes)
    plain = opset1.convolution(data, int8_weights([4, 8, *[1] * axes]), [1] * axes, [0] * axes, [0] * axes, [1] * axes)
    net = model([opset1.relu(strided), plain], x)
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    compiled = core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    assert [layer.is_int8 for layer in weighted(ovlpt.execution_types(compiled))].count(True) == 1 + weights_quantized
    inputs = inputs_of(net)
    expected = infer(net, inputs)
    results = [np.array(value) for value in compiled(inputs).values()]
    assert [each.shape for each in results] == [each.shape for each in expected]
    assert_close(results, expected)


@pytest.mark.parametrize("open_sizes", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("kind", ["Convolution", "GroupConvolution", "AvgPool", "AvgPool ceil", "AvgPool 14", "valid"])
def test_a_pad_before_a_layer(core, infer, kind, open_sizes):
    """In a pipeline without common optimizations it is still there, and the plugin made a layer of floats of both: it threw."""

    def layer(data):
        if kind == "AvgPool 14":
            return opset14.avg_pool(data, [2, 2], [1, 0], [1, 0], [3, 3], True, "ceil")
        if kind.startswith("AvgPool"):
            return opset1.avg_pool(data, [2, 2], [0, 0], [0, 0], [3, 3], True, "ceil" if "ceil" in kind else "floor")
        if kind == "GroupConvolution":
            weights = opset1.multiply(opset1.convert(const(even_weights((8, 1, 1, 3, 3)), "i8"), "f32"), const(0.01))
            return opset1.group_convolution(data, weights, [1, 1], [0, 1], [0, 0], [1, 1])
        mode = "valid" if kind == "valid" else "explicit"
        return opset1.convolution(data, int8_weights([8, 8, 3, 3]), [1, 1], [1, 0], [0, 0], [1, 1], mode)

    x, padded = parameter([-1, 8, -1, -1] if open_sizes else [1, 8, 6, 6]), parameter([1, 8, 8, 8])
    begin, end = [0, 0, 1, 0], [0, 0, 1, 2]
    pad = opset1.pad(quantized(x, 0, 2.55), const(begin, "i64"), const(end, "i64"), "constant", const(0.0))
    values = np.random.default_rng(0).uniform(-1, 3, (1, 8, 6, 6)).astype(np.float32)
    expected = infer(
        model(layer(quantized(padded, 0, 2.55)), padded), [np.pad(values, np.stack([begin, end], 1))], "NO"
    )
    assert_close(infer(drop_in(model(layer(pad), x), core), [values]), expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1], ids=["u8", "zero_point"])
@pytest.mark.parametrize("shape", [(32, 8, 32, 32), (32, 24, 32), (-1, 40, -1, -1), (8, 22, 4, 4)], ids=str)
def test_strides_of_8_channels_over_16(core, tmp_path, shape, low, form):
    """With AVX2, threads wrote into each other's data, in about a third of the inferences, of small data in one of 250."""
    x, channels, space = parameter(shape), shape[1], len(shape) - 2
    stored = np.random.default_rng(0).integers(-63, 64, (8, channels, *[1] * space))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(0.01))
    zeros, ones = [0] * space, [1] * space
    net = model(opset1.convolution(quantized(x, low, low + 2.55), weights, [2] * space, zeros, zeros, ones), x)
    sizes = [32 if size < 0 else size for size in shape]
    values = np.random.default_rng(0).uniform(low, low + 2.5, sizes).astype(np.float32)
    (expected,) = core.compile_model(net, "CPU", TRUTH)(values).values()
    compiled = compiled_in(form, net, core, tmp_path, INFERENCE_NUM_THREADS=2)
    for _ in range(1500 if shape[1] == 22 else 20):
        (found,) = compiled(values).values()
        assert_close([found], [expected], level=0.02 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("serializable", [False, True], ids=["compiled here", "saved"])
@pytest.mark.parametrize("gathers", [False, True])
def test_only_a_cpu_that_may_be_wrong_has_a_pool_for_strides(core, monkeypatch, gathers, serializable):
    """A saved model may come to any; of one that is compiled here a RegNet had three layers more for nothing."""
    table = [replace(rule, here=lambda: gathers) if rule.name == "pool_strides" else rule for rule in rules.RULES]
    monkeypatch.setattr(lowering, "RULES", table)
    x = parameter([1, 8, 6, 6])
    layer = opset1.convolution(quantized(x, 0, 2.55), int8_weights([8, 8, 1, 1]), [2, 2], [0, 0], [0, 0], [1, 1])
    made = ovlpt.transform(model(layer, x), core=core, serializable=serializable)
    assert ("MaxPool" in {node.get_type_name() for node in made.get_ops()}) is (gathers or serializable)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_stands_between_a_layer_and_the_slice_of_its_columns(core, tmp_path, form):
    """What keeps a scale from the layer was a layer of its own where that runs in float, as one of small groups."""
    x = parameter([1, 3, 5, 7])
    weights = int8_weights([3, 1, 4, 3, 3], axis=2)
    layer = opset1.group_convolution_backprop_data(quantized(x, -1.28, 1.27), weights, [2, 2])
    net = model([quantized(layer, -0.5, 0.5), quantized(layer, -1, 1)], x)
    compiled, inputs = compiled_in(form, net, core, tmp_path), inputs_of(net)
    assert "Eltwise" not in {each.layer_type for each in ovlpt.execution_types(compiled).executed}
    assert_close(compiled(inputs).values(), core.compile_model(net, "CPU", TRUTH)(inputs).values(), level=0.01, share=1)


ONE_COLUMN = {  # data, window, strides, padding before and after
    "no padding": ((5, 3), (3, 3), (1, 2), (0, 0), (0, 0)),
    "padding": ((5, 2), (3, 3), (1, 2), (1, 1), (1, 1)),
    "padding after": ((7, 3), (3, 4), (1, 3), (1, 0), (0, 2)),
    "steps over padding": ((5, 2), (1, 3), (1, 3), (0, 1), (0, 2)),
    "steps over data": ((9, 4), (3, 3), (1, 3), (0, 0), (0, 1)),
    "three axes": ((3, 5, 3), (3, 3, 3), (1, 1, 2), (1, 1, 0), (1, 1, 0)),
    "strides of rows": ((9, 3, 5), (3, 3, 5), (2, 2, 3), (1, 1, 1), (1, 1, 1)),
    "window of seven": ((9, 2), (7, 7), (2, 2), (3, 3), (3, 3)),
}


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("grouped", [False, True], ids=["", "in one group"])
@pytest.mark.parametrize("opened", ["", "open width", "open sizes"])
@pytest.mark.parametrize("name", ONE_COLUMN)
def test_one_column_of_floats_of_one_channel(core, infer, name, opened, grouped, how, precision):
    """With AVX-512 other rows were read: wrong numbers, of float networks, too."""
    sizes, window, strides, begin, end = ONE_COLUMN[name]
    rng, axes = np.random.default_rng(0), len(sizes)
    taps = rng.integers(-3, 4, (24, 1, *window)).astype(np.float32)
    count = {"": 0, "open width": 1, "open sizes": axes}[opened]
    x = parameter([2, 1, *sizes[: axes - count], *[-1] * count])
    make = opset1.group_convolution if grouped else opset1.convolution
    layer = make(x, const(taps[None] if grouped else taps), strides, begin, end, [1] * axes)
    kernel = const(0.01 * rng.integers(-63, 64, (8, 24, *[1] * axes)))
    after = opset1.convolution(quantized(layer, 0, 2.55), quantized(kernel, -1.28, 1.27), *_plain(axes))
    net = model([layer, after], x)
    data = rng.integers(-3, 4, (2, 1, *sizes)).astype(np.float32)
    padded = np.pad(data, [(0, 0), (0, 0), *zip(begin, end, strict=True)])
    read = np.lib.stride_tricks.sliding_window_view(padded[:, 0], window, range(1, axes + 1))
    read = read[:, *(slice(None, None, step) for step in strides)]
    expected = np.moveaxis(np.tensordot(read, taps[:, 0], (list(range(-axes, 0)), list(range(-axes, 0)))), -1, 1)
    assert expected.shape[-1] == 1
    found = infer(how(net, core=core), [data], INFERENCE_PRECISION_HINT=precision)[0]
    np.testing.assert_allclose(found, expected, rtol=0 if precision == "f32" else 2**-7, atol=1e-4)


def _plain(axes: int) -> tuple[list[int], ...]:
    return ([1] * axes, [0] * axes, [0] * axes, [1] * axes)


CHANGING = {  # weights, groups first, and stride
    "1x1": ((16, 16, 1, 1), 1),
    "1x1 of more outputs": ((32, 16, 1, 1), 1),
    "1x1 of a row of a tile": ((48, 64, 1, 1), 1),
    "1x1 over one axis": ((128, 8, 1), 1),
    "three taps": ((32, 16, 3), 1),
    "three taps by two": ((16, 64, 3), 2),
    "3x3": ((8, 8, 3, 3), 1),
    "groups": ((4, 32, 32, 1, 1), 1),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CHANGING)
def test_sizes_of_a_convolution_of_signed_data_change(core, tmp_path, case, form):
    """With AMX a kernel without it read weights that were laid out for one of AMX; with the plugin's own LPT, too."""
    sizes, stride = CHANGING[case]
    groups, axes = (sizes[0], len(sizes) - 3) if case == "groups" else (1, len(sizes) - 2)
    inputs, window, (_, *plain) = groups * sizes[-axes - 1], sizes[-1], _plain(axes)
    x = opset1.parameter(PartialShape([-1, inputs, *[-1] * axes]), Type.f32)
    stored = const(even_weights(sizes), "i8")
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(np.full([1] * len(sizes), 0.01)))
    convolution = opset1.group_convolution if groups > 1 else opset1.convolution
    layer = convolution(quantized(x, -1.28, 1.27), weights, [stride] * axes, *plain)
    net = model(layer, x)
    request = compiled_in(form, net, core, tmp_path).create_infer_request()
    random = np.random.default_rng(0)
    for batch, places in ((1, 64 if axes == 1 else 16), (1, 1), (2, 2), (1, 2), (1, 16), (1, 1)):
        size = (batch, inputs, *[(places - 1) * stride + window] * axes)
        values = random.uniform(-1, 1, size).astype(np.float32)
        fixed = net.clone()
        fixed.reshape(list(size))
        expected = core.compile_model(fixed, "CPU", TRUTH)([values])[0]
        assert_close([request.infer([values])[0]], [expected], level=1e-3, share=1)
