from __future__ import annotations

import numpy as np
import pytest
from openvino import Layout
from openvino.preprocess import PrePostProcessor, ResizeAlgorithm

import ovlpt
from ovlpt import Params
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import RELEASE, Model, Node, Type, opset1
from tests.conftest import EXACT, Transformed, assert_close
from tests.graphs import (
    NodeFactory,
    f32,
    fake_quantize,
    i64,
    interpolate_11,
    model,
    opset3,
    opset6,
    opset8,
    parameter,
    run,
    weights,
)
from tests.prerequisites.test_quantize_dequantize import assert_as_stock, weighted


def attention(mask) -> Model:
    inputs = [parameter((1, 2, 6, 8), name) for name in ("query", "key", "value")]
    names = [each.output(0) for each in (*inputs, mask)]
    return model(NodeFactory("opset13").create("ScaledDotProductAttention", names, {"causal": False}))


@pytest.mark.parametrize("shape", [(1, 1, 6, 6), (1, 6, 6), (6, 6), (1, 2, -1, -1), (1, 1, -1, -1)])
def test_a_mask_whose_leading_axes_are_dropped(shape):
    """The Add reads it with them, as the plugin's own does: it becomes part of what makes the mask."""
    mask = opset1.sigmoid(parameter(shape, "mask"))
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    squeezed = opset1.squeeze(mask, i64(*ones)) if ones else mask
    before = attention(squeezed)
    after = before.clone()
    CommonOptimizations().run_on_model(after)
    (add,) = (node for node in after.get_ops() if node.get_type_name() == "Add")
    assert add.input_value(1).get_node().get_type_name() == "Sigmoid"
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal([6 if size is None else size for size in shape_of(each)]) for each in before.inputs]
    assert np.allclose(
        *(run(each, [each.astype(np.float32) for each in inputs])[0] for each in (before, after)), atol=1e-5
    )


def test_a_mask_of_another_shape_stays():
    mask = opset1.reshape(parameter((6, 6, 1, 1), "mask"), i64(6, 6), False)
    graph = attention(mask)
    CommonOptimizations().run_on_model(graph)
    (add,) = (node for node in graph.get_ops() if node.get_type_name() == "Add")
    assert add.input_value(1).get_node().get_type_name() in ("Reshape", "Squeeze")


@pytest.mark.parametrize("batch, expected", [(1, (1, 16, 3, 3)), (-1, (None, 16, 3, 3))])
def test_sizes_that_a_broadcast_settles_stay_known(batch, expected):
    """It moves after the Add, where its target is the maximum of the data's shape and its own."""
    x = parameter((batch, 16, 1, -1))
    graph = model(opset1.add(opset3.broadcast(x, i64(1, 16, 3, 3)), x))
    CommonOptimizations().run_on_model(graph)
    assert shape_of(graph.output(0)) == expected
    data = np.arange(48, dtype=np.float32).reshape(1, 16, 1, 3)
    np.testing.assert_array_equal(run(graph, [data])[0], np.broadcast_to(2 * data, (1, 16, 3, 3)))


MOVES = {
    "Broadcast": lambda x: opset3.broadcast(x, i64(2, 3, 4, 6)),
    "Concat": lambda x: opset1.concat([x, x], 0),
    "Gather": lambda x: opset8.gather(x, i64(2, 0), i64(3)),
    "Reshape": lambda x: opset1.reshape(x, i64(1, 3, 24), False),
    "Transpose": lambda x: opset1.transpose(x, i64(0, 3, 1, 2)),
    "Unsqueeze": lambda x: opset1.unsqueeze(x, i64(0)),
    "FakeQuantize": lambda x: opset1.fake_quantize(x, f32(-9), f32(9), f32(-9), f32(9), 256),
    "Result": lambda x: x,
}
LEFT = {
    "scalar": lambda: f32(1),
    "by channel": lambda: f32(np.linspace(-1, 1, 3).reshape(3, 1, 1)),
    "u8": lambda: opset1.convert(opset1.constant(np.uint8(7)), "f32"),
}


def mask(left: Node, move, precision: type = np.float32) -> Model:
    """``move((left - mask) * -10)`` beside a quantized layer."""
    data = parameter((1, 3, 4, 6), "mask", precision)
    real = data if precision is np.float32 else opset1.convert(data, "f32")
    moved = move(opset1.multiply(opset1.subtract(left, real), f32(-10)))
    layer = opset1.matmul(fake_quantize(parameter((1, 8)), 0.0, 2.55), weights([4, 8], 0.01), False, True)
    return model(moved, layer)


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("left", LEFT)
def test_a_constant_less_a_tensor_keeps_its_sign(core, infer, left, move, native_only):
    """As attention masks have it, in memory and saved; the pass alone as well."""
    precision = np.int64 if move == "Unsqueeze" else np.float32
    graph = mask(LEFT[left](), MOVES[move], precision)
    inputs = [np.tile(np.eye(4, 6), (1, 3, 1, 1)).astype(precision), np.ones((1, 8), np.float32)]
    expected = infer(graph, inputs)[0]
    compiled = ovlpt.compile_model(graph, "CPU", EXACT, native_only=native_only, core=core)
    assert_close([np.array(compiled(inputs)[0])], [expected])
    assert_close(infer(ovlpt.transform(graph, native_only=native_only, core=core), inputs)[:1], [expected])
    Transformed(graph, Params(native_only=native_only)).assert_numbers(1e-5)


def test_a_convolution_after_a_constant_less_a_tensor(core, infer):
    """A sum with the negative has a scale, so that the layer runs in int8, as it does with the plugin's own pass."""
    small = opset1.multiply(
        opset1.convert(opset1.constant(np.eye(4, dtype=np.int8).reshape(4, 4, 1, 1)), "f32"), f32(0.1)
    )
    data = opset1.subtract(f32(1), fake_quantize(parameter((1, 4, 8, 8)), 0.0, 2.55))
    graph = model(opset1.convolution(data, small, [1, 1], [0, 0], [0, 0], [1, 1]))
    inputs = [np.random.default_rng(0).uniform(-1, 3, (1, 4, 8, 8)).astype(np.float32)]
    compiled = ovlpt.compile_model(graph, "CPU", EXACT, core=core)
    layers = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Convolution"]
    assert [each.is_int8 for each in layers] == [True]
    assert_close([np.array(compiled(inputs)[0])], infer(graph, inputs))


def test_real_differences_become_sums():
    x, y = parameter((2, 3)), parameter((2, 3), "y")
    integers = [opset1.convert(each, "i32") for each in (x, y)]
    graph = model(opset1.subtract(x, y), opset1.subtract(f32(1), x), opset1.subtract(*integers))
    CommonOptimizations().run_on_model(graph)
    found = [result.input_value(0).get_node() for result in graph.get_results()]
    assert [node.get_type_name() for node in found] == ["Add", "Add", "Subtract"]
    assert [node.get_friendly_name() for node in found] == ["y0", "y1", "y2"]
    values = [np.array([[1, 5, 2], [4, 3, 7]], np.float32), np.array([[3, 1, 2], [1, 9, 8]], np.float32)]
    difference = values[0] - values[1]
    for actual, wanted in zip(run(graph, values), [difference, 1 - values[0], difference], strict=True):
        np.testing.assert_array_equal(actual, wanted)


def convolution_of(data, kernel):
    return opset1.convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1])


def small_weights(shape, axis: int | None = None):
    values = np.random.default_rng(1).uniform(-0.4, 0.4, shape)
    count = 1 if axis is None else shape[axis]
    ends = np.linspace(0.9, 1.1, count).reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return fake_quantize(f32(values), -ends, ends, 255)


IMAGE = (1, 16, 8, 8)
AS_WEIGHTS = {
    "joined axes": lambda: opset1.matmul(
        fake_quantize(parameter((1, 10, 32)), 0.0, 2.55),
        opset1.reshape(small_weights((4, 8, 24)), i64(32, 24), False),
        False,
        False,
    ),
    "joined axes, a scale per output": lambda: opset1.matmul(
        fake_quantize(parameter((1, 10, 32)), 0.0, 2.55),
        opset1.reshape(small_weights((4, 8, 24), 2), i64(32, 24), False),
        False,
        False,
    ),
    "axes in another order": lambda: convolution_of(
        fake_quantize(parameter(IMAGE), 0.0, 2.55),
        opset1.transpose(small_weights((3, 3, 16, 8), 3), i64(3, 2, 0, 1)),
    ),
    "both": lambda: opset1.matmul(
        fake_quantize(parameter((1, 10, 32)), 0.0, 2.55),
        opset1.reshape(opset1.transpose(small_weights((8, 4, 24)), i64(1, 0, 2)), i64(32, 24), False),
        False,
        False,
    ),
}


@pytest.mark.parametrize("name", AS_WEIGHTS)
def test_quantized_weights_are_stored_as_they_are_read(name, core):
    graph = model(AS_WEIGHTS[name]())
    assert_as_stock(graph, core)
    assert weighted(ovlpt.compile_model(graph, "CPU", EXACT, core=core)) == [True]


@pytest.mark.skipif(RELEASE < (2025, 0), reason="2024.6 has no Squeeze-15 in its plugin")
@pytest.mark.parametrize("axes", [(1,), (), (-4,)])
def test_squeeze_15(axes, core):
    data = fake_quantize(parameter((2, 1, *IMAGE[1:])), 0.0, 2.55).output(0)
    inputs = [data, i64(*axes).output(0)] if axes else [data]
    squeezed = NodeFactory("opset15").create("Squeeze", inputs, {})
    graph = model(convolution_of(squeezed, small_weights((8, 16, 3, 3))))
    assert_as_stock(graph, core)
    if axes:  # without them stock's convolution is float, too
        assert weighted(ovlpt.compile_model(graph, "CPU", EXACT, core=core)) == [True]


def test_a_reshape_of_open_data_to_a_known_shape():
    """Only that of quantized weights moves before their FakeQuantize."""
    graph = model(opset1.reshape(fake_quantize(parameter((1, 6, -1)), 0.0, 2.55), i64(1, 72), False))
    CommonOptimizations().run_on_model(graph)
    data = (np.arange(72, dtype=np.float32) / 100).reshape(1, 6, 12)
    assert_close(run(graph, [data]), [data.reshape(1, 72)])


def group_normalization(shape, groups: int) -> Model:
    """After a FakeQuantize, before another and a convolution; trivial scale and bias in one group, as after fusions."""
    scale, bias = (np.ones(16), np.zeros(16)) if groups == 1 else np.random.default_rng(2).uniform(0.5, 1.5, (2, 16))
    inputs = [fake_quantize(parameter(shape), -1.28, 1.27), f32(scale), f32(bias)]
    attributes = {"num_groups": groups, "epsilon": 1e-5}
    normalized = NodeFactory("opset12").create("GroupNormalization", [each.output(0) for each in inputs], attributes)
    return model(convolution_of(fake_quantize(normalized, -2.56, 2.54), small_weights((8, 16, 3, 3))))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("shape", [IMAGE, (-1, *IMAGE[1:]), (-1, 16, -1, -1)], ids=["fixed", "batch", "open"])
def test_group_normalization(shape, groups, core):
    graph = group_normalization(shape, groups)
    data = [np.random.default_rng(0).uniform(-1.3, 1.3, (2, *IMAGE[1:])[-4:]).astype(np.float32)]
    data = data if shape[0] == -1 else [data[0][:1]]
    plain = graph.clone()
    CommonOptimizations().run_on_model(plain)
    assert "GroupNormalization" not in [node.get_type_name() for node in plain.get_ops()]
    assert_close(run(plain, data), run(graph, data), level=0.05, share=1e-3)
    compiled = core.compile_model(graph, "CPU", EXACT), ovlpt.compile_model(graph, "CPU", EXACT, core=core)
    stock, mine = (ovlpt.execution_types(each, data).executed for each in compiled)
    if RELEASE >= (2025, 2):  # before, no MVN-6 can be relaxed
        assert len(mine) <= len(stock)
        assert [layer.is_int8 for layer in mine if layer.layer_type == "MVN"] == [True]


@pytest.mark.parametrize("shape", [IMAGE, (-1, *IMAGE[1:])], ids=["fixed", "batch"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic"])
def test_an_interpolate_between_transposes_to_nhwc_and_back(mode, shape, core):
    """The plugin drops the Transposes, which stayed as layers where a dequantization came between."""
    data = fake_quantize(convolution_of(parameter(shape), small_weights((16, 16, 3, 3))), -1.28, 1.27)
    attributes = {
        "mode": mode, "shape_calculation_mode": "sizes", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "floor",
        "antialias": False, "pads_begin": [0] * 4, "pads_end": [0] * 4, "cube_coeff": -0.75,
    }  # fmt: skip
    inputs = [opset1.transpose(data, i64(0, 2, 3, 1)), i64(16, 16), i64(1, 2)]
    resized = NodeFactory("opset11").create("Interpolate", [each.output(0) for each in inputs], attributes)
    back = opset1.transpose(resized, i64(0, 3, 1, 2))
    graph = model(convolution_of(back, small_weights((8, 16, 3, 3))))
    values = [np.random.default_rng(0).uniform(-1.3, 1.3, (1, *IMAGE[1:])).astype(np.float32)]
    compiled = core.compile_model(graph, "CPU", EXACT), ovlpt.compile_model(graph, "CPU", EXACT, core=core)
    stock, mine = (ovlpt.execution_types(each, values).executed for each in compiled)
    assert len(mine) <= len(stock)
    assert_close([compiled[1](values)[0]], run(graph, values), level=0.05, share=1e-3)


def test_what_is_converted_like_another_value_in_f16(core):
    """As the LayerNormalization of an ONNX file in f16 ends: the layer after it ran in float."""
    x = parameter(IMAGE, precision=np.float16)
    normalized = opset6.mvn(opset1.convert(x, "f32"), i64(2, 3), True, 1e-5, "inside_sqrt")
    quantized = fake_quantize(normalized, -2.56, 2.54)
    half = NodeFactory("opset8").create("ConvertLike", [quantized.output(0), x.output(0)])
    graph = model(convolution_of(half, opset1.convert(small_weights((8, 16, 3, 3)), "f16")))
    data = [np.random.default_rng(0).uniform(-1.3, 1.3, IMAGE).astype(np.float16)]
    compiled = core.compile_model(graph, "CPU", EXACT), ovlpt.compile_model(graph, "CPU", EXACT, core=core)
    for each in compiled:
        (layer,) = [each for each in ovlpt.execution_types(each, data).executed if each.layer_type == "Convolution"]
        assert layer.is_int8
    assert_close([compiled[1](data)[0]], [compiled[0](data)[0]], level=0.05, share=1e-3)


@pytest.mark.parametrize("scale", [None, 100.0, [58.0, 57.0, 56.0]], ids=["plain", "scaled", "by_channel"])
@pytest.mark.parametrize("resize", [None, "RESIZE_LINEAR", "RESIZE_CUBIC", "RESIZE_NEAREST"])
def test_preprocessing_of_a_picture_in_u8(scale, resize, core):
    """The Transposes to the layout of the network and around the Interpolate stayed as layers of their own."""
    x = parameter((1, 3, 16, 16))
    layer = opset1.add(
        convolution_of(fake_quantize(x, 0.0, 2.6), small_weights((16, 3, 3, 3))), f32(np.ones((1, 16, 1, 1)))
    )
    processor = PrePostProcessor(model(layer))
    processor.input(0).tensor().set_element_type(Type.u8).set_layout(Layout("NHWC"))
    processor.input(0).model().set_layout(Layout("NCHW"))
    steps = processor.input(0).preprocess().convert_element_type(Type.f32)
    if scale is not None:
        steps.scale(scale)
    if resize is not None:
        steps.resize(getattr(ResizeAlgorithm, resize))
        processor.input(0).tensor().set_shape([1, 24, 24, 3])
    graph = processor.build()
    pixels = [np.random.default_rng(0).integers(0, 256, list(graph.inputs[0].shape)).astype(np.uint8)]
    compiled = core.compile_model(graph, "CPU", EXACT), ovlpt.compile_model(graph, "CPU", EXACT, core=core)
    stock, mine = (ovlpt.execution_types(each, pixels).executed for each in compiled)
    assert len(mine) <= len(stock)
    expected = run(graph, pixels)
    assert_close([compiled[1](pixels)[0]], expected, level=0.03 * np.abs(expected[0]).max(), share=1)


def test_an_interpolate_of_the_batch_after_one_of_the_space(core):
    """As version 4 the plugin would fuse the two into one that it cannot run: it threw."""
    data = fake_quantize(parameter((2, 4, 4, 4)), 0.0, 2.55)
    net = model(opset1.relu(interpolate_11(interpolate_11(data), (0, 1))))
    inputs = [np.random.default_rng(0).uniform(-1, 3, (2, 4, 4, 4)).astype(np.float32)]
    expected = core.compile_model(net, "CPU", EXACT)(inputs)[0]
    assert_close([ovlpt.compile_model(net, "CPU", EXACT, core=core)(inputs)[0]], [expected])
