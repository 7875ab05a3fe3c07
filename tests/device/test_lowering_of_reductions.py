"""Reductions, pools and normalizations: one test for each trap that the lowering avoids."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import instruction_sets, subprocess_call
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Core, NodeFactory, PartialShape, Type, opset1, opset6
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.lowered import FORMS, compiled_in, drop_in
from tests.networks import (
    const,
    convolution,
    int8_weights,
    model,
    parameter,
    quantized,
)

_POINT = ([1, 1], [0, 0], [0, 0], [1, 1])  # of a convolution of one place


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [6, -1])
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_a_mean_of_integers_before_a_layer_that_stays_in_float(core, by_form, form, size, precision):
    """Squeeze and excitation. Its scale fused into the layer's weights, the mean would be written in f32 where floats are
    bf16, and a Reorder follow.
    """
    x, rng = parameter([1, 16, size, size]), np.random.default_rng(0)
    data = quantized(opset1.relu(convolution(quantized(x, 0, 2.55), 16)), 0, 2.55)
    mean = opset1.reduce_mean(data, const([2, 3], "i64"), True)
    gate = opset1.convolution(mean, const(rng.standard_normal((16, 16, 1, 1))), [1, 1], [0, 0], [0, 0], [1, 1])
    product = quantized(opset1.multiply(data, opset1.sigmoid(gate)), 0, 2.55)
    net = model([convolution(product, 8, seed=1)], x)
    inputs = [rng.uniform(0, 2.55, (1, 16, 6, 6)).astype(np.float32)]
    properties = {**EXACT, "INFERENCE_PRECISION_HINT": precision}
    expected = by_form(net, inputs)
    off = np.abs(by_form(net, inputs, form, **properties) - expected).max() / np.abs(expected).max()
    assert off < (0.01 if precision == "f32" else 0.05)
    each_side = core.compile_model(net, "CPU", properties), ovlpt.compile_model(net, "CPU", properties, core=core)
    stock, compiled = (len(ovlpt.execution_types(side, inputs).executed) for side in each_side)
    assert compiled <= stock


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["centred", "normalized", "mean", "sum of both"])
def test_averages_are_not_rounded_before_what_has_no_weights(core, by_form, form, name):
    """Of 16 levels, so that half of one is seen: the plugin's own LPT gives integers to whatever has a rule."""
    x, rng = parameter([2, 8, 9, 9]), np.random.default_rng(0)
    pool = opset1.avg_pool(quantized(x, -1, 2, 16), [1, 1], [0, 0], [0, 0], [3, 3], False)
    axes = const([2, 3], "i64")
    after = {
        "centred": lambda: opset6.mvn(pool, axes, False, 1e-3, "inside_sqrt"),
        "normalized": lambda: opset1.normalize_l2(opset1.relu(pool), const([1], "i64"), 1e-3, "add"),
        "mean": lambda: opset1.subtract(opset1.reduce_mean(pool, const([2], "i64"), True), opset1.clamp(pool, 0, 1)),
        "sum of both": lambda: opset1.add(
            pool, opset1.max_pool(quantized(x, -1, 2, 16), [1, 1], [0, 0], [0, 0], [3, 3])
        ),
    }
    net = model([after[name]()], x)
    inputs = [rng.normal(0.5, 0.3, (2, 8, 9, 9)).astype(np.float32)]
    assert_close(by_form(net, inputs, form), by_form(net, inputs))
    each_side = core.compile_model(net, "CPU", EXACT), ovlpt.compile_model(net, "CPU", EXACT, core=core)
    stock, compiled = (len(ovlpt.execution_types(side).executed) for side in each_side)
    assert compiled <= stock


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0, -1.1], ids=["scale", "zero point"])
@pytest.mark.parametrize(
    "kind, first, second, keep_dims",
    [("mean", 3, 2, False), ("mean", 2, -1, True), ("mean", 2, 0, False), ("sum", 3, 2, True), ("sum", -1, 1, False)],
)
def test_reductions_one_after_the_other_read_integers(core, by_form, form, low, kind, first, second, keep_dims):
    """Of columns, then of rows, as exporters write the mean over the pixels: a layer converted them to f32."""
    x = parameter([-1, 8, 7, 5])
    reduce = getattr(opset1, f"reduce_{kind}")
    data = quantized(convolution(quantized(x, 0, 2.55), 8), low, low + 2.55)
    once = reduce(data, const([first], "i64"), keep_dims)
    net = model(opset1.tanh(reduce(once, const([second], "i64"), keep_dims)), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (2, 8, 7, 5)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.02, share=0.05)
    each_side = core.compile_model(net, "CPU", EXACT), ovlpt.compile_model(net, "CPU", EXACT, core=core)
    stock, compiled = (len(ovlpt.execution_types(side, inputs).executed) for side in each_side)
    assert compiled <= stock


def test_two_reductions_of_one(core, infer):
    """Which cannot be one with both."""
    x = parameter([1, 8, 7, 5])
    once = opset1.reduce_mean(quantized(convolution(quantized(x, 0, 2.55), 8), 0, 2.55), const([3], "i64"), False)
    net = model([opset1.reduce_mean(once, const([axis], "i64"), False) for axis in (1, 2)], x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


def test_a_normalization_of_rank_5(core, infer):
    """Decomposed by the plugin in the type of its data."""
    x = parameter([1, 4, 3, 4, 4])
    net = model(opset1.normalize_l2(quantized(x, 0, 2.55), const([1], "i64"), 1e-6, "add"), x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("axes", [[-1], [1, 2, 3]], ids=["columns", "all"])
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_a_normalization_of_open_sizes_reads_integers(core, by_form, form, axes, precision):
    """Scaled by column, as joined neighbours are: they were converted to f32 in a layer of their own first."""
    x, y = (parameter([-1, 4, 4, 8], name=name) for name in "xy")
    joined = opset1.concat([quantized(x, -1.28, 1.27), quantized(y, -2.56, 2.54)], 3)
    normal = opset6.mvn(joined, const(axes, "i64"), True, 1e-5, "inside_sqrt")
    net = model(normal, [x, y])
    inputs = [np.random.default_rng(seed).standard_normal((2, 4, 4, 8), np.float32) for seed in range(2)]
    closed = net.clone()
    closed.reshape({port: [2, 4, 4, 8] for port in range(2)})
    properties = {**EXACT, "INFERENCE_PRECISION_HINT": precision}
    expected = by_form(closed, inputs)
    off = np.abs(by_form(net, inputs, form, **properties) - expected).max()
    assert off < (1e-5 if precision == "f32" else 0.05)
    each_side = core.compile_model(net, "CPU", properties), ovlpt.compile_model(net, "CPU", properties, core=core)
    stock, compiled = (len(ovlpt.execution_types(side, inputs).executed) for side in each_side)
    assert compiled <= stock


def test_a_mean_of_means(core, infer):
    """Merged by the plugin into one of integers."""
    x = parameter([2, 6, 4, 4])
    rows = opset1.reduce_mean(quantized(x, -2.56, 2.54), const([3], "i64"), True)
    net = model(opset1.reduce_mean(rows, const([2], "i64"), True), x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("axes", [[1], [3]])
def test_what_a_reduction_takes_as_post_operations(core, infer, axes):
    """Of the last axis, or of one that is dropped, it takes per-channel constants wrongly, and integers a minimum."""
    check_reduction("reduce_min", axes, (-3, 0.5), core, infer)


def test_the_greatest_as_integers(core, infer):
    """The kernel would compare with what it stores as integers."""
    check_reduction("reduce_max", [2], (-0.5, 3), core, infer, keep=True)


@pytest.mark.parametrize("form", FORMS)
def test_the_greatest_twice_before_a_quantization(by_form, form):
    """The quantization moves before the Concat, and the plugin merges the two that there are then."""
    x = parameter([1, 6, 6])
    greatest = opset1.reduce_max(x, const([2], "i64"), False)
    net = model(quantized(opset1.concat([greatest, greatest], 1), 0, 2.178), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.2, (1, 6, 6)).astype(np.float32)]
    expected = by_form(net, inputs)
    assert_close([by_form(net, inputs, form)], [expected])


def test_a_scale_by_channel_further_after_a_reduction(core, infer):
    """The kernel takes what stands between, too."""
    scales = const(np.float32([0.5, 1, 2, 1.5]).reshape(1, 4, 1))

    def after(reduced):
        return opset1.multiply(opset1.relu(reduced), scales)

    check_reduction("reduce_max", [1], (-0.5, 3), core, infer, after=after)


@pytest.mark.parametrize("clips", [False, True])
def test_the_greatest_as_integers_by_channel(core, infer, clips):
    """The scale goes into the interval, which is by channel then, or a clip keeps it before that."""
    scales = const(np.float32([0.5, 1, 2, 1.5]).reshape(1, 4, 1, 1))

    def after(reduced):
        scaled = opset1.multiply(reduced, scales)
        return opset1.clamp(scaled, -0.4, 2.5) if clips else scaled

    check_reduction("reduce_max", [2], (-0.5, 3), core, infer, keep=True, after=after)


def check_reduction(kind, axes, interval, core, infer, keep=False, after=lambda reduced: reduced):
    x = parameter([2, 4, 4, 6])
    reduced = getattr(opset1, kind)(x, const(axes, "i64"), keep)
    space = 1 + keep
    ones = [1] * space
    pads = (ones, [0] * space, [0] * space, ones)
    layer = opset1.convolution(quantized(after(reduced), *interval), int8_weights((5, 4, *ones)), *pads)
    net = model(layer, x)
    inputs = inputs_of(net)
    simulated = model([layer, reduced], x)  # what is an output takes none
    expected = infer(simulated, inputs, "NO")[:1]
    assert_close(infer(drop_in(net, core), inputs), expected, level=0.03 * float(np.abs(expected[0]).max()))


def errors_of_a_mean() -> list[float]:
    """Of ovlpt and of stock, as parts of the largest value."""
    x = parameter([1, 3, 3, 3])
    low, high = (const(np.float32(ends).reshape(1, 3, 1, 1)) for ends in ((-2, -1, -3), (1, 3, 2)))
    mean = opset1.avg_pool(opset1.fake_quantize(x, low, high, low, high, 256), [1, 1], [0, 0], [0, 0], [2, 2], True)
    net = model(opset1.matmul(quantized(mean, 0, 1.3), int8_weights([5, 2]), False, True), x)
    core, inputs = Core(), inputs_of(net)
    core.get_property("CPU", "FULL_DEVICE_NAME")
    runs = ((net, TRUTH), (drop_in(net, core), {**EXACT, "LP_TRANSFORMS_MODE": "NO"}), (net, EXACT))
    expected, *found = (core.compile_model(each, "CPU", properties)(inputs)[0] for each, properties in runs)
    return [float(np.abs(each - expected).max() / np.abs(expected).max()) for each in found]


def test_a_mean_of_few_integers_that_is_quantized():
    """Intervals by channel come to follow the pool. Its reference kernel takes them wrongly, with stock, too."""
    assert errors_of_a_mean()[0] < 0.02
    ours, stock = subprocess_call.call(errors_of_a_mean, environment=instruction_sets.environment("avx2"))[0]
    assert ours < 0.02 < 0.1 < stock


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low", [0.0, -1.28], ids=["u8", "i8"])
@pytest.mark.parametrize("open_", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("shape", [(1, 8, 2), (1, 3, 2, 2), (1, 2, 2, 2, 2)])
def test_a_pool_of_few_integers_with_one_interval(by_form, form, shape, open_, low):
    """Its reference kernel was off by 9 to 86 %, and threw with i8, as in stock."""
    space = len(shape) - 2
    x = parameter([-1, shape[1], *[-1] * space] if open_ else list(shape))
    pool = opset1.avg_pool(quantized(x, low, low + 2.55), [1] * space, [0] * space, [0] * space, [2] * space, False)
    kernel = int8_weights([4, *shape[1:2], *[1] * space])
    ones = [1] * space
    net = model(opset1.convolution(quantized(pool, low and -0.8, 0.8), kernel, ones, [0] * space, [0] * space, ones), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)]
    expected = by_form(net, inputs)
    assert np.abs(by_form(net, inputs, form) - expected).max() < 0.01 * np.abs(expected).max()


def test_a_reduction_before_scalars_stays_as_it_is(core):
    """The plugin then finds the normalization that the reductions are part of."""
    x = parameter([1, 16, 8, 8])
    rows = opset1.transpose(convolution(quantized(x, 0, 2.55), 16, name="conv"), const([0, 2, 3, 1], "i64"))
    deviation = opset1.subtract(rows, opset1.reduce_mean(rows, const([3], "i64"), True))
    variance = opset1.reduce_mean(opset1.multiply(deviation, deviation), const([3], "i64"), True)
    normal = opset1.divide(deviation, opset1.sqrt(opset1.add(variance, const(np.float32(1e-6)))))
    net = model(opset1.matmul(quantized(normal, -3, 3), int8_weights([16, 8], axis=1), False, False), x)
    assert not [node for node in drop_in(net, core).get_ops() if node.get_friendly_name().endswith("/Alone")]


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("kind", ["reduce_max", "reduce_min"])
def test_the_greatest_of_an_open_rank_as_integers(core, infer, kind, native_only):
    """Stored integers that are clipped stay an operation of their own: the kernel gave zeros once sizes were known."""
    x = opset1.parameter(PartialShape.dynamic(), Type.f32)
    extreme = getattr(opset1, kind)(x, const([1], "i64"), True)
    ends = [const(end) for end in (-2.0, 0.55, 0, 255)]
    stored = opset1.convert(opset1.fake_quantize(extreme, *ends, 256), "u8")
    clipped = opset1.minimum(opset1.maximum(stored, const(3, "u8")), const(250, "u8"))
    levels = opset1.subtract(opset1.convert(clipped, "f32"), opset1.convert(const(200, "u8"), "f32"))
    product = opset1.matmul(opset1.multiply(levels, const(0.01)), int8_weights([8, 7]), False, True)
    net, inputs = model([product], x), [np.random.default_rng(1).uniform(-2, 0.5, (1, 4, 5, 7)).astype(np.float32)]
    lowered, fixed = ovlpt.transform(net, core=core, native_only=native_only), net.clone()
    lowered.reshape([-1] * 4)
    fixed.reshape(list(inputs[0].shape))
    assert_close(infer(lowered, inputs), infer(fixed, inputs, "NO"))


@pytest.mark.parametrize("keep", [False, True])
def test_a_reduction_before_a_reshape_stays_as_it_is(core, infer, keep):
    """A target shape is not a per-channel constant that the kernel would take."""
    x = parameter([2, 4, 6])
    greatest = opset1.reduce_max(quantized(x, -1.28, 1.27), const([2], "i64"), keep)
    layer = opset1.matmul(opset1.reshape(greatest, const([1, 8], "i64"), False), int8_weights([5, 8]), False, True)
    net = model(layer, x)
    lowered = drop_in(net, core)
    assert not [node for node in lowered.get_ops() if node.get_friendly_name().endswith("/Alone")]
    inputs = inputs_of(net)
    assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("kind", ["reduce_max", "reduce_min"])
def test_a_maximum_that_is_transposed_before_it_is_quantized_to_i8(core, infer, kind):
    """The FakeQuantize is moved before the Transpose, and the reduction fused it, whose integers it gets wrong."""
    x = parameter([-1, 4, 5, 7])
    least = opset1.abs(getattr(opset1, kind)(x, const([1], "i64"), True))
    turned = opset1.transpose(least, const([0, 3, 1, 2], "i64"))
    stored = opset1.convert(opset1.fake_quantize(turned, *(const(end) for end in (0, 1.6, -128, 127)), 256), "i8")
    levels = opset1.subtract(opset1.convert(stored, "f32"), opset1.convert(const(-128, "i8"), "f32"))
    data = opset1.multiply(levels, const(1.6 / 255))
    net = model([opset1.multiply(data, const(np.linspace(0.3, 1.8, 7).reshape(1, 7, 1, 1))), data], x)
    inputs = [np.random.default_rng(0).uniform(-2, 2, (2, 4, 5, 7)).astype(np.float32)]
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["avg_pool", "max_pool"])
@pytest.mark.parametrize("widen", ["Broadcast", "Concat", "Tile"])
def test_a_pool_of_one_channel_that_becomes_several(by_form, form, kind, widen):
    """The plugin reads its channels in another order, where it is quantized, too; with its own LPT, too."""
    x = parameter([1, 1, 3, 4])
    window = ([1, 1], [0, 0], [0, 1], [1, 2])
    pool = opset1.avg_pool(x, *window, True) if kind == "avg_pool" else opset1.max_pool(x, *window)
    wide = {
        "Broadcast": lambda: opset1.broadcast(pool, const([1, 3, 3, 4], "i64")),
        "Concat": lambda: opset1.concat([pool] * 3, 1),
        "Tile": lambda: opset1.tile(pool, const([1, 3, 1, 1], "i64")),
    }[widen]()
    net = model([wide, opset1.matmul(quantized(pool, 0, 2.55), int8_weights([1, 1, 4, 8], axis=3), False, False)], x)
    inputs = inputs_of(net)
    pooled = by_form(model([pool], x), inputs)
    np.testing.assert_allclose(by_form(net, inputs, form), np.tile(pooled, (1, 3, 1, 1)), atol=1e-6)


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("precision", ["u8", "i8"])
@pytest.mark.parametrize("shape", [[2, 4, 6], [-1, -1, 6]], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("reader", [opset1.multiply, opset1.subtract])
def test_a_mask_of_scale_one(core, infer, reader, shape, precision, native_only):
    """Masked pooling: what is kept is summed, and how many. The mask has the scale 1, which the plugin drops."""
    states, mask = parameter(shape, name="states"), parameter([*shape[:2], 1], name="mask")
    low, high = (0, 255) if precision == "u8" else (-128, 127)
    ends = [const(low), const(high)] * 2
    stored = opset1.convert(opset1.fake_quantize(mask, *ends, 256), precision)
    zero_point = opset1.convert(const(0, precision), "f32")
    kept = opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), zero_point), const(1.0))
    net = model([reader(states, kept), opset1.reduce_sum(kept, const([1], "i64"))], [states, mask])
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, (2, 4, 6)).astype(np.float32), rng.integers(0, 2, (2, 4, 1)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core, native_only=native_only)
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "NO"))


def test_the_greatest_of_a_transpose_before_a_matmul(core, infer):
    """Without common optimizations the Transpose would be moved after the reduction, and into a MatMul of floats: it threw."""
    x = parameter([2, 4, -1, 4])
    turned = opset1.transpose(quantized(x, 0, 2.55), const([0, 1, 3, 2], "i64"))
    greatest = opset1.reduce_max(turned, const([2], "i64"), True)
    net = model(opset1.matmul(greatest, int8_weights([5, 3]), False, True), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (2, 4, 3, 4)).astype(np.float32)]
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("after", [0.0, 0.3], ids=["scale", "scale and shift"])
@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("scales", [(-1, 0.5, 1, 2), (0.5, 1, 2, -1), (-0.5, -1, -1.5, -2), (0.5, 1, 1.5, 2)])
def test_a_scale_by_channel_between_a_pool_and_a_quantization(core, by_form, scales, rank, after):
    """Where one is negative, all channels were multiplied with the first one: stock and simulation likewise."""
    space = rank - 2
    x, ones = parameter([2, 4, *[4] * space]), [1] * space
    pool = opset1.avg_pool(x, ones, [0] * space, [0] * space, [2] * space, False, "floor")
    scaled = opset1.multiply(pool, const(np.reshape(scales, (1, 4, *ones))))
    net = model([quantized(opset1.add(scaled, const(after)), -1.28, 1.27)], x)
    inputs = [np.random.default_rng(0).uniform(-3, 3, (2, 4, *[4] * space)).astype(np.float32)]
    windows = np.lib.stride_tricks.sliding_window_view(inputs[0], [2] * space, tuple(range(2, rank)))
    expected = windows.mean(tuple(range(rank, rank + space))) * np.reshape(scales, (1, 4, *ones)) + after
    expected = np.rint(np.clip(expected, -1.28, 1.27) / 0.01) * 0.01
    found = {form: by_form(net, inputs, form) for form in FORMS}
    found["simulation"] = simulate(net, core)(inputs)[0]
    assert {form for form, values in found.items() if np.abs(values - expected).max() > 0.011} == set()


def test_an_adaptive_pool_to_one_element_in_a_pipeline_of_its_own(core, infer):
    """The plugin makes a reduction of it, which took the quantization to integers wrongly."""
    x = parameter([2, 6, 4, 4])
    pool = NodeFactory("opset8").create("AdaptiveMaxPool", [x, const([1, 1], "i64")], {"index_element_type": "i64"})
    data = opset1.fake_quantize(pool.output(0), *map(const, (0.0, 2.55, 0.0, 2.55)), 16)
    layers = [opset1.convolution(data, int8_weights([8, 6, 1, 1], seed), *_POINT) for seed in (0, 1)]
    net = model([data, *layers], x)
    inputs = [np.random.default_rng(0).uniform(-1, 2.5, (2, 6, 4, 4)).astype(np.float32)]
    stored = np.rint(np.clip(inputs[0].max((2, 3), keepdims=True), 0, 2.55) / 0.17) * 0.17
    np.testing.assert_allclose(infer(drop_in(net, core), inputs)[0], stored, atol=1e-5)


def test_the_greatest_that_is_read_by_a_select_of_the_other(core, infer):
    """The plugin drops the Select; then the reduction has one reader, a quantization to integers, and takes it wrongly."""
    x = parameter([2, 12])
    greatest = opset1.reduce_max(x, const([1], "i64"), True)
    chosen = opset1.select(opset1.constant([[True]]), quantized(x, 0, 2.55), greatest)
    scaled = opset1.multiply(chosen, const(np.linspace(0.5, 1.5, 12).reshape(1, 12)))
    stored = opset1.fake_quantize(greatest, *map(const, (0.0, 2.55, 0.0, 2.55)), 16)
    net = model(opset1.add(stored, scaled), x)
    inputs = [np.random.default_rng(0).uniform(-1, 2.5, (2, 12)).astype(np.float32)]
    largest = np.rint(np.clip(inputs[0].max(1, keepdims=True), 0, 2.55) / 0.17) * 0.17
    rest = np.rint(np.clip(inputs[0], 0, 2.55) / 0.01) * 0.01 * np.linspace(0.5, 1.5, 12)
    np.testing.assert_allclose(infer(drop_in(net, core), inputs)[0], largest + rest, atol=0.016)


@pytest.mark.parametrize("form", FORMS)
def test_shifts_and_equal_scales_after_a_reduction_of_three_axes(by_form, form):
    """The plugin makes one scale of both, and a part of the reduction, where it reads it wrongly: off by a third."""
    x, scale = parameter([2, 8, 5]), np.linspace(0.5, 1.5, 8)[None]
    normal = opset1.multiply(opset6.mvn(x, const([2], "i64"), True, 1e-5, "INSIDE_SQRT"), const(scale[..., None]))
    largest = opset1.reduce_max(opset1.add(normal, const(scale[..., None] - 1)), const([2], "i64"), False)
    layer = opset1.matmul(quantized(opset1.tanh(largest), -1.28, 1.27), int8_weights([8, 4]), False, False)
    product = opset1.matmul(largest, const(np.eye(8)[:, :4]), False, False)
    net = model([opset1.add(largest, const(scale)), product, layer], x)
    data = [np.random.default_rng(0).standard_normal((2, 8, 5)).astype(np.float32)]
    assert_close([by_form(net, data, form)], [by_form(net, data)])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("repeats", [[1, 2, 2, 1], [2, 2, 1, 2], [1, 3, 2, 2]], ids=str)
@pytest.mark.parametrize("quantizes", [False, True], ids=["floats", "integers"])
def test_a_tile_of_one_channel_along_rows_or_columns_too(by_form, form, repeats, quantizes):
    """The plugin makes a Tile of each axis, and with open sizes the second read another layout, in floats, too."""
    x = parameter([1, 1, -1, 6])
    tiled = opset1.tile(quantized(x, -2.56, 2.54) if quantizes else x, const(repeats, "i64"))
    layer = opset1.matmul(quantized(tiled, -2.56, 2.54), int8_weights([5, 6 * repeats[3]]), False, True)
    net, inputs = model([layer], x), [np.random.default_rng(0).uniform(-2, 2, (1, 1, 8, 6)).astype(np.float32)]
    fixed = net.clone()
    fixed.reshape([1, 1, 8, 6])
    np.testing.assert_allclose(by_form(net, inputs, form), by_form(fixed, inputs), atol=1e-4)


def test_a_tile_in_a_float_network(core):
    x = parameter([1, 1, -1, 6])
    net, data = (
        model([opset1.tile(x, const([1, 2, 2, 1], "i64"))], x),
        np.arange(48, dtype=np.float32).reshape(1, 1, 8, 6),
    )
    (found,) = simulate(net, core)([data]).values()
    np.testing.assert_array_equal(found, np.tile(data, (1, 2, 2, 1)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("kind, sizes", [("min", (8, 8)), ("max", (8, 8)), ("max", (1, 4)), ("min", (3, 5))])
def test_the_least_along_the_axis_of_two_joined_tensors(core, tmp_path, kind, sizes, keep_dims, form):
    """Before 2026.1 the plugin took the lesser of the two: of another shape, or it threw."""
    parts = [parameter([1, size, 3], name=name) for name, size in zip("xy", sizes, strict=True)]
    joined = quantized(opset1.concat([quantized(part, -1.28, 1.27) for part in parts], 1), -1.28, 1.27)
    found = getattr(opset1, f"reduce_{kind}")(joined, const([1], "i64"), keep_dims)
    net = model([found, opset1.relu(joined)], parts)
    data = [np.random.default_rng(size).integers(-128, 128, (1, size, 3)) * np.float32(0.01) for size in sizes]
    expected = getattr(np, kind)(np.concatenate(data, 1), 1, keepdims=keep_dims)
    answer = compiled_in(form, net, core, tmp_path)(dict(zip("xy", data, strict=True)))[0]
    assert answer.shape == expected.shape
    np.testing.assert_allclose(answer, expected, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, -1])
@pytest.mark.parametrize("columns, rank", [(3, 4), (8, 2), (15, 3), (16, 4)])
@pytest.mark.parametrize("spelled", ["root", "power"])
def test_a_root_mean_square_of_short_rows(core, by_form, spelled, columns, rank, batch, form):
    """Before 2026.3 its kernel did not stop where a row fills no vector: the process ended, of floats, too."""
    x = parameter([batch, *[5] * (rank - 2), columns])
    data = quantized(x, -1.28, 1.27)
    square = opset1.reduce_mean(opset1.power(data, const(2.0)), const([-1], "i64"), True)
    shifted = opset1.add(square, const(1e-3))
    if spelled == "root":
        normal = opset1.divide(data, opset1.sqrt(shifted))
    else:
        normal = opset1.multiply(data, opset1.power(shifted, const(-0.5)))
    net = model([opset1.multiply(normal, const(np.linspace(0.5, 1.3, columns)))], x)
    values = [np.random.default_rng(0).uniform(-1, 1, (1, *[5] * (rank - 2), columns)).astype(np.float32)]
    stored = np.rint(values[0] / 0.01) * 0.01
    expected = stored / np.sqrt((stored**2).mean(-1, keepdims=True) + 1e-3) * np.linspace(0.5, 1.3, columns)
    np.testing.assert_allclose(by_form(net, values, form), expected, atol=1e-4)
